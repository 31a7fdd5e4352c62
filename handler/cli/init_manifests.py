"""Where a checkout's manifests lie and which namespaces they name: what `anneal init` suggests.

Law: read as lines of text, never as YAML; a suggestion may be wrong, and the person sees it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from handler.config.value_formats import FORMS
from handler.render.folders import CHART, KUSTOMIZATIONS, KUSTOMIZE

_USUAL = ("deploy", "manifests", "k8s", "kubernetes")
"""How directories of manifests are called, the likeliest first."""
_MOST_FILES, _MOST_BYTES, _MOST_NAMES = 20_000, 64 << 10, 20
_NOT_RENDERED = frozenset({CHART, *KUSTOMIZATIONS})
_OTHER = rf"anneal\.dev|{re.escape(KUSTOMIZE.rstrip('/'))}|kind\.x-k8s\.io|skaffold|backstage\.io|eksctl\.io"
"""Groups of files that look like objects, and that no API server takes."""
_OBJECT = re.compile(rf"^apiVersion: *[\"']?(?!(?:{_OTHER})/)[\w./-]+", re.MULTILINE)
_KIND = re.compile(r"^kind: *[\"']?(\w+)", re.MULTILINE)
_METADATA = re.compile(r"^metadata: *(?:(\{.*)|(?:#.*)?\n((?: +.*\n?|\n)+))", re.MULTILINE)
"""Written in braces on its line, or in lines below it."""
_DOCUMENT = re.compile(r"^---", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Manifests:
    """A directory's. `namespaces`: those that its objects name, the most frequent first; `declared`: those that it declares itself."""

    namespaces: tuple[str, ...] = ()
    declared: frozenset[str] = frozenset()


def directory(root: Path) -> str:
    """Return the directory below a checkout's root that holds its manifests; empty: none is found, `.`: they lie in the root.

    One with a usual name goes first, then the one that holds them all, then the one with the most.
    """
    places = Counter(path.parent.relative_to(root).as_posix() for path, _ in _objects(root))
    tops: Counter[str] = Counter()
    for place, count in places.items():
        tops[place.split("/")[0]] += count
    if tops["."] * 2 < tops.total():  # a file of another tool beside the code, say
        del places["."], tops["."]
    usual = next((name for name in _USUAL if name in tops or (not tops and (root / name).is_dir())), "")
    if usual or not tops:
        return usual
    return "." if "." in tops else os.path.commonpath(places) or tops.most_common(1)[0][0]


def holds_any(place: Path) -> bool:
    """Return whether there are manifests below a directory."""
    return next(_objects(place), None) is not None


def manifests(place: Path) -> Manifests:
    """Read what the manifests below a directory say of namespaces."""
    named: Counter[str] = Counter()
    declared = set()
    for _, text in _objects(place):
        for document in _DOCUMENT.split(text):
            kind = _KIND.search(document)
            if kind and kind[1] == "Namespace":
                declared.update(_field(document, "name"))
            else:
                named.update(_field(document, "namespace"))
    fit = [name for name, _ in named.most_common() if FORMS["namespace"].complaint(name) is None]
    return Manifests(tuple(fit[:_MOST_NAMES]), frozenset(declared))


def _field(document: str, name: str) -> list[str]:
    """Return the value of a field of metadata, if it is there."""
    block = _METADATA.search(document)
    if block is None:
        return []
    first = re.match(r"\s*?( +)\S", block[2] or "")
    before = f"^{first[1]}" if first else r"[{,] *"
    return re.findall(rf"{before}{name}: *[\"']?([\w.-]+)", block[1] or block[2], re.MULTILINE)[:1]


def _objects(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files that hold objects and no templates, with their text."""
    seen = 0
    for directory, below, names in os.walk(root):
        rendered = _NOT_RENDERED.isdisjoint(names)
        below[:] = sorted(name for name in below if name[0] != "." and name != "node_modules") if rendered else []
        for name in sorted(name for name in names if rendered and name[0] != "." and name.endswith((".yaml", ".yml"))):
            seen += 1
            if seen > _MOST_FILES:
                return
            text = _text(Path(directory, name))
            if _OBJECT.search(text) and _KIND.search(text) and _METADATA.search(text) and "{{" not in text:
                yield Path(directory, name), text


def _text(path: Path) -> str:
    try:
        if not path.is_file():  # a pipe or a terminal would be waited for
            return ""
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return ""
