"""Which targets are siblings: of one repository, revision, cluster and installation. `handler.engine.planner.siblings` asks them.

Law: the configuration says which; clusters are asked only where two targets reach theirs in different ways. A target whose cluster can't be
asked then may be on this one: what git declares for it isn't deleted. Targets that follow one branch by different promotions are siblings,
too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from handler.app.connections import Connections
from handler.app.record_places import TargetRecords, former_places
from handler.app.record_summaries import listed
from handler.cluster.discovery import Discovery
from handler.config.settings import Target
from handler.engine.planner.desired import Preparer
from handler.engine.planner.siblings import Sibling, SiblingRecord
from handler.engine.run.former_record import former_marks, joined
from handler.model.errors import AnnealError
from handler.model.names import state_name
from handler.plan.handover import FoundRecord
from handler.plan.inventory import TargetMarks


class OneRepository:
    """The siblings of one target. `ways`: to their clusters; `prepare`: makes a preparer, by what its own cluster or another serves."""

    def __init__(self, ways: Connections, target: Target, prepare: Callable[[Target, Discovery | None], Preparer]) -> None:
        self._ways = ways
        self._target = target
        self._prepare = prepare

    def all(self) -> Sequence[Sibling]:
        """Return the siblings. Raises AnnealError."""
        found = [(other, self._is_here(other)) for other in self._alike()]
        return [self._sibling(other, uncertain=here is None) for other, here in found if here is not False]

    def versions(self) -> Mapping[str, str]:
        """Return the resourceVersion of every target's record on this cluster, by target, in one request. Raises AnnealError."""
        found = self._states()
        records = ((other, next((name for name in self._names(other) if name in found), "")) for other in self._alike())
        return {other.name: str(found[name]["resourceVersion"]) for other, name in records if name}

    def knows(self, name: str) -> bool:
        """Whether a target of this name is configured."""
        return any(each.name == name for each in self._ways.settings.targets)

    def record_of(self, applyset: str) -> FoundRecord | None:
        """Return the record that is the parent of an ApplySet; None: none is seen. Raises AnnealError."""
        return TargetRecords(self._ways, self._target).parent(applyset)

    def _alike(self) -> list[Target]:
        mine = self._target
        others = [each for each in self._ways.settings.targets if not each.is_template and each.name != mine.name]
        others = [each for each in others if each.revision.is_like(mine.revision)]
        return [each for each in others if each.repository.is_same(mine.repository)]

    def _is_here(self, other: Target) -> bool | None:
        """Whether another target is on this one's cluster; None: it can't be asked."""
        if other.cluster == self._target.cluster:
            return True
        try:
            return self._ways.cluster_uid(other) == self._ways.cluster_uid(self._target)
        except AnnealError:
            return True if state_name(other.name) in self._states() else None

    def _states(self) -> Mapping[str, Mapping[str, Any]]:
        return listed(self._ways.objects(self._target), self._ways.settings)

    def _sibling(self, other: Target, *, uncertain: bool) -> Sibling:
        marks = TargetMarks.of(other.name, self._ways.settings.state_namespace)
        formers = [TargetMarks.of(each.name, each.namespace) for each in former_places(self._ways.settings, other)]
        preparer, record = partial(self._preparer, other, uncertain), partial(self._record, other)
        return Sibling(other, marks, formers, preparer, record, uncertain, other.revision.promoted != self._target.revision.promoted)

    def _names(self, other: Target) -> tuple[str, ...]:
        """Return the ConfigMaps of a target's record in this state namespace, that which it takes over last."""
        return tuple(state_name(name) for name in (other.name, other.renamed_from) if name)

    def _record(self, other: Target) -> SiblingRecord:
        """Read a target's record, and while it takes another one over what that says."""
        store = self._ways.store(other)
        stored = store.read()
        own = stored.state
        if own is not None and not (own.fresh or own.former):
            return SiblingRecord(own, stored.resource_version)
        records, known = TargetRecords(self._ways, other), own or store.blank(self._ways.cluster_uid(other))
        state, former = joined(records, known, other.repository.url, time.time(), recorded=True)
        if former is None or (own is None and former.stored.state is None):
            return SiblingRecord(own, stored.resource_version)
        is_listed = own is None and former.place.namespace == records.namespace
        return SiblingRecord(state, former.stored.resource_version if is_listed else "?", former_marks(former.place))

    def _preparer(self, other: Target, uncertain: bool) -> Preparer:
        return self._prepare(other, self._ways.discovery(self._target) if uncertain else None)
