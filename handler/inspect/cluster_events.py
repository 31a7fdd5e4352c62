"""The Kubernetes events about a target's objects and what they own, Normal ones and Warnings, the newest first.

Law: an event counts by the uid of what it is about, or by the name of what the target declares: no other is shown. What a container's
program wrote is left out, and what is said of an object that holds what isn't shown. Reads are bounded, and what isn't read is a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from handler.cluster.api import Api
from handler.cluster.evidence import EVENT_KINDS, happened
from handler.cluster.live import Listing, Object, pages
from handler.cluster.parallel import parallel
from handler.health.diagnosis import without_output
from handler.health.kinds.reading import count, said
from handler.inspect.inventory_tree import Inventory, Role, SeenObject, said_of
from handler.model.advice import advice
from handler.model.errors import AccessDenied, AnnealError
from handler.model.manifest import at
from handler.model.names import Identity, Resource, group_of
from handler.model.tree import printable

MOST = 300
"""Events that are shown."""
_TEXT = 500  # characters of one event's message
_WORD = 100
_PAGES = 10  # of one namespace's events
_NAMESPACES = 20
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """One event. `object`: what it is about; `times`: how often it came, from `first` to `last`; `source`: what says it."""

    object: str
    group: str
    uid: str
    type: str
    reason: str
    message: str
    times: int
    first: str
    last: str
    source: str


@dataclass(frozen=True, slots=True)
class Events:
    """The newest events of a target. `count`: how many there are; `seen`: when, RFC 3339."""

    target: str
    seen: str
    count: int
    events: tuple[SeenEvent, ...]
    notes: tuple[str, ...] = ()


def events_of(api: Api, inventory: Inventory) -> Events:
    """Read the events about what an inventory names, with the identity of `api`."""
    reading = _Reading(api, _About.of(inventory.objects))
    found = sorted(reading.all(inventory), key=happened, reverse=True)
    shown = tuple(_event(each, inventory) for each in found[:MOST])
    return Events(inventory.target, inventory.at, len(found), shown, tuple(reading.notes))


@dataclass(frozen=True, slots=True)
class _About:
    """What events must be about. `names`: of declared objects, whose earlier lives count too."""

    uids: frozenset[str]
    names: frozenset[Identity]

    @classmethod
    def of(cls, objects: Iterable[SeenObject]) -> _About:
        ours = [each for each in objects if each.role is not Role.APART]
        names = frozenset(each.identity for each in ours if each.role is not Role.OWNED)
        return cls(frozenset(each.uid for each in ours if each.uid), names)

    def has(self, event: Object) -> bool:
        about = about_of(event)
        return str(at(about, "uid") or "") in self.uids or _identity(about) in self.names


@dataclass(slots=True)
class _Reading:
    api: Api
    about: _About
    notes: list[str] = field(default_factory=list)

    def all(self, inventory: Inventory) -> list[Object]:
        placed = {each.identity.namespace for each in inventory.objects}
        spaces = sorted({each or "default" for each in placed})
        if len(spaces) > _NAMESPACES:
            self.notes.append(f"events of {_NAMESPACES} of {len(spaces)} namespaces were read")
        read = [partial(self._listed, space) for space in spaces[:_NAMESPACES]]
        found: list[Object] = []
        for space, events in zip(spaces, parallel(read, _AT_ONCE), strict=False):
            if isinstance(events, AccessDenied) and space not in placed:
                continue  # of cluster-scoped objects alone: most targets may not read there
            if isinstance(events, AnnealError):
                right = advice("; anneal rbac {} --page prints the rights", inventory.target) if isinstance(events, AccessDenied) else ""
                self.notes.append(f"events of {space} can't be read with the target's identity: {events.problems[0].message}{right}")
            else:
                found += events
        return found

    def _listed(self, space: str) -> list[Object]:
        """Return a namespace's events of the target, by the API group that may be read. Raises AnnealError: neither may."""
        first, second = EVENT_KINDS
        try:
            return list(self._paged(first, space))
        except AccessDenied:
            return list(self._paged(second, space))

    def _paged(self, resource: Resource, space: str) -> Iterator[Object]:
        for number, page in enumerate(pages(self.api, Listing(resource, space))):
            if number >= _PAGES:
                self.notes.append(f"events of {space}: there are more than the first {_PAGES} pages, which were read")
                return
            yield from (each for each in page if self.about.has(each))


def about_of(event: Mapping[str, object]) -> object:
    """Return what an event of either API group is about."""
    return at(event, "involvedObject") or at(event, "regarding")


def _identity(about: object) -> Identity:
    parts = (str(at(about, key) or "") for key in ("kind", "namespace", "name"))
    return Identity(group_of(str(at(about, "apiVersion") or "")), *parts)


def _event(event: Object, inventory: Inventory) -> SeenEvent:
    about = about_of(event)
    identity = _identity(about)
    message = without_output(said(at(event, "message")) or said(at(event, "note")))
    times = max(count(event, "count"), count(event, "series", "count"), count(event, "deprecatedCount"), 1)
    first = _first(event, (("firstTimestamp",), ("deprecatedFirstTimestamp",), ("eventTime",), ("metadata", "creationTimestamp")))
    source = _first(event, (("reportingComponent",), ("reportingController",), ("source", "component"), ("deprecatedSource", "component")))
    kind, reason, component = (printable(said(each), _WORD) for each in (at(event, "type"), at(event, "reason"), source))
    subject, uid = printable(str(identity)), said(at(about, "uid"))
    known = [each for each in inventory.objects if uid == each.uid or each.identity == identity]
    closed = next((each for each in known if each.closed), None)
    return SeenEvent(subject, identity.group, uid, kind, reason, said_of(closed, message, _TEXT), times, first, happened(event), component)


def _first(event: Object, places: Sequence[tuple[str, ...]]) -> str:
    return next((text for place in places if (text := said(at(event, *place)))), "")
