"""The objects of a watched kind, all of them or an error: LISTed anew for a command, followed by one WATCH in a process that lives.

Law: what can't be known whole is never shown in part.
"""

from __future__ import annotations

from typing import Protocol

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.live import Listing, Object, pages
from handler.config.settings import Target
from handler.config.trigger_settings import WatchedResource
from handler.model.errors import AnnealError, ApiRefused, OperatorError
from handler.model.names import MANAGED_BY, Resource, state_name

LONGEST = 30.0
"""Seconds until the objects of a kind must have been LISTed whole."""


class KindNotServed(OperatorError, code="kind-not-served"):
    """A watched kind isn't served by the cluster."""


class WatchedObjects(Protocol):
    """Where objects are known from. `target`: whose cluster and rights count; `namespace`: only there, empty: everywhere."""

    def objects(self, target: Target, watched: WatchedResource, namespace: str) -> list[Object]:
        """Return all objects of a kind that a trigger watches. Raises AnnealError: they aren't known whole."""


class Kinds(Protocol):
    """What a target's cluster serves, and the way to it (`handler.app.connections.Connections`)."""

    def api(self, target: Target, *, impersonated: bool = True) -> Api:
        """Return the way to a target's cluster."""

    def discovery(self, target: Target) -> Discovery:
        """Return what it serves."""


def served(ways: Kinds, target: Target, watched: WatchedResource) -> Resource:
    """Return how a watched kind is served, by fresh discovery where it isn't known. Raises KindNotServed, AnnealError."""
    discovery = ways.discovery(target)
    found = discovery.find(watched.api_version, watched.kind)
    if found is None:
        discovery.refresh()
        found = discovery.find(watched.api_version, watched.kind)
    if found is None:
        raise not_served(watched)
    return found


def unserved(ways: Kinds, target: Target, watched: WatchedResource, error: AnnealError) -> AnnealError:
    """Return the error of a LIST; one that says that the server knows no such kind says what to do."""
    if not isinstance(error, ApiRefused) or error.status != 404:
        return error
    ways.discovery(target).refresh()
    return not_served(watched)


def not_served(watched: WatchedResource) -> KindNotServed:
    """Return the error of a watched kind that the cluster doesn't serve."""
    seen = f"the cluster doesn't serve {watched.kind} of {watched.api_version}, so its objects aren't known; nothing is pruned"
    fix = f"install its CustomResourceDefinition, or correct resource {watched.name} of the trigger"
    return KindNotServed.of(f"{watched.kind}.{watched.api_version}", seen, fix=fix)


def is_own(live: Object) -> bool:
    """Whether an object is a record or a Lease of Anneal's: each run writes it, so what followed from it would run for ever."""
    metadata = live.get("metadata") or {}
    return str(metadata.get("name")).startswith(state_name("")) and MANAGED_BY.items() <= (metadata.get("labels") or {}).items()


class ListedObjects:
    """Objects by one paged LIST at each question: for commands, which end."""

    def __init__(self, ways: Kinds) -> None:
        self._ways = ways

    def objects(self, target: Target, watched: WatchedResource, namespace: str) -> list[Object]:
        """LIST them. Raises KindNotServed, AccessDenied, ClusterUnavailable."""
        resource = served(self._ways, target, watched)
        listing = Listing(resource, watched.namespace or namespace, watched.label_selector.query)
        try:
            return [item for page in pages(self._ways.api(target), listing) for item in page]
        except ApiRefused as refused:
            raise unserved(self._ways, target, watched, refused) from None
