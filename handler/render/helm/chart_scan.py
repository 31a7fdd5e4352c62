"""What a chart is before helm reads it: its name, its charts and their places, and which functions its templates call.

    lookup, getHostByName          always empty here: a plan says so
    randAlphaNum, genCA, now, …    made anew at each render: a second render finds the fields
    .Capabilities, kubeVersion     what the cluster offers becomes an input

Law: texts are searched, never executed. A name within a string or a comment isn't a call; what is built at run time (`tpl` of a built text)
isn't found, and then sees what helm itself assumes. Runs in the render child.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from handler.model.errors import ManifestInvalid
from handler.model.manifest import at, items_at
from handler.model.tree import MAX_PATH, printable
from handler.render.charts.chart_archive import MAX_UNPACKED, unpacked
from handler.render.document import Document
from handler.render.documents import documents
from handler.render.folders import CHART
from handler.render.helm.chart_facts import NEEDING, ChartFacts, Dependency, Use

EMPTY_HERE = ("lookup", "getHostByName")
CLOCK = ("now", "ago")
RANDOM = (
    *("randAlphaNum", "randAlpha", "randNumeric", "randAscii", "randBytes", "randInt", "shuffle", "uuidv4"),
    *("genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey"),
    *("htpasswd", "bcrypt", "encryptAES"),
)
_CALL = re.compile(rf"(?<![\w.$])({'|'.join((*EMPTY_HERE, *CLOCK, *RANDOM))})(?!\w)")
_CLUSTER = re.compile(r"\bCapabilities\b")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+"|`[^`]*+`')
_KIND = re.compile(rb"^kind:[ \t]*[\"']?([A-Za-z][A-Za-z0-9]*)[\"']?[ \t\r]*$", re.MULTILINE)
_TEMPLATES = ("templates/", "crds/")
_BREAK = "\n"
_MAX_USES = 1_000
_MAX_ROOTS = 2_000
_MAX_DEPTH = 10

Chart = Mapping[str, bytes]  # a chart's files, by their path below it


@dataclass(slots=True)
class ChartScan:
    """Looks through a chart and the charts in it. `moved`: path below the chart of one that was put there -> its path in git."""

    moved: Mapping[str, str] = field(default_factory=dict)
    missing: list[Dependency] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    roots: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, dict[str, int]] = field(default_factory=dict)
    asks_cluster: bool = False
    left: int = MAX_UNPACKED

    def run(self, files: Chart, place: str) -> ChartFacts:
        """Return the facts of a chart. `place`: its path in git. Raises ManifestInvalid: an archive among its charts is refused."""
        found = self._chart(files, place, "")
        self._root(found, "", {found.name})
        return ChartFacts(found.name, tuple(self.missing), tuple(self.uses), self.roots, self.kinds, self.asks_cluster)

    def text(self, data: bytes, place: str) -> None:
        """Search a text whose actions a template may execute: a template, a file of values."""
        if b"{{" not in data or b"\0" in data:
            return
        for line, action in _actions(data.decode("utf-8", "replace")):
            self.asks_cluster |= bool(_CLUSTER.search(action))
            for call in _CALL.finditer(_STRING.sub('""', action)):
                if len(self.uses) < _MAX_USES:
                    self.uses.append(Use(call[1], f"{place}:{line + action.count(_BREAK, 0, call.start())}"))

    def _chart(self, files: Chart, place: str, at: str) -> _Found:
        about = _document(files, CHART, place)
        found = _Found(_text(about.value.get("name")) if about else "", place)
        self.asks_cluster |= bool(about and about.value.get("kubeVersion"))
        for path, data in files.items():
            if not path.startswith("charts/") and not path.endswith(".md"):
                self.text(data, _join(place, path))
                self._kinds(path, data, place)
        found.dependencies = [each for named, lock in NEEDING for each in _dependencies(files, named, lock, place, at)]
        if at.count("charts/") < _MAX_DEPTH:
            found.charts = [self._chart(*inner) for inner in self._inner(files, place, at)]
        if not at or (at in self.moved and not at.endswith(".tgz")):
            present = {each.name for each in found.charts}
            self.missing += [each for each in found.dependencies if each.name not in present]
        return found

    def _kinds(self, path: str, data: bytes, place: str) -> None:
        """Note where a template says the kind of an object, where it does so once."""
        if path.startswith(_TEMPLATES):
            found: dict[str, int] = {}
            for match in _KIND.finditer(data):
                kind = match[1].decode()
                found[kind] = 0 if kind in found else data.count(b"\n", 0, match.start()) + 1
            if found:
                self.kinds[_join(place, path)] = {kind: line for kind, line in found.items() if line}

    def _inner(self, files: Chart, place: str, at: str) -> Iterator[tuple[Chart, str, str]]:
        """Yield the charts in charts/, as helm loads them: directories and archives whose names don't begin with `_` or `.`."""
        directories: dict[str, dict[str, bytes]] = {}
        for path, data in files.items():
            name, _, rest = path.removeprefix("charts/").partition("/")
            if not path.startswith("charts/") or not name or name[0] in "_.":
                continue
            if rest:
                directories.setdefault(name, {})[rest] = data
            elif name.endswith(".tgz"):
                where = self._place(place, at, name)
                yield self._unpacked(data, where), where, posixpath.join(at, "charts", name)
        for name, inner in directories.items():
            if CHART in inner:
                yield inner, self._place(place, at, name), posixpath.join(at, "charts", name)

    def _place(self, place: str, at: str, name: str) -> str:
        return self.moved.get(posixpath.join(at, "charts", name)) or _join(place, f"charts/{name}")

    def _unpacked(self, data: bytes, place: str) -> Chart:
        inner = unpacked(data, place)
        self.left -= sum(map(len, inner.values()))
        if self.left < 0:
            raise ManifestInvalid.of("chart archive", f"unpacks, with those beside it, to more than {MAX_UNPACKED:,} bytes", place=place)
        return inner

    def _root(self, found: _Found, above: str, names: set[str]) -> None:
        """Note by which names helm calls a chart's files: its own, or the aliases that the chart around it gives."""
        for name in sorted(names):
            if len(self.roots) >= _MAX_ROOTS:
                return
            self.roots[f"{above}{name}"] = found.place
            for inner in found.charts:
                aliases = {each.alias or each.name for each in found.dependencies if each.name == inner.name}
                self._root(inner, f"{above}{name}/charts/", aliases or {inner.name})


