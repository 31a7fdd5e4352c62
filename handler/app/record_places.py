"""Where records of targets are on their clusters, beside the place that the configuration names.

Law: it only reads metadata, of ConfigMaps that are ApplySet parents of ours by their name and namespace. Where all namespaces may not be
listed the target's own is: what can't be seen refuses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handler.app.connections import Connections, RecordPlace
from handler.app.record_summaries import TOOLING
from handler.config.settings import Settings, Target
from handler.engine.run.former_record import FormerRecord
from handler.model.errors import AccessDenied
from handler.plan.handover import FoundRecord
from handler.state.configmap import ID, INSTALLATION, RENAMED_FROM, TARGET, foreign
from handler.state.known_summaries import summary_in
from handler.state.record import FORMAT, State
from handler.state.record_values import RecordName
from handler.state.summary import home_of


def former_places(settings: Settings, target: Target) -> tuple[RecordName, ...]:
    """Return where a target may have a record of before, as the configuration says, likeliest first."""
    names = dict.fromkeys(filter(None, (target.name, target.renamed_from)))
    spaces = dict.fromkeys(filter(None, (settings.state_namespace_from, settings.state_namespace)))
    places = (RecordName(name, space) for name in names for space in spaces)
    return tuple(each for each in places if not each.is_same(target.name, settings.state_namespace))


class TargetRecords:
    """The records of one target: `namespace`, where its own is; `configured`: where it may have had one, likeliest first."""

    def __init__(self, ways: Connections, target: Target) -> None:
        settings = ways.settings
        self._ways, self._target = ways, target
        self.namespace = settings.state_namespace
        self.configured: Sequence[RecordName] = former_places(settings, target)

    def at(self, place: RecordName) -> FormerRecord:
        """Return the record at a place, not read yet."""
        where = RecordPlace(place.namespace, place.name, self._ways.settings.installation)
        return FormerRecord(place, self._ways.store_at(self._target, where), self._ways.lock_at(self._target, where))

    def is_target(self, place: RecordName) -> bool:
        """Whether it is that of another target which is configured."""
        return place.name != self._target.name and self._ways.settings.target(place.name) is not None

    def elsewhere(self, state: State) -> Sequence[RecordName]:
        """Return the records that this target has in other namespaces, or has by now under a name that isn't configured.

        `state`: its blank one; those of other repositories don't count, and a directory's is where the command line says. Raises
        AnnealError.
        """
        if self._target.repository.is_directory:
            return ()
        name, homes, settings = self._target.name, self._homes(state.cluster_uid), self._ways.settings
        found = (each for each in self._beside() if each.target == name or settings.target(each.target) is None)
        return [RecordName(each.target, each.namespace) for each in found if each.home in homes]

    def takers(self) -> Iterator[RecordName]:
        """Yield the records that may take this target's own over: of another name, or in another namespace. Raises AnnealError."""
        yield from (RecordName(each.target, each.namespace) for each in self._beside())

    def _beside(self) -> Iterator[_Parent]:
        """Yield this installation's records of the target's name in other namespaces, then those that say they were called so."""
        name, ours = self._target.name, f"{INSTALLATION}={self._ways.settings.installation}"
        yield from (each for each in self._parents(f"{TARGET}={name},{ours}") if each.namespace != self.namespace)
        yield from self._parents(f"{RENAMED_FROM}={name},{ours}")

    def parent(self, applyset: str) -> FoundRecord | None:
        """Return the record that is the parent of an ApplySet; None: none is seen. Raises AnnealError."""
        found = next(self._parents(f"{ID}={applyset}"), None)
        if found is None:
            return None
        installation = "" if found.installation == self._ways.settings.installation else found.installation
        ours = not installation and found.home in self._homes(self._ways.cluster_uid(self._target))
        shared = self._ways.settings.is_shared
        return FoundRecord(found.target, found.namespace, installation, ours, found.namespace != self.namespace, shared)

    def _homes(self, cluster_uid: str) -> set[str]:
        """Return the digests of where records of the target's repository belong, in every format."""
        url, installation = self._target.repository.url, self._ways.settings.installation
        return {home_of(url, installation, cluster_uid, each + 1) for each in range(FORMAT)}

    def _parents(self, selector: str) -> Iterator[_Parent]:
        """Yield the records with these labels: in all namespaces, or where that isn't allowed in the target's own."""
        objects = self._ways.objects(self._target)
        try:
            found = objects.overview("ConfigMap", "", selector)
        except AccessDenied:
            found = objects.overview("ConfigMap", self.namespace, selector)
        yield from filter(None, (_parent(body["metadata"]) for body in found))


@dataclass(frozen=True, slots=True)
class _Parent:
    target: str
    namespace: str
    installation: str
    home: str


def _parent(metadata: Mapping[str, Any]) -> _Parent | None:
    labels, namespace = metadata.get("labels") or {}, str(metadata["namespace"])
    name = str(labels.get(TARGET) or "")
    if foreign(dict(metadata), namespace, name, TOOLING):
        return None
    summary = summary_in(metadata)
    return _Parent(name, namespace, str(labels.get(INSTALLATION) or ""), summary.home if summary else "")
