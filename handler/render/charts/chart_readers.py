"""What render children say of charts' files, read strictly; and how a lock decides what is asked for.

    index.yaml                  the versions of a chart in a repository        chart_index
    Chart.yaml of an archive    the name and version of what it holds          chart_archive
    anneal.lock                 the bytes that charts must have                chart_lock

Law: the child isn't believed: texts have their types and lengths here, and what they mean is judged by whatever uses them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from handler.model.errors import ChartUnavailable, ManifestInvalid, Problem, RenderFailed
from handler.model.outside_inputs import ChartReference, IndexEntry, KnownChart, chart_identity
from handler.model.tree import printable
from handler.render.charts.chart_index import BATCH, LONGEST, MAX_URLS
from handler.render.charts.chart_lock import LOCK, LockRow
from handler.render.frames import decode_problem
from handler.render.sandbox import Sandbox

RELOCK = "run `anneal vendor DIR --lock` on the directory and commit what it writes"


def read_index(sandbox: Sandbox, data: bytes, name: str, place: str) -> tuple[IndexEntry, ...]:
    """Return the versions of a chart in an index, in its order; none: the index doesn't know the chart.

    `place`: where the index is from, for messages. Raises ChartUnavailable: it can't be read; RenderFailed: the child died of it.
    """
    found: list[IndexEntry] = []
    for batch in sandbox.run("chart-index", {"name": name}, [data], _decode_entries, subject=place):
        if isinstance(batch, Problem):
            raise ChartUnavailable.of(place, f"can't be read: {batch.message} (line {batch.place})")
        found += batch
    return tuple(found)


def _decode_entries(frame: bytes) -> list[IndexEntry] | Problem:
    facts = json.loads(frame)
    if isinstance(facts, dict) and isinstance(facts.get("wrong"), str) and type(facts.get("line")) is int:
        return Problem("index", printable(facts["wrong"]), str(facts["line"]))
    if isinstance(facts, list) and len(facts) <= BATCH and all(map(_is_row, facts)):
        return [IndexEntry(version, tuple(urls), digest, name) for version, urls, digest, name in facts]
    raise ValueError("neither entries of an index nor a mistake")


def _is_row(row: object) -> bool:
    if not (isinstance(row, list) and len(row) == 4 and isinstance(row[1], list) and len(row[1]) <= MAX_URLS):
        return False
    return all(isinstance(text, str) and len(text) <= LONGEST for text in (row[0], *row[2:], *row[1]))


def read_name(sandbox: Sandbox, data: bytes, place: str) -> tuple[str, str]:
    """Return the name and version that the Chart.yaml of an archive says; each is empty where it says none.

    `place`: for messages. Raises ManifestInvalid: it can't be unpacked; RenderFailed: the child died of it.
    """
    rows = sandbox.run("chart name", {"place": place}, [data], _decode_name, subject=place)
    if problems := [row for row in rows if isinstance(row, Problem)]:
        raise ManifestInvalid(*problems)
    if len(rows) != 1 or isinstance(rows[0], Problem):
        raise RenderFailed.of(place, "was not answered by the render child")
    return rows[0]


def _decode_name(frame: bytes) -> tuple[str, str] | Problem:
    if frame[:1] == b"P":
        return decode_problem(frame)
    facts = json.loads(frame)
    if isinstance(facts, list) and len(facts) == 2 and all(isinstance(fact, str) and len(fact) <= LONGEST for fact in facts):
        return facts[0], facts[1]
    raise ValueError("no name and version of a chart")


def read_lock(sandbox: Sandbox, data: bytes, path: str) -> tuple[KnownChart, ...]:
    """Return the entries of a lock, each with its place. Raises ManifestInvalid: every mistake with its line; RenderFailed."""
    rows = sandbox.run("chart-lock", {"path": path}, [data], _decode_row, subject=path)
    problems = [each for each in rows if isinstance(each, Problem)]
    if problems:
        raise ManifestInvalid(*problems)
    found = (each for each in rows if not isinstance(each, Problem))
    return tuple(
        KnownChart(url, name, asked or version, version, digest, place=place) for url, name, asked, version, digest, place in found
    )


def locked(reference: ChartReference, lock: Sequence[KnownChart]) -> ChartReference:
    """Return a reference with the version and digest that a lock gives it; one with a digest of its own, or that isn't locked, as it is.

    Raises ManifestInvalid: the chart is locked, but not for what is asked now.
    """
    if reference.digest:
        return reference
    wanted = chart_identity(reference.url, reference.name)
    same = [each for each in lock if chart_identity(each.url, each.name) == wanted]
    for each in same:
        if each.asked == reference.version:
            return replace(reference, version=each.version, digest=each.digest)
    if same:
        subject = f"chart {printable(reference.name or reference.url)}"
        seen = f"{LOCK} has it for {same[0].asked} ({same[0].place}), and {printable(reference.version, 80)} is asked for"
        raise ManifestInvalid(Problem(subject, seen, reference.place, RELOCK))
    return reference


def _decode_row(frame: bytes) -> LockRow | Problem:
    if frame[:1] == b"P":
        return decode_problem(frame)
    facts = json.loads(frame)
    if isinstance(facts, list) and len(facts) == 6 and all(isinstance(fact, str) and len(fact) <= 5000 for fact in facts):
        url, name, asked, version, digest, place = facts
        return url, name, asked, version, digest, place
    raise ValueError("no entry of a lock")
