"""Follows live objects by one paged LIST and one WATCH per kind and scope. A state goes to the judge and is dropped.

A WATCH that is cut or silent resumes; after 410 the LIST is read again. Each scope has a thread that waits for the judge; the caller's
thread judges, and calls `stop` several times a second.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import urllib3

from handler.cluster.api import JSON, Api, ApiRequest, items_of
from handler.cluster.live import LIMIT, PARTIAL, PARTIAL_LIST, Listing, Object, named, put
from handler.model.errors import ApiRefused, ClusterUnavailable
from handler.model.names import Identity, Resource, identity_of

_STOP_EVERY = 0.2  # seconds between two calls of `stop`
_WATCH_SECONDS = 50
"""How long the server keeps one WATCH open: below the read time-out, so that silence differs from a dead connection."""
_PAUSE = 0.3  # seconds before a WATCH that ended early is resumed
_LOOK_AGAIN = 1.0  # seconds between LISTs of a kind that can't be watched, or isn't served yet
_LONGEST = 16 << 20
"""Bytes of one event of a WATCH: no object of etcd's is as large. A longer one is no event, and its LIST is read again."""
_AHEAD = 256  # states queued for the judge, at most

Seen = tuple[Identity, Object | None]
Lines = queue.Queue[Any]
"""Items of the judge's queue: (Scope, Seen); (Scope, None) once a kind was LISTed whole; (Scope, the error that ended its thread)."""
Stop = Callable[[], Iterable[Identity] | None]
"""Called several times a second. What it raises ends the wait; the objects that it returns count as accepted."""


@dataclass
class Scope:
    """One kind in one namespace (empty: all), the objects followed in it, and their WATCH.

    `wanted`: None: all with the labels of `selector`, of which `present` exist. `pause`: seconds between LISTs without a WATCH.
    `version`: the newest resourceVersion up to which all is known.
    """

    resource: Resource
    namespace: str
    partial: bool
    selector: str
    wanted: frozenset[Identity] | None = None
    open: set[Identity] = field(default_factory=set)
    closed: threading.Event = field(default_factory=threading.Event)
    seen: set[Identity] = field(default_factory=set)
    response: urllib3.BaseHTTPResponse | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    present: set[Identity] = field(default_factory=set)
    pause: float = _LOOK_AGAIN
    version: str = ""

    @property
    def known(self) -> bool:
        """Whether each of its objects was seen once."""
        return self.wanted is not None and len(self.seen) == len(self.wanted)

    def follows(self, identity: Identity) -> bool:
        """Whether an object is followed."""
        return self.wanted is None or identity in self.wanted

    def query(self) -> dict[str, str]:
        """Return the selectors of LIST and WATCH: the name if there is just one, and the labels."""
        one = {"fieldSelector": f"metadata.name={next(iter(self.wanted)).name}"} if self.wanted and len(self.wanted) == 1 else {}
        return one | ({"labelSelector": self.selector} if self.selector else {})

    @property
    def subject(self) -> str:
        """The subject of messages about its LIST."""
        return Listing(self.resource, self.namespace).request().subject

    def expected(self) -> set[Identity]:
        """Return the objects that are absent if the next LIST lacks them."""
        return set(self.present if self.wanted is None else self.wanted)

    def listed(self, lines: Lines, absent: Iterable[Identity], version: str) -> None:  # noqa: ARG002 - for a scope that keeps objects
        """Take the end of a whole LIST: what it lacks, and its resourceVersion; empty: the kind isn't served."""
        for identity in absent:
            self.enqueue(lines, (identity, None))
        if self.wanted is None:
            self.enqueue(lines, None)

    def changed(self, lines: Lines, change: str, identity: Identity, item: Object) -> None:
        """Take an event of the WATCH; `change`: ADDED, MODIFIED or DELETED."""
        self.enqueue(lines, (identity, None if change == "DELETED" else item))

    def enqueue(self, lines: Lines, line: Seen | BaseException | None) -> None:
        """Queue a line for the judge, waiting for room until the scope is closed."""
        if isinstance(line, tuple):
            (self.present.discard if line[1] is None else self.present.add)(line[0])
        put(lines, (self, line), self.closed)

    def hold(self, response: urllib3.BaseHTTPResponse) -> None:
        """Register the response, so that `close` can end a blocked read of it."""
        with self.lock:
            self.response = response
        if self.closed.is_set():
            self.close()

    def close(self) -> None:
        """End the scope's thread: no further request, and a blocked read is cut."""
        self.closed.set()
        with self.lock:
            response, self.response = self.response, None
        if response is not None:
            try:
                response.shutdown()
            except (ValueError, OSError, RuntimeError):
                return  # read to its end already


