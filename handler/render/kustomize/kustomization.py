"""What a kustomization names: files, directories, URLs, charts and plugins, each with its line. Pure; runs in the render child.

    kustomization.yaml           every field that can name something                  read
    generators, transformers     configurations of plugins, in files or in place      plugins
    resources                    where each object of a file stands                   standing_objects

Law: keys are matched as Go's JSON decoder matches them, in any case, so that none hides. A plugin that isn't built into kustomize, and
a function, is a mistake with its line.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from handler.model.errors import Problem
from handler.model.rollout import key_in_path
from handler.model.tree import printable
from handler.render.document import MAX_BYTES, Document, Standing, line_at
from handler.render.documents import documents
from handler.render.lines import Noting
from handler.render.yamls import yaml_documents

RESOURCE, DIRECTORY, FILE, PLUGIN, PATCH, VALUES = "resource", "directory", "file", "plugin", "patch", "values"
"""What an entry may name: a file or directory; a directory; a file; a plugin's configuration; a patch; values that a chart may hold."""
MARK = "mark"
"""Names nothing, but is where a message of kustomize's may belong."""
BUILD_METADATA, ORIGINS = "buildMetadata", "originAnnotations"

_LISTS = {
    "resources": RESOURCE,
    "bases": RESOURCE,
    "components": DIRECTORY,
    "crds": FILE,
    "configurations": FILE,
    "generators": PLUGIN,
    "transformers": PLUGIN,
    "validators": PLUGIN,
    "patchesStrategicMerge": PATCH,
}
_WITH_PATHS = ("patches", "patchesJson6902", "replacements")
_GENERATORS = ("configMapGenerator", "secretGenerator")
_CHARTS = ("helmCharts", "helmChartInflationGenerator")
_FUNCTION = "config.kubernetes.io/function"
_FUNCTIONS = (_FUNCTION, "config.k8s.io/function")
_PLUGIN_FIX = "use what kustomize has built in (apiVersion: builtin), or commit what the plugin makes"
_KIND = re.compile(rb"^kind:[ \t]*[\"']?(\w+)", re.MULTILINE)
_METADATA = re.compile(rb"^metadata:(.*(?:\r?\n[ \t#].*|\r?\n(?=\r?\n))*)", re.MULTILINE)
_NAME = re.compile(rb"(?:^([ \t]+)|[{,][ \t]*)name:[ \t]*[\"']?([^\s\"'#,}]+)", re.MULTILINE)
_FIRST = re.compile(rb"^(?!---|%|[ \t]*#|[ \t\r]*$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Reference:
    """An entry. `sort`: what it may name; `field`: e.g. `resources`; `text`: as it is written; `line`: where."""

    sort: str
    field: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class ChartEntry:
    """A Helm chart that a kustomization inflates. `kube_version`, `api_versions`: whether it says for which cluster."""

    field: str
    line: int
    name: str
    version: str
    repo: str
    home: str
    kube_version: bool
    api_versions: bool


@dataclass(frozen=True, slots=True)
class Mentions:
    """What one file names. `objects`: `Kind/name` -> line, of a file of resources; `noted`: the file with the origins of objects noted."""

    path: str
    references: tuple[Reference, ...] = ()
    charts: tuple[ChartEntry, ...] = ()
    objects: tuple[tuple[str, int], ...] = ()
    noted: str = ""


@dataclass(frozen=True, slots=True)
class Spot:
    """A value and where it stands."""

    value: Any
    line: int
    standing: Standing

    def under(self, name: str) -> Iterator[Spot]:
        """Yield the values of a key, whatever its case: Go's decoder takes each."""
        if isinstance(self.value, dict):
            for key, value in self.value.items():
                if key.casefold() == name.casefold():
                    yield Spot(value, *self.standing.get(key_in_path(key), (self.line, {})))

    def items(self) -> Iterator[Spot]:
        """Yield the items of a list."""
        if isinstance(self.value, list):
            for index, value in enumerate(self.value):
                yield Spot(value, *self.standing.get(f"[{index}]", (self.line, {})))

    def each(self, name: str) -> Iterator[Spot]:
        """Yield the items of a key's list."""
        for values in self.under(name):
            yield from values.items()

    def text(self, name: str) -> str:
        """Return the text of a key; empty: it has none."""
        return next((each.value for each in self.under(name) if isinstance(each.value, str)), "")


def read(data: bytes, path: str, *, root: bool = False) -> Iterator[Mentions | Problem]:
    """Yield what a kustomization names, and its mistakes. `root`: it is the one that is built."""
    spot, problems = _spot(data, path)
    yield from problems
    if spot is None:
        return
    found: list[Reference] = []
    charts = list(_charts(spot))
    for item in _entries(spot):
        if isinstance(item, Reference):
            found.append(item)
        else:
            yield from _inline_plugin(item, path, found, charts)
    yield from _homes(spot, path)
    yield Mentions(path, tuple(found), tuple(charts), noted=_noted(spot.value) if root else "")


def plugins(data: bytes, path: str) -> Iterator[Mentions | Problem]:
    """Yield what the plugin configurations of a file name, and its mistakes."""
    found: list[Reference] = []
    charts: list[ChartEntry] = []
    for document in yaml_documents(data.removeprefix(b"\xef\xbb\xbf"), path, Noting):
        if isinstance(document, Problem):
            yield document
        else:
            yield from _plugin(Spot(document.value, document.line, document.standing), path, found, charts)
    yield replace(standing_objects(data, path), references=tuple(found), charts=tuple(charts))


def standing_objects(data: bytes, path: str) -> Mentions:
    """Return where the objects of a file stand, by looks alone: nothing depends on it but the lines in messages."""
    found: dict[str, int] = {}
    starts = [0, *(each.start() for each in re.finditer(rb"^---", data, re.MULTILINE)), len(data)]
    for start, end in itertools.pairwise(starts):
        chunk = data[start:end]
        kind, metadata, first = _KIND.search(chunk), _METADATA.search(chunk), _FIRST.search(chunk)
        names = [(len(each[1] or b""), each[2]) for each in _NAME.finditer(metadata[1])] if metadata else []
        if kind and first and names:
            name = min(names, key=lambda each: each[0])[1]
            found.setdefault(f"{kind[1].decode()}/{name.decode(errors='replace')}", line_at(data, start + first.start()))
    return Mentions(path, objects=tuple(found.items()))


def _spot(data: bytes, path: str) -> tuple[Spot | None, list[Problem]]:
    """Return the mapping of a kustomization's first document, and what is wrong with the file."""
    if len(data) > MAX_BYTES:
        return None, [Problem("file", f"has {len(data):,} bytes; at most {MAX_BYTES:,} are read", path)]
    try:
        text = data.decode("utf-8-sig").encode()
    except UnicodeDecodeError as bad:
        return None, [Problem("file", "isn't UTF-8", f"{path}:{line_at(data, bad.start)}")]
    found = list(yaml_documents(text, path, Noting))
    problems = [item for item in found if isinstance(item, Problem)]
    document = next((item for item in found if isinstance(item, Document)), None)
    if problems or document is None or document.value is None:
        return None, problems or [Problem("kustomization", "is empty", f"{path}:1", "list what it builds: resources: […]")]
    if not isinstance(document.value, dict):
        return None, [Problem("kustomization", "isn't a mapping", document.place())]
    return Spot(document.value, document.line, document.standing), []


def _entries(spot: Spot) -> Iterator[Reference | Spot]:
    """Yield every entry; a plugin's configuration that stands in its place as it is."""
    for field, sort in _LISTS.items():
        for item in spot.each(field):
            yield from _entry(sort, field, item)
    for field in _WITH_PATHS:
        for item in spot.each(field):
            yield from _texts(item.under("path"), FILE, f"{field}.path")
    for field in _GENERATORS:
        for item in spot.each(field):
            yield Reference(MARK, field, item.text("name"), item.line)
            yield from _sources(item, field)
    for field in _CHARTS:
        for item in spot.each(field):
            named = (item.text(name) for name in ("name", "chartName", "releaseName"))
            yield from (Reference(MARK, field, text, item.line) for text in named if text)
            yield from _values(item, field)
    for values in spot.under("openapi"):
        yield from _texts(values.under("path"), FILE, "openapi.path")
    yield from (Reference(MARK, key, "", line) for key, (line, _) in spot.standing.items())


def _entry(sort: str, field: str, item: Spot) -> Iterator[Reference | Spot]:
    if not isinstance(item.value, str):
        return  # kustomize says so itself
    inline = sort in (PLUGIN, PATCH) and _is_inline(item.value)
    if inline and sort == PLUGIN:
        yield item
    elif not inline:
        yield Reference(sort, field, item.value, item.line)


def _is_inline(text: str) -> bool:
    if "\n" in text.strip():
        return True
    first = next(documents(text.encode(), ".yaml"), None)
    return isinstance(first, Document) and isinstance(first.value, dict | list)


def _sources(generator: Spot, field: str) -> Iterator[Reference]:
    """Yield the files that a ConfigMap or Secret is made of; those of `files` may follow a key and `=`."""
    for item in generator.each("files"):
        if isinstance(item.value, str):
            key, equals, path = item.value.partition("=")
            yield Reference(FILE, f"{field}.files", path if equals else key, item.line)
    yield from _texts(generator.each("envs"), FILE, f"{field}.envs")
    yield from _texts(generator.under("env"), FILE, f"{field}.env")


def _values(chart: Spot, field: str) -> Iterator[Reference]:
    old = field == "helmChartInflationGenerator"
    yield from _texts(chart.under("values" if old else "valuesFile"), VALUES, f"{field}.valuesFile")
    yield from _texts(chart.each("additionalValuesFiles"), VALUES, f"{field}.additionalValuesFiles")


def _texts(spots: Iterator[Spot], sort: str, field: str) -> Iterator[Reference]:
    for each in spots:
        if isinstance(each.value, str) and each.value:
            yield Reference(sort, field, each.value, each.line)


# --- charts
def _charts(spot: Spot) -> Iterator[ChartEntry]:
    home = next((home for each in spot.under("helmGlobals") if (home := each.text("chartHome"))), "")
    yield from (_chart(item, "helmCharts", home) for item in spot.each("helmCharts"))
    for item in spot.each("helmChartInflationGenerator"):
        old = ("chartName", "chartVersion", "chartRepoUrl")
        yield _chart(item, "helmChartInflationGenerator", item.text("chartHome") or home, old)


def _chart(item: Spot, field: str, home: str, names: tuple[str, str, str] = ("name", "version", "repo")) -> ChartEntry:
    name, version, repo = map(item.text, names)
    said = bool(item.text("kubeVersion")), any(each.value for each in item.under("apiVersions"))
    return ChartEntry(field, item.line, name, version, repo, home or "charts", *said)


def _homes(spot: Spot, path: str) -> Iterator[Problem]:
    """Refuse a configuration of Helm's own: plugins and credentials could lie there."""
    found = [each for item in spot.each("helmChartInflationGenerator") for each in item.under("helmHome")]
    found += [each for values in spot.under("helmGlobals") for each in values.under("configHome")]
    for each in found:
        yield Problem("helmGlobals.configHome", "would configure helm, which has no configuration here", f"{path}:{each.line}", "remove it")


# --- plugins
def _inline_plugin(item: Spot, path: str, found: list[Reference], charts: list[ChartEntry]) -> Iterator[Problem]:
    """Read a configuration that stands in a kustomization as a text: all of it is where the text begins."""
    for document in documents(item.value.encode(), ".yaml"):
        if isinstance(document, Document):
            yield from _plugin(Spot(document.value, item.line, {}), path, found, charts)


def _plugin(spot: Spot, path: str, found: list[Reference], charts: list[ChartEntry]) -> Iterator[Problem]:
    """Read one configuration: what is built in may name files, all else is refused."""
    if not isinstance(spot.value, dict):
        return
    kind, place = spot.text("kind"), f"{path}:{spot.line}"
    subject = printable(kind, 80) or "plugin"
    marks = [each for meta in spot.under("metadata") for marks in meta.under("annotations") for each in _keys(marks)]
    if any(name in marks for name in _FUNCTIONS):
        yield Problem(subject, "is a function: a program or container that isn't run here", place, _PLUGIN_FIX)
    elif spot.text("apiVersion") != "builtin":
        yield Problem(subject, "is a plugin outside of kustomize, which isn't run here", place, _PLUGIN_FIX)
    elif kind == "HelmChartInflationGenerator":
        charts.append(_chart(spot, kind, spot.text("chartHome")))
        found += _values(spot, kind)
        yield from (
            Problem(subject, "sets configHome; helm has no configuration here", place, "remove it") for _ in spot.under("configHome")
        )
    else:
        found += _sources(spot, kind)
        found += _texts(spot.under("path"), FILE, f"{kind}.path")
        for item in spot.each("paths"):
            found += (each for each in _entry(PATCH, f"{kind}.paths", item) if isinstance(each, Reference))
        for item in spot.each("replacements"):
            found += _texts(item.under("path"), FILE, f"{kind}.replacements.path")


def _keys(spot: Spot) -> list[str]:
    return list(spot.value) if isinstance(spot.value, dict) else []


# --- the copy that is built
def _noted(document: dict[str, Any]) -> str:
    """Return it as JSON that lets kustomize note where objects come from; empty: it does so already, or kustomize refuses it anyway."""
    key = next((key for key in document if key.casefold() == BUILD_METADATA.casefold()), BUILD_METADATA)
    known = document.get(key) or []
    silent = all(value in (None, "") or name.casefold() in ("apiversion", "kind") for name, value in document.items())
    if silent or not isinstance(known, list) or ORIGINS in known:
        return ""
    return json.dumps({**document, key: [*known, ORIGINS]})


# --- on the pipe
def encode_mentions(number: int, reading: Mentions) -> bytes:
    """Write what the file of this number names."""
    return b"K%d " % number + json.dumps(asdict(reading)).encode()


def decode_mentions(frame: bytes) -> Mentions:
    """Read one strictly: the child isn't believed. Raises ValueError, TypeError, KeyError."""
    facts = json.loads(frame)
    references = tuple(Reference(**each) for each in facts["references"])
    charts = tuple(ChartEntry(**each) for each in facts["charts"])
    objects = tuple((str(key), int(line)) for key, line in facts["objects"])
    texts = (facts["path"], facts["noted"], *(t for r in references for t in (r.sort, r.field, r.text)))
    texts += tuple(t for c in charts for t in (c.field, c.name, c.version, c.repo, c.home))
    lines = [*(each.line for each in references), *(each.line for each in charts)]
    if not all(isinstance(text, str) for text in texts) or not all(type(line) is int for line in lines):
        raise ValueError("no reading")
    return Mentions(facts["path"], references, charts, objects, facts["noted"])
