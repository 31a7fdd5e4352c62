"""The chart that a target renders, whole: its files, and the charts that it needs, where helm looks for them.

    in the tree        the directory `path`; or the archive of `renderer.chart`
    charts/            as git has it
    file://../other    taken from the tree, put into charts/ as `helm dependency build` would pack it
    oci://, https://   fetched by the handler, put into charts/ as .tgz; the version of Chart.lock, else the range

Law: nothing is fetched but by `OutsideInputs.chart`; the child looks at the bytes, the worker places them.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from handler.config.renderer_settings import Chart
from handler.model.advice import advice
from handler.model.errors import ManifestInvalid, Problem, SourceRefused
from handler.model.outside_inputs import ChartReference, FetchedChart, KnownChart, NothingOutside, OutsideInputs, chart_read
from handler.model.tree import DIRECTORY, MAX_PATH, Tree, printable, resolve_links
from handler.render.charts.chart_readers import locked
from handler.render.folders import CHART, inside
from handler.render.frames import decode_problem
from handler.render.helm.chart_facts import ChartFacts, Dependency, decode_facts
from handler.render.sandbox import Sandbox
from handler.render.tree_files import TreeFiles

FILE, REMOTE = "file://", ("oci://", "https://", "http://")
"""How the repository of a chart of the same checkout begins, and of one from elsewhere."""
_MAX_ROUNDS = 10  # of charts that need charts


@dataclass(slots=True)
class ChartFiles:
    """A chart as helm is given it. `files`: path below it -> bytes; `place`: its path in git; `archive`: `files` is one .tgz.

    `lock`: returns what git says of charts from elsewhere; `moved`: path below it of what was put there -> its path in git; `reads`: what
    was looked at; charts from elsewhere join it.
    """

    files: dict[str, bytes]
    place: str
    lock: Callable[[], Sequence[KnownChart]] = tuple
    archive: bool = False
    moved: dict[str, str] = field(default_factory=dict)
    reads: dict[str, str] = field(default_factory=dict)

    def fetch(self, reference: ChartReference, outside: OutsideInputs) -> FetchedChart:
        """Fetch a chart, and note that it was. Raises AnnealError."""
        wanted = locked(reference, self.lock())
        found, name = outside.chart(wanted), chart_read(wanted)
        self.reads[name] = outside.ask(name)
        return found


def fetched_chart(chart: Chart, outside: OutsideInputs, lock: Callable[[], Sequence[KnownChart]], reads: dict[str, str]) -> ChartFiles:
    """Return the chart that an operator wrote. `lock`, `reads`: see `ChartFiles`. Raises AnnealError: it can't be fetched."""
    found = ChartFiles({}, "", lock, archive=True, reads=reads)
    archive = found.fetch(ChartReference(chart.oci or chart.repository, chart.name, chart.version, chart.digest), outside)
    name = chart.name or chart.oci.rpartition("/")[2]
    found.place = printable(f"{name}-{archive.version}.tgz")
    found.files["chart.tgz"] = archive.data
    return found