def scopes_of(wanted: Sequence[tuple[Resource, Identity]], *, partial: bool, selector: str = "", everywhere: bool = False) -> list[Scope]:
    """Group objects into scopes: a kind in a namespace, or, `everywhere`, in all namespaces if it has objects in several."""
    spaces: dict[Resource, set[str]] = defaultdict(set)
    for resource, identity in wanted:
        spaces[resource].add(identity.namespace)
    grouped: dict[tuple[Resource, str], set[Identity]] = defaultdict(set)
    for resource, identity in wanted:
        grouped[resource, "" if everywhere and len(spaces[resource]) > 1 else identity.namespace].add(identity)
    return [
        Scope(resource, namespace, partial and resource.kind != "Namespace", selector, frozenset(found), found)
        for (resource, namespace), found in grouped.items()
    ]


def feed(api: Api, scopes: list[Scope], judge: Callable[[Seen], bool], timeout: float, stop: Stop) -> None:
    """Feed `judge` with every state of every object until it accepts all of them, or time is up and each was seen once."""
    end = time.monotonic() + timeout
    places = {identity: scope for scope in scopes for identity in scope.wanted or ()}
    lines: Lines = queue.Queue(maxsize=_AHEAD)
    threads = [started(api, scope, lines) for scope in scopes]
    try:
        while any(scope.open for scope in scopes) and (time.monotonic() < end or not all(scope.known for scope in scopes)):
            for identity in stop() or ():
                _settle(places[identity], identity, content=True)
            _take(lines, judge, end)
        if any(scope.open for scope in scopes):  # `stop` may accept the last states
            for identity in stop() or ():
                _settle(places[identity], identity, content=True)
    finally:
        for scope in scopes:
            scope.close()
        for thread in threads:
            thread.join(_STOP_EVERY)


def _take(lines: Lines, judge: Callable[[Seen], bool], end: float) -> None:
    now = time.monotonic()
    due = min(now + _STOP_EVERY, end) if now < end else now + _STOP_EVERY  # over already: the first LIST is still waited for
    while now < due:
        try:
            line = lines.get(timeout=due - now)
        except queue.Empty:
            return
        scope, seen = line
        if isinstance(seen, BaseException):
            raise seen
        scope.seen.add(seen[0])
        if scope.open:
            _settle(scope, seen[0], content=judge(seen))
        now = time.monotonic()
        if not scope.open or (now >= end and scope.known):
            return


def _settle(scope: Scope, identity: Identity, *, content: bool) -> None:
    (scope.open.discard if content else scope.open.add)(identity)
    if not scope.open:
        scope.close()


def started(api: Api, scope: Scope, lines: Lines) -> threading.Thread:
    """Start the thread of a scope: LIST, then WATCH from there, until it is closed or fails."""
    thread = threading.Thread(target=_run, args=(api, scope, lines), name=f"watch-{scope.resource.plural}", daemon=True)
    thread.start()
    return thread


def look(api: Api, scope: Scope, lines: Lines) -> threading.Thread:
    """Start a thread that LISTs a scope once, for one that isn't watched."""
    thread = threading.Thread(target=_look, args=(api, scope, lines), name=f"list-{scope.resource.plural}", daemon=True)
    thread.start()
    return thread


def _look(api: Api, scope: Scope, lines: Lines) -> None:
    try:
        while not scope.closed.is_set() and not _listed(api, scope, lines):
            scope.closed.wait(_PAUSE)
    except BaseException as error:  # noqa: BLE001 - the judge handles it
        scope.enqueue(lines, error)


def _run(api: Api, scope: Scope, lines: Lines) -> None:
    try:
        follow_scope(api, scope, lines)
    except BaseException as error:  # noqa: BLE001 - it is raised again on the caller's thread
        scope.enqueue(lines, error)


