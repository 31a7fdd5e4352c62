"""`anneal vendor DIR --lock`: writes anneal.lock beside what needs charts from elsewhere: charts, kustomizations, targets' paths.

Law: a person runs it and commits what it writes: it resolves every range anew and takes what is served now, and says which bytes of a known
version have changed. Without a configuration only the repositories that a Chart.yaml names are asked, without credentials.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from handler.app.external_services import fetcher
from handler.cli.checkout_charts import charts_needed
from handler.cli.checkout_kustomizations import files_below, kustomizations
from handler.config.renderer_settings import ChartSource, chart_references
from handler.config.secrets import Secrets, resolve
from handler.config.settings import Target
from handler.model.errors import AnnealError, Problem, SourceRefused
from handler.model.outside_inputs import ChartReference, FetchedChart, KnownChart, chart_identity
from handler.model.tree import printable
from handler.render.charts.chart_lock import LOCK
from handler.render.charts.chart_readers import read_index, read_lock, read_name
from handler.render.folders import CHART
from handler.render.kustomize.kustomize_closure import wanted_chart
from handler.render.sandbox import Sandbox
from handler.source.charts.chart_fetcher import ChartFetcher
from handler.source.charts.chart_index_cache import ChartIndexes
from handler.source.checkout import root_around
from handler.source.git_host import SharedConnections

if TYPE_CHECKING:
    from handler.cli.session import Session

_HEAD = "# Charts from elsewhere, and the bytes that they must have. `anneal vendor DIR --lock` writes this file: commit it.\ncharts:\n"
_NO_FIELD = frozenset({"name", "range"})  # left out where they are empty

ReadLock = Callable[[bytes, str], Sequence[KnownChart]]
Fetch = Callable[[ChartReference, tuple[ChartSource, ...]], FetchedChart]


@dataclass(frozen=True, slots=True)
class ToLock:
    """One directory and what is rendered there: the charts from elsewhere, and where the operator lets them come from."""

    directory: Path
    references: tuple[ChartReference, ...]
    sources: tuple[ChartSource, ...] = ()


def lock_charts(session: Session, directory: Path) -> list[str]:
    """Write the locks below a directory of a checkout; return a line for each chart. Raises AnnealError: one can't be had."""
    session.sandbox.start()
    found = to_lock(directory, session.operators_targets, session.sandbox)
    fetch = _fetching(session, found)
    return [line for each in found for line in write_lock(each, fetch, partial(read_lock, session.sandbox))]


def _fetching(session: Session, found: Sequence[ToLock]) -> Fetch:
    """Return what fetches charts, with the secrets of the sources that are needed, and of no others."""
    stores = fetcher(session.environ)
    refs = {ref for each in found for _, ref in chart_references(each.sources)}
    read = {ref: resolve(ref, session.environ, stores) for ref in refs}
    secrets = Secrets(git=read, known=read)
    pools = SharedConnections().pools

    @cache
    def made(sources: tuple[ChartSource, ...]) -> Callable[[ChartReference], FetchedChart]:
        charts = ChartFetcher(sources, secrets, partial(read_index, session.sandbox), partial(read_name, session.sandbox), pools)
        return partial(charts.fetch, indexes=ChartIndexes())

    return lambda reference, sources: made(sources)(reference)


def _inflated(directory: Path, sandbox: Sandbox) -> dict[Path, tuple[ChartReference, ...]]:
    """Return the charts from elsewhere that kustomizations below a directory inflate, by the directory of each."""
    found = {
        file.parent: tuple(
            wanted_chart(each, f"{file}:{each.line}")
            for each in mentions.charts
            if each.repo and not _is_pulled(file.parent / each.home, each.name, each.version)
        )
        for file, mentions in kustomizations(directory, sandbox)
    }
    return {place: references for place, references in found.items() if references}


def _is_pulled(home: Path, name: str, version: str) -> bool:
    return (home / (f"{name}-{version}" if version else "") / name / CHART).is_file()


