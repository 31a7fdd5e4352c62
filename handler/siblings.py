"""Which targets are siblings: of one repository, revision, cluster and installation. `handler.run.handover` asks them.

Law: who is one is asked of the configuration, and of the clusters only where two targets reach theirs in different ways. A cluster that
doesn't answer then is another one, unless the target's record lies here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from handler.config.settings import Settings, Target
from handler.model.errors import AnnealError
from handler.model.match import repository_key
from handler.model.names import applyset_id
from handler.run.handover import Sibling
from handler.run.preparing import Preparer
from handler.run.rooms import Rooms
from handler.state.configmap import state_name
from handler.state.store import StateStore
from handler.summaries import Readable, listed


class Ways(Protocol):
    """What leads to other targets: `handler.build.Handler`."""

    settings: Settings

    def rooms(self, name: str) -> Rooms:
        """Return what a target's runs are made of. Raises AnnealError."""

    def store(self, target: Target) -> StateStore:
        """Return the record of a target. Raises AnnealError."""

    def objects(self, target: Target) -> Readable:
        """Return the way to the states of a target's cluster. Raises AnnealError."""

    def cluster_uid(self, target: Target) -> str:
        """Return the uid of a target's cluster, as it was asked for first. Raises AnnealError."""


class OneRepository:
    """The siblings of one target."""

    def __init__(self, ways: Ways, target: Target) -> None:
        self._ways = ways
        self._target = target

    def all(self) -> Sequence[Sibling]:
        """Return the siblings. Raises AnnealError."""
        return [self._sibling(other) for other in self._alike() if self._is_here(other)]

    def versions(self) -> Mapping[str, str]:
        """Return the resourceVersion of every target's record on this cluster, by target, in one request. Raises AnnealError."""
        found = self._states()
        names = (other.name for other in self._alike() if state_name(other.name) in found)
        return {name: str(found[state_name(name)]["resourceVersion"]) for name in names}

    def _alike(self) -> list[Target]:
        """Return the other targets of the same repository and revision."""
        mine, key = self._target, repository_key(self._target.repository.url)
        others = [each for each in self._ways.settings.targets if each.name != mine.name and each.revision == mine.revision]
        return [each for each in others if repository_key(each.repository.url) == key]

    def _is_here(self, other: Target) -> bool:
        if other.cluster == self._target.cluster:
            return True
        try:
            return self._ways.cluster_uid(other) == self._ways.cluster_uid(self._target)
        except AnnealError:
            return state_name(other.name) in self._states()

    def _states(self) -> Mapping[str, Mapping[str, Any]]:
        return listed(self._ways.objects(self._target), self._ways.settings)

    def _sibling(self, other: Target) -> Sibling:
        applyset = applyset_id(state_name(other.name), self._ways.settings.state_namespace)
        return Sibling(other, applyset, partial(self._preparer, other.name), partial(self._ways.store, other))

    def _preparer(self, name: str) -> Preparer:
        return self._ways.rooms(name).preparer