def follow_scope(api: Api, scope: Scope, lines: Lines) -> None:
    """LIST and WATCH a scope until it is closed, on this thread. Raises AnnealError: it can't be read."""
    while not scope.closed.is_set():
        version = _list(api, scope, lines)
        while version and not scope.closed.is_set():
            began = time.monotonic()
            version = _watch(api, scope, version, lines)
            if time.monotonic() - began < 1.0:
                scope.closed.wait(_PAUSE)  # whatever ends each WATCH at once mustn't make us hammer the server


def _listed(api: Api, scope: Scope, lines: Lines) -> tuple[str] | None:
    """Queue every followed object's state; return the resourceVersion to watch from; None: LIST again."""
    absent, version, following = scope.expected(), "", ""
    while True:
        try:
            query = scope.query() | {"limit": str(LIMIT)} | ({"continue": following} if following else {})
            accept = PARTIAL_LIST if scope.partial else JSON
            answer = api.get(scope.resource.path(scope.namespace), query, accept=accept, subject=scope.subject)
        except ApiRefused as error:
            if error.status != 410 or not following:
                raise
            return None  # its continue token expired
        if answer is None and following:
            return None  # the kind went between two pages: what the others hold isn't absent
        for item in items_of(answer, scope.resource, scope.subject, partial=scope.partial) if answer else ():
            identity = identity_of(named(item, scope.resource))
            if identity in absent or scope.wanted is None:
                absent.discard(identity)
                scope.enqueue(lines, (identity, item))
        metadata = answer["metadata"] if answer else {}
        version, following = version or str(metadata.get("resourceVersion") or ""), str(metadata.get("continue") or "")
        if not following:
            break
    scope.listed(lines, sorted(absent), version)
    scope.version = version
    return (version,)


def _list(api: Api, scope: Scope, lines: Lines) -> str:
    found = _listed(api, scope, lines)
    if found is None:
        return ""
    version = found[0]
    if version and (not scope.resource.verbs or "watch" in scope.resource.verbs):
        return version
    scope.closed.wait(scope.pause)
    return ""


def _watch(api: Api, scope: Scope, version: str, lines: Lines) -> str:
    """Queue changes since `version`; return the newest resourceVersion; empty: LIST again."""
    query = scope.query() | {
        "watch": "true",
        "resourceVersion": version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(_WATCH_SECONDS),
    }
    path, generation = scope.resource.path(scope.namespace), api.connection.generation
    try:
        response = api.stream(ApiRequest("GET", path, query, accept=PARTIAL if scope.partial else JSON))
    except ApiRefused as error:
        if error.status not in (404, 410):
            raise
        return ""
    scope.hold(response)
    try:
        for event in _events(response):
            if event.get("type") == "ERROR":
                return _after_error(event, version, lambda: api.connection.refresh(generation))
            version = _pass_on(scope, event, lines) or version
    except _TooLong:
        return ""
    except RecursionError:  # a proxy's garbage: no object in etcd is nested so deeply
        return version
    except (urllib3.exceptions.HTTPError, OSError, ValueError, LookupError, TypeError, AttributeError):
        return version  # cut in the middle, or no event at all: resume where it was
    finally:
        response.close()
    return version


class _TooLong(Exception):
    """One line of a WATCH exceeds the limit."""


def _events(response: urllib3.BaseHTTPResponse) -> Iterator[dict[str, Any]]:
    rest = bytearray()
    while data := response.read1(1 << 16):
        *whole, last = data.split(b"\n")
        for end in whole:
            line, rest = rest + end, bytearray()
            yield json.loads(line)
        rest += last
        if len(rest) > _LONGEST:
            raise _TooLong


def _after_error(event: dict[str, Any], version: str, refresh: Callable[[], None]) -> str:
    """Return where to go on after an ERROR; empty, after 410 or a time-out: LIST again. Raises ClusterUnavailable, as `refresh` does."""
    status = event.get("object") or {}
    if status.get("code") in (410, 500, 504):
        return ""
    if status.get("code") == 401:  # the token ended meanwhile
        refresh()
        return version
    raise ClusterUnavailable.of("watch", f"ended with {status.get('code')} {status.get('reason')}")


def _pass_on(scope: Scope, event: dict[str, Any], lines: Lines) -> str:
    item = event["object"]
    if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
        identity = identity_of(named(item, scope.resource))
        if scope.follows(identity):
            scope.changed(lines, event["type"], identity, item)
    version = str(item["metadata"].get("resourceVersion") or "")
    scope.version = version or scope.version
    return version
