"""What kustomize printed -> objects, each with the line where its source stands. Runs in the render child, after the program.

Law: the build notes for each object where it comes from (originAnnotations); that is taken off again, unless its author asked for it, so
that the objects are those of the bare tool.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from handler.model.errors import Problem
from handler.model.quotation import quoted
from handler.model.tree import printable
from handler.render.document import Document
from handler.render.documents import documents
from handler.render.frames import encode, encode_note
from handler.render.kustomize import kustomization
from handler.render.kustomize.kustomize_errors import Marks, explain
from handler.render.objects import objects

ORIGIN = "config.kubernetes.io/origin"
_OUTPUT = "kustomize-build.yaml"  # what the tool's own output is called where it can't be read
_FACT = re.compile(r"^ *(path|configuredIn|kind|name): (.*?)$", re.MULTILINE)
_DEPRECATED = re.compile(r"# Warning: '\w+' is deprecated")
_GENERATORS = {
    "ConfigMapGenerator": ("configMapGenerator",),
    "SecretGenerator": ("secretGenerator",),
    "HelmChartInflationGenerator": ("helmCharts", "helmChartInflationGenerator"),
}
_MOST_WARNINGS = 10
_SEPARATOR = re.compile(rb"^---\n", re.MULTILINE)  # the line break before it is the document's: a block of text may end with it


def read_kustomizations(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Say what files name. Options: `places`: the path of each part; `roles`: as what each is read; `root`: the number of the one built."""
    for number, (path, role, data) in enumerate(zip(options["places"], options["roles"], parts, strict=True)):
        for row in _read(data, path, role, root=number == options["root"]):
            yield encode(row) if isinstance(row, Problem) else kustomization.encode_mentions(number, row)


def _read(data: bytes, path: str, role: str, *, root: bool) -> Iterator[kustomization.Mentions | Problem]:
    if role == "objects":
        yield kustomization.standing_objects(data, path)
    elif role == "plugins":
        yield from kustomization.plugins(data, path)
    else:
        yield from kustomization.read(data, path, root=root)


def built(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Read what `kustomize build` said.

    Options: `exit_code`, `home`: the program's; `root`: the directory that was built; `marks`: the entries of kustomizations; `objects`:
    file -> `Kind/name` -> line; `origins`: its author wants them.
    """
    output, errors = parts
    said = errors.decode(errors="replace")
    sources = Sources(options["root"], options["marks"], options["objects"])
    if options["exit_code"]:
        yield encode(explain(said, options["home"], options["root"], options["marks"]))
        return
    found = (item for text in _SEPARATOR.split(output) for item in documents(text, _OUTPUT))
    yield from map(encode, objects(sources.placed(item, keep=options["origins"]) for item in found))
    warnings = [line for line in dict.fromkeys(said.replace(f"{options['home']}/", "").splitlines()) if line.strip()]
    for line in [each for each in warnings if not _DEPRECATED.match(each)][:_MOST_WARNINGS]:
        yield encode_note(quoted(line, 300))


@dataclass(frozen=True, slots=True)
class Sources:
    """Where objects come from. `root`: what is built; `marks`, `objects`: as in `built`; `kinds`: (file, kind) -> name -> line."""

    root: str
    marks: Marks
    objects: Mapping[str, Mapping[str, int]]
    kinds: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Sort the objects of each file by their kind: name -> line."""
        for path, standing in self.objects.items():
            for key, line in standing.items():
                kind, _, name = key.partition("/")
                self.kinds.setdefault((path, kind), {})[name] = line

    def placed(self, item: Document | Problem, *, keep: bool) -> Document | Problem:
        """Return a document of the output with its source's place, and without the note of it."""
        if isinstance(item, Problem) or not isinstance(item.value, dict):
            return item
        metadata = item.value.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        origin = annotations.get(ORIGIN) if isinstance(annotations, dict) else None
        if isinstance(origin, str) and isinstance(annotations, dict) and not keep:
            del annotations[ORIGIN]
            if not annotations:
                del item.value["metadata"]["annotations"]
        name = metadata.get("name") if isinstance(metadata, dict) else ""
        path, line = self._place(origin if isinstance(origin, str) else "", str(item.value.get("kind")), str(name))
        return Document(printable(path, 4096), line, item.value)

    def _place(self, origin: str, kind: str, name: str) -> tuple[str, int]:
        facts = dict(_FACT.findall(origin))
        if "path" in facts:
            path = _below(self.root, facts["path"])
            return path, _nearest(self.kinds.get((path, kind), {}), name)
        path = _below(self.root, facts["configuredIn"]) if "configuredIn" in facts else self._built()
        if path in self.objects:
            return path, _nearest(self.kinds.get((path, facts.get("kind", "")), {}), facts.get("name", ""))
        fields = _GENERATORS.get(facts.get("kind", ""), ())
        mine = {text: line for field, text, line in self.marks.get(path, ()) if field in fields and text and text in name}
        lines = [line for field, _, line in self.marks.get(path, ()) if field in fields]
        return path, mine[max(mine, key=len)] if mine else min(lines, default=1)

    def _built(self) -> str:
        return next((path for path in self.marks if posixpath.dirname(path) == self.root), self.root or ".")


def _nearest(known: Mapping[str, int], name: str) -> int:
    """Return the line of the object that this one was: of its kind, and with the longest name that is in its name."""
    if name in known:
        return known[name]
    within = [each for each in known if each in name]
    return known[max(within, key=len)] if within else min(known.values(), default=1) if len(known) == 1 else 1


def _below(root: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(root, path.strip("'\"")))
