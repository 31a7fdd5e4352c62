"""Reads that explain why a workload fails: best effort, few, bounded in time. Their content is untrusted: callers choose what is shown."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import urllib3

from handler.cluster.api import Api, ApiRequest, items_of
from handler.cluster.live import Object, named
from handler.model import deadline
from handler.model.errors import AccessDenied, AnnealError, ClusterUnavailable
from handler.model.manifest import at
from handler.model.names import Identity, Resource

T = TypeVar("T")
SECONDS = 10.0  # for all reads of one failure together
LOG_LINES = 10
LOG_BYTES = 4000
_REQUESTS = 24
_PODS, _ALL_PODS = 100, 500  # of one object, and of a whole namespace
_EVENTS = 1000
_POD = Resource("", "v1", "Pod", "pods", namespaced=True)
_SECRET = Resource("", "v1", "Secret", "secrets", namespaced=True)
EVENT_KINDS = (
    Resource("", "v1", "Event", "events", namespaced=True),
    Resource("events.k8s.io", "v1", "Event", "events", namespaced=True),
)
"""One store under two API groups; RBAC may allow only one of them."""


@dataclass(slots=True)
class Evidence:
    """The reads about one failure, or of one look during a wait. `answered`: successes; `denied`, `broken`: one failed so.

    `lines`: of a log, at most.
    """

    api: Api
    lines: int = LOG_LINES
    answered: int = 0
    denied: bool = False
    broken: bool = False
    _end: float = field(default_factory=lambda: time.monotonic() + SECONDS)
    _left: int = _REQUESTS

    def live(self, resource: Resource, identity: Identity) -> Object | None:
        """Return an object as it is now."""
        found = self._tried(lambda: self.api.get(resource.path(identity.namespace, identity.name), subject=str(identity)))
        return named(found, resource) if found else None

    def pods(self, namespace: str, selector: str) -> list[Object]:
        """Return the pods with these labels; without any, one page of the namespace's."""
        query = {"labelSelector": selector, "limit": str(_PODS)} if selector else {"limit": str(_ALL_PODS)}
        return self._listed(_POD, namespace, query) or []

    def warnings(self, namespace: str) -> list[Object]:
        """Return the Warning events of a namespace, the newest first."""
        for resource in EVENT_KINDS:
            found = self._listed(resource, namespace or "default", {"fieldSelector": "type=Warning", "limit": str(_EVENTS)})
            if found is not None:
                return sorted(found, key=happened, reverse=True)
        return []

    def log(self, namespace: str, pod: str, container: str, *, previous: bool) -> str:
        """Return the last whole lines that a container wrote; `previous`: the one before it was restarted."""
        query = {"container": container, "tailLines": str(self.lines), "limitBytes": str(self._bytes)} | (
            {"previous": "true"} if previous else {}
        )
        request = ApiRequest("GET", f"{_POD.path(namespace, pod)}/log", query, accept="*/*", subject=f"log of pod {pod}", repeatable=False)
        return self._tried(lambda: self._text(request)) or ""

    def secret(self, namespace: str, name: str) -> Object | None:
        """Return a Secret, to mask by it, or None. Raises AnnealError: it can't be read."""
        return self._asked(lambda: self.api.get(_SECRET.path(namespace, name), subject=f"Secret/{namespace}/{name}"))

    @property
    def _bytes(self) -> int:
        return LOG_BYTES * self.lines // LOG_LINES

    def _text(self, request: ApiRequest) -> str:
        response = self.api.stream(request)
        try:
            data = response.read(self._bytes)
        except (urllib3.exceptions.HTTPError, OSError):
            return ""
        finally:
            response.close()
        whole = data if len(data) < self._bytes else data[: data.rfind(b"\n") + 1]  # half a secret wouldn't be recognized
        return whole.decode(errors="replace")

    def _listed(self, resource: Resource, namespace: str, query: dict[str, str]) -> list[Object] | None:
        def read() -> list[Object]:
            answer = self.api.get(resource.path(namespace), query, subject=f"list {resource.plural}")
            return [] if answer is None else items_of(answer, resource, f"list {resource.plural}", partial=False)

        return self._tried(read)

    def _tried(self, read: Callable[[], T]) -> T | None:
        try:
            found = self._asked(read)
        except AnnealError as error:
            denied = isinstance(error, AccessDenied)
            self.denied, self.broken = self.denied or denied, self.broken or not denied
            return None
        self.answered += 1
        return found

    def _asked(self, read: Callable[[], T]) -> T:
        if self._left <= 0 or time.monotonic() >= self._end:
            raise ClusterUnavailable.of("evidence", "no time is left to read more")
        self._left -= 1
        with deadline.until(min(self._end, time.monotonic() + deadline.left(SECONDS))):
            return read()


def happened(event: Any) -> str:
    """Return when an event happened last, as text that sorts; events.k8s.io and core write it in different fields."""
    places = (("series", "lastObservedTime"), ("lastTimestamp",), ("deprecatedLastTimestamp",), ("eventTime",), ("firstTimestamp",))
    return max(str(at(event, *place) or "") for place in (*places, ("metadata", "creationTimestamp")))