@dataclass(slots=True)
class _Found:
    name: str
    place: str
    dependencies: list[Dependency] = field(default_factory=list)
    charts: list[_Found] = field(default_factory=list)


def scan_chart(options: Mapping[str, Any], parts: Sequence[bytes]) -> ChartFacts:
    """Look through one chart.

    Options: `place`: its path in git; `paths`: those of its files below it, one a part; further parts are values, called by `beside`;
    `archive`: the chart is one part, its .tgz; `moved`: see `ChartScan`. Raises ManifestInvalid: an archive is refused.
    """
    count = len(options["paths"])
    scan, place = ChartScan(options["moved"]), options["place"]
    for name, data in zip(options["beside"], parts[count:], strict=True):
        scan.text(data, name)
    return scan.run(unpacked(parts[0], place) if options["archive"] else dict(zip(options["paths"], parts[:count], strict=True)), place)


def _actions(text: str) -> Iterator[tuple[int, str]]:
    """Yield what stands between `{{` and `}}`, with the line that it begins on; comments aren't executed."""
    at, line = 0, 1
    while (start := text.find("{{", at)) >= 0:
        line += text.count("\n", at, start)
        comment = text.startswith(("/*", "- /*"), start + 2)
        end = text.find("*/" if comment else "}}", start + 2)
        if end < 0:
            return
        if not comment:
            yield line, text[start + 2 : end]
        line += text.count("\n", start, end)
        at = end


def _dependencies(files: Chart, named: str, lock: str, place: str, at_chart: str) -> Iterator[Dependency]:
    document = _document(files, named, place)
    locked = _document(files, lock, place)
    versions = {(_text(at(each, "name")), _text(at(each, "repository"))): at(each, "version") for each in _items(locked)}
    for each in _items(document):
        name, repository = _text(at(each, "name")), _text(at(each, "repository"))
        version = _text(versions.get((name, repository)) or at(each, "version"))
        yield Dependency(at_chart, name, version, repository, _text(at(each, "alias")), document.place(each) if document else "")


def _items(document: Document | None) -> list[Any]:
    return items_at(document.value, "dependencies") if document else []


def _document(files: Chart, path: str, place: str) -> Document | None:
    """Return a file's first document; one that can't be read is named by helm itself."""
    data = files.get(path, b"")
    found = next(documents(data, _join(place, path)), None)
    return found if isinstance(found, Document) and isinstance(found.value, dict) else None


def _join(place: str, path: str) -> str:
    return printable(posixpath.join(place, path), MAX_PATH)


def _text(value: Any) -> str:
    return printable(str(value), 300) if isinstance(value, str | int | float) else ""