@dataclass(slots=True)
class Completion:
    """Puts into charts/ what a chart needs.

    `tree_files`: holds the chart's directory already; `noted`: gets what is from elsewhere, which is then not fetched.
    """

    chart: ChartFiles
    tree_files: TreeFiles
    outside: OutsideInputs
    sandbox: Sandbox
    noted: dict[Dependency, ChartReference] | None = None
    tried: set[Dependency] = field(default_factory=set)

    def run(self, beside: Sequence[tuple[str, bytes]]) -> ChartFacts:
        """Return the facts of the whole chart. `beside`: values whose texts templates may execute.

        Raises SourceRefused: charts are missing, all of them named; ManifestInvalid: an archive is refused; AnnealError: one can't be had.
        """
        for _ in range(_MAX_ROUNDS):
            facts = scan(self.chart, beside, self.sandbox)
            missing = self._missing(facts)
            problems = [problem for key, each in missing.items() for problem in self._supply(key, each)]
            if problems:
                raise SourceRefused(*problems)
            if not missing:
                return facts
        raise SourceRefused.of("dependencies", f"need each other more than {_MAX_ROUNDS} deep", place=self._place(CHART))

    def _missing(self, facts: ChartFacts) -> dict[Dependency, Dependency]:
        """Return what is to be supplied, once by what it is known by: a chart may be needed under several aliases."""
        found: dict[Dependency, Dependency] = {}
        for each in facts.missing:
            found.setdefault(replace(each, alias="", place=""), each)
        return {key: each for key, each in found.items() if key not in (self.noted or ())}

    def _supply(self, key: Dependency, needed: Dependency) -> list[Problem]:
        """Add one chart; return why it can't be. `key`: by what it is known."""
        subject = f"dependency {needed.name or '?'}"
        if not needed.name:
            return [Problem(subject, "has no name", needed.place, "write `name:`")]
        if self.chart.archive:
            fix = "run `helm dependency build`, and pack the chart anew"
            return [Problem(subject, "isn't in the archive of the chart that needs it", needed.place, fix)]
        if key in self.tried:
            return [
                Problem(subject, f"{needed.repository} is a chart of another name", needed.place, "write `name:` as its Chart.yaml does")
            ]
        self.tried.add(key)
        if needed.repository.startswith(FILE):
            return self._from_tree(needed, subject)
        if needed.repository.startswith(REMOTE):
            self._from_elsewhere(key, needed)
            return []
        seen, way = "isn't in charts/", self._way(needed)
        if needed.repository:
            seen += f", and its repository {needed.repository} is a name that only `helm repo add` knows"
            way = advice("write the repository's URL, or {text}", way)
        return [Problem(subject, seen, needed.place, way)]

    def _way(self, needed: Dependency) -> str:
        above = self._place(needed.at) or "."
        return advice("run `helm dependency build {path}` and commit {text}/", above, printable(posixpath.join(above, "charts")))

    def _from_tree(self, needed: Dependency, subject: str) -> list[Problem]:
        home = self._place(needed.at)
        source = posixpath.normpath(posixpath.join(home, needed.repository.removeprefix(FILE)))
        if source.startswith(("..", "/")):
            return [Problem(subject, f"{needed.repository} leads out of the repository", needed.place, self._way(needed))]
        source = "" if source == "." else source
        resolved = resolve_links(self.tree_files.tree, source)
        if resolved.entry is None or resolved.entry.mode != DIRECTORY:
            self.tree_files.reads.update(resolved.looked)
            seen = f"{needed.repository} leads to {printable(source)}, which is no directory of the commit"
            return [Problem(subject, seen, needed.place, self._way(needed))]
        if inside(home, source):
            return [Problem(subject, f"{needed.repository} leads to a directory that the chart itself is in", needed.place)]
        self.tree_files.add(source)
        target = posixpath.join(needed.at, "charts", needed.name)
        if target in self.chart.moved:
            seen = f"{needed.repository} and {self.chart.moved[target]} can't both be {printable(target)}"
            return [Problem(subject, seen, needed.place, "give the charts names of their own")]
        self.chart.moved[target] = printable(source, MAX_PATH)
        self.chart.files |= {posixpath.join(target, path): data for path, data in below(contents(self.tree_files), source).items()}
        return []

    def _from_elsewhere(self, key: Dependency, needed: Dependency) -> None:
        reference = ChartReference.of(needed.repository, needed.name, needed.version, needed.place)
        if self.noted is not None:
            self.noted[key] = reference
            return
        archive = self.chart.fetch(reference, self.outside)
        target = posixpath.join(needed.at, "charts", f"{needed.name}-{archive.version}.tgz")
        self.chart.moved[target] = printable(f"{needed.name}-{archive.version}.tgz")
        self.chart.files[target] = archive.data

    def _place(self, at: str) -> str:
        """Return the path in git of a chart, by its path below the rendered one."""
        return self.chart.moved.get(at) or posixpath.join(self.chart.place, at).removesuffix("/")


def charts_elsewhere(tree: Tree, path: str, sandbox: Sandbox) -> tuple[ChartReference, ...]:
    """Return the charts from elsewhere that a render of the chart at a path fetches, without fetching any.

    Raises SourceRefused: as a render, where one can't be had; ManifestInvalid: an archive is refused.
    """
    files, noted = TreeFiles(tree), dict[Dependency, ChartReference]()
    files.add(path)
    Completion(ChartFiles(below(contents(files), path), path), files, NothingOutside(), sandbox, noted).run(())
    return tuple(noted.values())


def contents(files: TreeFiles) -> Mapping[str, bytes]:
    """Return what was taken of the tree. Raises SourceRefused: Git LFS holds a file, or they are too large."""
    found = files.contents()
    if files.pointers:
        lfs = "is a Git LFS pointer; LFS isn't supported"
        raise SourceRefused(*(Problem(printable(path), lfs) for path in sorted(files.pointers)[:100]))
    return found


def below(files: Mapping[str, bytes], directory: str) -> dict[str, bytes]:
    """Return the files below a directory, by their path below it."""
    cut = len(directory) + 1 if directory else 0
    return {path[cut:]: data for path, data in files.items() if inside(path, directory)}


def scan(chart: ChartFiles, beside: Sequence[tuple[str, bytes]], sandbox: Sandbox) -> ChartFacts:
    """Let a child look through a chart. Raises ManifestInvalid: an archive in it is refused."""
    place = printable(chart.place, MAX_PATH)
    options = {
        "place": place,
        "paths": [printable(path, MAX_PATH) for path in chart.files],
        "archive": chart.archive,
        "moved": chart.moved,
        "beside": [name for name, _ in beside],
    }
    parts = [*chart.files.values(), *(data for _, data in beside)]
    rows = sandbox.run("chart", options, parts, _decoded, subject=place or "repository")
    problems = [row for row in rows if isinstance(row, Problem)]
    if problems:
        raise ManifestInvalid(*problems)
    return next((row for row in rows if isinstance(row, ChartFacts)), ChartFacts())


def _decoded(frame: bytes) -> ChartFacts | Problem:
    return decode_problem(frame) if frame[:1] == b"P" else decode_facts(frame)
