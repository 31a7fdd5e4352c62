"""The cheapest files of tests that kill what all kill and keep a test for each promise; the table that says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

ENOUGH = 0.98
"""The share of the killed mutants that the gate must kill."""
NIGHT = "/nightly/"
CHEAP = 3.0
"""So many CPU seconds a file of the gate may cost for which nothing measured speaks."""


@dataclass
class TestFile:
    """What was measured of one file of tests."""

    path: str
    """From the root of the checkout."""
    seconds: float = 0.0
    """Of CPU: its process, children and share of the servers, and its import."""
    wall: float = 0.0
    """Seconds that its tests took, one after the other."""
    tests: int = 0
    """How many cases it has."""
    alone: int = 0
    """Lines and branches of the product that no other file covers."""
    kills: set[str] = field(default_factory=set)
    """Mutants, and promises: what the gate must not lose."""

    @property
    def tier(self) -> str:
        """Where it stands."""
        return "night" if NIGHT in self.path else "gate"


def cheapest(files: Iterable[TestFile], mutants: set[str], promises: set[str]) -> list[TestFile]:
    """Return files that together keep all promises and ENOUGH of the mutants, for few seconds.

    Greedy, the most per second first (Chvátal 1979), then without those that the later ones made needless.
    """
    left, chosen, remaining = mutants | promises, list[TestFile](), sorted(files, key=lambda file: file.path)
    spare = int(len(mutants) * (1 - ENOUGH))
    while len(left & mutants) > spare or left & promises:
        best = max(remaining, key=lambda file: len(file.kills & left) / max(file.seconds, 0.05), default=None)
        if best is None or not best.kills & left:
            break
        left -= best.kills
        chosen.append(best)
        remaining.remove(best)
    return _without_needless(chosen, mutants, promises)


def _without_needless(chosen: Sequence[TestFile], mutants: set[str], promises: set[str]) -> list[TestFile]:
    kept = list(chosen)
    lost = mutants - killed(kept)
    for file in sorted(chosen, key=lambda file: -file.seconds):
        without = [other for other in kept if other is not file]
        if mutants - killed(without) <= lost and promises - killed(without) <= promises - killed(kept):
            kept = without
    return kept


def killed(files: Iterable[TestFile]) -> set[str]:
    """Return what these files keep."""
    return set[str]().union(*(file.kills for file in files))


def table(files: Sequence[TestFile], gate: Sequence[TestFile], mutants: Mapping[str, str], promises: set[str]) -> str:
    """Return the lines of the table, dearest file first, and the sums.

    Args:
        files: All files.
        gate: Those of `cheapest`.
        mutants: The killed ones, each by name with its place.
        promises: Which a test guards.
    """
    names = {file.path for file in gate}
    lines = [f"{'CPU s':>8} {'wall s':>8} {'tests':>6} {'alone':>6} {'mutants':>8} {'promises':>8}  tier   measured  file"]
    lines += [
        f"{file.seconds:8.1f} {file.wall:8.1f} {file.tests:6} {file.alone:6} {len(file.kills & mutants.keys()):8}"
        f" {len(file.kills & promises):8}  {file.tier:6} {'gate' if file.path in names else '':8}  {file.path}"
        for file in sorted(files, key=lambda file: -file.seconds)
    ]
    stands = [file for file in files if file.tier == "gate"]
    for said, some in (("all", files), ("gate as it stands", stands), ("cheapest gate", gate)):
        kept = killed(some)
        lines.append(
            f"{said}: {len(some)} files, {sum(file.tests for file in some)} tests, {sum(file.seconds for file in some):.0f} CPU s,"
            f" {len(kept & mutants.keys())} of {len(mutants)} killed mutants, {len(kept & promises)} of {len(promises)} promises"
        )
    spare = [file for file in stands if file.path not in names and not file.alone and file.seconds > CHEAP]
    lines += [f"in the gate for nothing measured: {file.path}, {file.seconds:.0f} s" for file in spare]
    lines += [f"killed at night only: {place}" for name, place in sorted(mutants.items()) if name not in killed(stands)]
    lines += [f"promised, and tested at night only: {promise}" for promise in sorted(promises - killed(stands))]
    return "\n".join(lines)
