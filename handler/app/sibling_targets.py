"""Which targets are siblings: of one repository, revision, cluster and installation. `handler.engine.planner.siblings` asks them.

Law: the configuration says which; clusters are asked only where two targets reach theirs in different ways. A target whose cluster can't be
asked then may be on this one: what git declares for it isn't deleted. Targets that follow one branch by different promotions are siblings,
too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from handler.app.connections import Connections
from handler.app.record_places import TargetRecords, former_places
from handler.app.record_summaries import listed
from handler.cluster.discovery import Discovery
from handler.config.settings import Target
from handler.engine.planner.desired import Preparer
from handler.engine.planner.siblings import Sibling
from handler.model.errors import AnnealError
from handler.model.names import applyset_id
from handler.plan.handover import FoundRecord
from handler.plan.inventory import TargetMarks
from handler.state.configmap import state_name
from handler.state.former import RecordName
from handler.state.store import StoredState


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
        others = [each for each in self._ways.settings.targets if each.name != mine.name and each.revision.is_like(mine.revision)]
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
        places = (RecordName(other.name, self._ways.settings.state_namespace), *former_places(self._ways.settings, other))
        marks = [TargetMarks(each.name, applyset_id(state_name(each.name), each.namespace)) for each in places]
        preparer, record = partial(self._preparer, other, uncertain), partial(self._record, other)
        return Sibling(other, marks, preparer, record, uncertain, other.revision.promoted != self._target.revision.promoted)

    def _names(self, other: Target) -> tuple[str, ...]:
        """Return the ConfigMaps of a target's record in this state namespace, that which it takes over last."""
        return tuple(state_name(name) for name in (other.name, other.renamed_from) if name)

    def _record(self, other: Target) -> StoredState:
        """Read a target's record, or until it has one that which it takes over."""
        stored = self._ways.store(other).read()
        if stored.state is not None:
            return stored
        records = TargetRecords(self._ways, other)
        formers = (records.at(place).store.read() for place in records.configured)
        return next((each for each in formers if each.state is not None and not each.state.fresh), stored)

    def _preparer(self, other: Target, uncertain: bool) -> Preparer:
        return self._prepare(other, self._ways.discovery(self._target) if uncertain else None)