def to_lock(directory: Path, targets: Sequence[Target], sandbox: Sandbox) -> list[ToLock]:
    """Return what is rendered below a directory, in order: charts that are in no other chart's charts/, kustomizations, targets' paths.

    What a kustomization inflates comes from where a target that inflates any lets it come from. Raises AnnealError: a chart can't be read,
    or needs one that a render can't have either.
    """
    sources = tuple(dict.fromkeys(each for target in targets if target.renderer.helm_charts for each in target.charts))
    found = {place: ToLock(place, references, sources) for place, references in _inflated(directory, sandbox).items()}
    for chart, references in _needing(directory, sandbox):
        before = found.get(chart, ToLock(chart, ()))
        found[chart] = replace(before, references=tuple(dict.fromkeys((*before.references, *references))))
    root = root_around(directory) or directory.resolve()
    for target in targets:
        place = (root / target.path).resolve() if target.path else root
        if not place.is_relative_to(directory.resolve()) or not place.is_dir():
            continue
        key = next((each for each in found if each.resolve() == place), place)
        before = found.get(key, ToLock(key, ()))
        asked = target.renderer.chart
        own = (ChartReference(asked.oci or asked.repository, asked.name, asked.version),) if asked else ()
        if before.references or own:
            found[key] = replace(before, references=(*before.references, *own), sources=(*before.sources, *target.charts))
    return [found[path] for path in sorted(found)]


def write_lock(what: ToLock, fetch: Fetch, read: ReadLock) -> Iterator[str]:
    """Fetch the charts of one directory, write its lock where it differs, and yield what has become of each. Raises AnnealError."""
    path = what.directory / LOCK
    if path.is_symlink():
        raise SourceRefused.of(printable(str(path)), "is a symbolic link; nothing is written through it", fix="remove it")
    before = {_key(each): each for each in _before(path, read)}
    entries = [_locked(reference, what.sources, fetch) for reference in what.references]
    entries = sorted({_key(each): each for each in entries}.values(), key=lambda each: (each.url, each.name, each.asked))
    text = _HEAD + "".join(_written(each) for each in entries)
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)
    for each in entries:
        yield f"{path}: {_change(each, before.get(_key(each)))}"


def _charts(directory: Path) -> list[Path]:
    """Return the directories of charts, links not followed; what is below a chart is a part of it, but for charts of their own beside."""
    found: list[Path] = []
    for path in files_below(directory, (CHART,)):
        if not any("charts" in path.parent.relative_to(each).parts for each in found if path.parent.is_relative_to(each)):
            found.append(path.parent)
    return found


def _needing(directory: Path, sandbox: Sandbox) -> list[tuple[Path, tuple[ChartReference, ...]]]:
    """Return the charts that need others from elsewhere, and which. Raises SourceRefused: what none of them can have, all at once."""
    found: list[tuple[Path, tuple[ChartReference, ...]]] = []
    problems: list[Problem] = []
    for chart in _charts(directory):
        try:
            references = charts_needed(chart, directory, sandbox)
        except SourceRefused as error:
            problems += error.problems
            continue
        if references:
            found.append((chart, references))
    if problems:
        raise SourceRefused(*dict.fromkeys(problems))
    return found


def _locked(reference: ChartReference, sources: tuple[ChartSource, ...], fetch: Fetch) -> KnownChart:
    chart = fetch(reference, sources or (ChartSource(reference.url),))
    url, name = chart_identity(reference.url, reference.name)
    return KnownChart(url, name, reference.version, chart.version, chart.digest)


def _before(path: Path, read: ReadLock) -> Sequence[KnownChart]:
    """Return what a lock holds; one that can't be read is written anew."""
    try:
        return read(path.read_bytes(), str(path)) if path.is_file() else ()
    except AnnealError:
        return ()


def _key(chart: KnownChart) -> tuple[str, str, str]:
    return (*chart_identity(chart.url, chart.name), chart.asked)


def _written(chart: KnownChart) -> str:
    fields: Mapping[str, str] = {
        "url": chart.url,
        "name": chart.name,
        "range": chart.asked if chart.asked != chart.version else "",
        "version": chart.version,
        "digest": chart.digest,
    }
    lines = [f"{name}: {json.dumps(text)}" for name, text in fields.items() if text or name not in _NO_FIELD]
    return "- " + "\n  ".join(lines) + "\n"


def _change(chart: KnownChart, before: KnownChart | None) -> str:
    name = chart.name or chart.url.rpartition("/")[2]
    if before is None:
        return f"{name} {chart.version} {chart.digest}"
    if before.version != chart.version:
        return f"{name} {before.version} -> {chart.version} {chart.digest}"
    if before.digest != chart.digest:
        return f"{name} {chart.version}: ITS BYTES HAVE CHANGED, {before.digest} -> {chart.digest}"
    return f"{name} {chart.version} as before"
