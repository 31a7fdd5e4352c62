"""What is known of charts before they are asked for, and what is to be recorded after. Pure.

    digest of the reference    set for the target, or locked in git     counts first: both are written by a person
    record, same commit        what a range led to                      a range is resolved once a commit
    record, any commit         the digest of a version                  other bytes for it are refused

Law: bytes for a known version change only by what is written in git or in the configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from handler.model.advice import advice
from handler.model.errors import ChartChanged
from handler.model.outside_inputs import ChartReference, FetchedChart, KnownChart, chart_identity
from handler.model.tree import printable
from handler.source.charts.chart_versions import is_exact

KEPT = 100  # entries of one target's record


@dataclass(frozen=True, slots=True)
class ExpectedDigest:
    """What a chart's archive must be; `source` says from where that is known, as it reads after the digest."""

    digest: str
    source: str


@dataclass(frozen=True, slots=True)
class ChartPins:
    """What a target's record holds, oldest first, and the commit that is rendered; empty: files that no commit holds."""

    known: tuple[KnownChart, ...] = ()
    commit: str = ""

    def version(self, reference: ChartReference) -> str:
        """Return the version that a reference leads to; empty: a range that is to be resolved."""
        if is_exact(reference.version):
            return reference.version
        found = [each.version for each in self._of(reference) if each.asked == reference.version and each.commit == self.commit]
        return found[-1] if found and self.commit else ""

    def expected(self, reference: ChartReference, version: str) -> ExpectedDigest | None:
        """Return what the archive of a version must be; None: it is used for the first time."""
        if reference.digest:
            return ExpectedDigest(reference.digest, f"as is written for {reference.place or 'the target'}")
        found = [each for each in self._of(reference) if version in (each.version, each.asked)]
        return ExpectedDigest(found[-1].digest, f"as was recorded with commit {found[-1].commit[:12] or '(none)'}") if found else None

    def judge(self, reference: ChartReference, version: str, digest: str) -> None:
        """Raise ChartChanged, naming both digests and the ways out, if a version isn't what is known of it."""
        expected = self.expected(reference, version)
        if expected is None or expected.digest == digest:
            return
        subject = f"chart {printable(reference.name or reference.url)} {printable(version, 80)}"
        seen = f"{printable(reference.url)} serves {digest}, not {expected.digest} {expected.source}: its bytes have changed"
        fix = advice(
            "ask who publishes it; where the change is meant, run `anneal vendor DIR --lock` and commit anneal.lock,"
            " or write in the target: renderer: {chart: {digest: {yaml}}}",
            digest,
        )
        raise ChartChanged.of(subject, seen, place=reference.place, fix=fix)

    def recorded(self, charts: Iterable[FetchedChart]) -> tuple[KnownChart, ...]:
        """Return what a target's record holds once a commit was rendered with these charts; the oldest entries go first.

        An entry that alone knows a version's digest goes after those that are repeated.
        """
        new = [_entry(each, self.commit) for each in charts]
        entries = [*(each for each in self.known if not _outdated(each, new)), *new]
        while len(entries) > KEPT:
            entries.remove(next(_repeated(entries), entries[0]))
        return tuple(entries)

    def _of(self, reference: ChartReference) -> Iterator[KnownChart]:
        wanted = chart_identity(reference.url, reference.name)
        return (each for each in self.known if _key(each) == wanted)


def _entry(chart: FetchedChart, commit: str) -> KnownChart:
    url, name = chart_identity(chart.reference.url, chart.reference.name)
    return KnownChart(url, name, chart.reference.version, chart.version, chart.digest, commit)


def _key(known: KnownChart) -> tuple[str, str]:
    return chart_identity(known.url, known.name)


def _outdated(known: KnownChart, new: Iterable[KnownChart]) -> bool:
    """Whether a new entry answers the same question, or has other bytes for the same version: a person has written that."""
    same = [each for each in new if _key(each) == _key(known)]
    return any(
        (each.asked, each.commit) == (known.asked, known.commit)
        or (each.version == known.version and (each.digest != known.digest or is_exact(known.asked)))
        for each in same
    )


def _repeated(entries: list[KnownChart]) -> Iterator[KnownChart]:
    """Yield the entries, oldest first, whose version a later one knows too."""
    later = {(_key(each), each.version): at for at, each in enumerate(entries)}
    return (each for at, each in enumerate(entries) if later[_key(each), each.version] > at)
