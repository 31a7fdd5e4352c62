"""What a target that follows others is made of: whose records it reads, by which ways, and how the git host is asked.

Records of targets that are configured here are read as those targets' own; those of another installation by ways of their own, for no flag
of a command line means its cluster.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from handler.app.connections import Connections
from handler.app.other_records import ConfiguredRecords, ForeignRecords
from handler.app.summarised_records import SummarisedRecords
from handler.config import target_order
from handler.config.git_settings import Promoted, Revision
from handler.config.settings import Target
from handler.engine.run.other_records import OtherRecords
from handler.engine.run.promotion import Promoters, Promotion
from handler.engine.run.promotion_claims import Awaited
from handler.model.advice import advice
from handler.model.errors import AnnealError, ConfigInvalid
from handler.state.record import State

_FRESH = 5.0  # seconds


def promoters_of(ways: Connections, target: Target) -> Promoters:
    """Return whom a target follows; of one that follows its revision alone: none. Raises ConfigInvalid: it is a directory."""
    promoted = target.revision.promoted
    if promoted is None:
        return Promoters()
    source = ways.source(target)
    return Promoters(
        target.name,
        target_order.promoters(ways.settings, target),
        promoted.soak,
        target.repository.keys,
        _records(ways, target, promoted),
        lambda since: source.head(target.revision, since).commit,
        ways.ancestry(target).reaches,
        lambda sha: source.fetch(sha, target.path),
        promoted.is_elsewhere,
    )


def promotion_of(ways: Connections, records: SummarisedRecords, target: Target, known: State) -> Promotion:
    """Return what a target that follows others should be on, by summaries; by whole records, where another installation writes them.

    `known`: its own record. Raises AnnealError: its git host doesn't answer.
    """
    return _seen_by(ways, records, target).choose(known, records.now)


def _seen_by(ways: Connections, records: SummarisedRecords, target: Target) -> Promoters:
    promoters = promoters_of(ways, target)
    return promoters if promoters.elsewhere else replace(promoters, records=records)


class AwaitedLooks:
    """What the next commits of targets that follow others wait for; a look serves all that ask within a few seconds. Thread-safe.

    `asks_git`: whether the git host is asked, too, else records alone: the process may not sign in there.
    """

    def __init__(self, ways: Connections, *, asks_git: bool = True) -> None:
        self._ways = ways
        self._asks_git = asks_git
        self._seen: dict[tuple[str, str], tuple[float, Sequence[Awaited]]] = {}

    def __call__(self, target: Target, known: State | None) -> Sequence[Awaited]:
        """Return it for a target with this record; where that can't be looked at, why."""
        key, now = (target.name, known.commit if known else ""), time.monotonic()
        at, found = self._seen.get(key, (-math.inf, ()))
        if now - at < _FRESH:
            return found
        looked = self._looked(target, known)
        self._seen = {other: seen for other, seen in self._seen.items() if other[0] != target.name} | {key: (now, looked)}
        return looked

    def _looked(self, target: Target, known: State | None) -> Sequence[Awaited]:
        records, known = SummarisedRecords(self._ways.settings, self._ways), known or State(target.name, "", "")
        try:
            promoters = _seen_by(self._ways, records, target)
            return promoters.choose(known, records.now).awaited if self._asks_git else promoters.claimed(known, records.now)
        except AnnealError as error:
            return (Awaited("", str(error), advice("anneal check {}", target.name)),)


def _records(ways: Connections, target: Target, promoted: Promoted) -> OtherRecords:
    if promoted.is_elsewhere:
        foreign = ways.elsewhere(promoted.cluster, _foreign(target, promoted), promoted.state_namespace, promoted.installation)
        return ForeignRecords(foreign, _finder(foreign))
    return ConfiguredRecords(ways, _finder(ways))


def _foreign(target: Target, promoted: Promoted) -> tuple[Target, ...]:
    """Return the targets of another installation, as far as their records must be read."""
    like = replace(target, revision=Revision(branch="main"), cluster=promoted.cluster or target.cluster, impersonate=None)
    return tuple(replace(like, name=name) for name in promoted.from_)


def _finder(ways: Connections) -> Callable[[str], Target]:
    def find(name: str) -> Target:
        found = ways.settings.target(name)
        if found is None:
            raise ConfigInvalid.of(f"target {name}", "is not configured")
        return found

    return find
