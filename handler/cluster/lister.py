"""Keeps the live objects of kinds in memory: one LIST and one WATCH per kind, namespace and selector, shared by all that follow it.

Law: only a WATCH's event, a complete LIST or the answer to a write changes what is known; an older version never replaces a newer one. A
scope that can't be read keeps what it knows, says so (`Followed.error`), and is tried again with back-off.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from handler.cluster.api import Api
from handler.cluster.live import Object, matches, named
from handler.cluster.watch import Lines, Scope, Seen, follow_scope
from handler.model.backoff import Backoff
from handler.model.errors import AnnealError, ApiRefused, ClusterUnavailable, Problem
from handler.model.names import Identity, Resource, identity_of

_AGAIN = Backoff(0.3, 15.0)
_STEADY = 60.0  # seconds after which a scope that fails counts as one that worked
_UNWATCHED = 15.0  # seconds between LISTs of a kind that can't be watched
_END = 5.0  # seconds for the threads to end
_LOG = logging.getLogger("anneal.cluster")


@dataclass(frozen=True, slots=True)
class LiveChange:
    """What became of one object; `before` None: added, `after` None: deleted, or without the scope's labels now.

    `observed`: a WATCH's event or the answer to a write; else a LIST found it: an absence may then have any cause. Both are shared values:
    the hearer doesn't change them.
    """

    identity: Identity
    before: Object | None
    after: Object | None
    observed: bool


Hear = Callable[[LiveChange], None]
Keep = Callable[[Object], Object]
"""What of an object stays in memory: a new value, or the same; it has the object's name, uid and resourceVersion."""
_Call = tuple["Followed", LiveChange]


def lean(item: Object) -> Object:
    """Return an object without managedFields, which are often its largest part."""
    return {**item, "metadata": {key: value for key, value in item["metadata"].items() if key != "managedFields"}}


class _SharedScope(Scope):
    """A scope, what is known of it, and those that follow it. All of that changes under `guard`, which no call to others holds."""

    def __init__(self, resource: Resource, namespace: str, selector: str, keep: Keep, calls: queue.SimpleQueue[_Call | None]) -> None:
        super().__init__(resource, namespace, partial=False, selector=selector, pause=_UNWATCHED)
        self.guard = threading.Lock()
        self.objects: dict[Identity, Object] = {}
        self.followers: list[Followed] = []
        self.first = threading.Event()
        self.answered = threading.Event()
        self.error: AnnealError | None = None
        self.failed = 0.0
        self._keep, self._calls = keep, calls
        self._own: set[Identity] = set()
        """Objects that only the answer to a write has shown so far."""
        self._dropped: set[str] = set()
        """The uids of deleted objects whose deletion the WATCH hasn't reported yet."""
        self._listed_late: set[str] = set()
        """Those of them that the present LIST still holds."""
        self._went_back = False

    def join(self, follower: Followed) -> None:
        with self.guard:
            for identity, item in self.objects.items():
                self._call(follower, LiveChange(identity, None, item, observed=False))
            self.followers.append(follower)

    def run(self, api: Api) -> None:
        """Follow until the scope is closed; what fails is tried again."""
        failures = 0
        while not self.closed.is_set():
            began = time.monotonic()
            try:
                follow_scope(api, self, queue.Queue())
            except AnnealError as error:
                failed = error
            except Exception as error:  # noqa: BLE001 - a follower would wait for ever
                _LOG.exception("a kind can't be followed", extra={"fields": {"kind": str(self.resource.group_kind)}})
                failed = ClusterUnavailable.of(self.subject, f"can't be followed: {type(error).__name__}")
            else:
                return
            failures = 1 if time.monotonic() - began > _STEADY else failures + 1
            with self.guard:
                self.error, self.failed = failed, self.failed or time.monotonic()
                self.answered.set()
            self.closed.wait(_AGAIN.after(failures))

    # --- what the LIST and the WATCH say
    def expected(self) -> set[Identity]:
        with self.guard:
            self._listed_late = set()
            return set(self.objects)

    def enqueue(self, _lines: Lines, line: Seen | BaseException | None) -> None:
        if isinstance(line, tuple) and line[1] is not None:
            with self.guard:
                self._put(line[0], line[1], observed=False)

    def listed(self, _lines: Lines, absent: Iterable[Identity], version: str) -> None:
        if not version:
            problem = Problem(self.subject, f"{self.resource.api_version} isn't served", fix="kubectl api-resources shows what is")
            raise ApiRefused(problem, status=404, reason="NotFound")
        with self.guard:
            if _is_newer(self.version, version) and not self._went_back:
                self._went_back = True  # restored from a backup: what the next LIST says counts, however old
                raise ClusterUnavailable.of(self.subject, "its resourceVersion went back: everything is read again")
            for identity in {*absent, *self._own}:
                if identity in self.objects and self._prevails(version, self.objects[identity]):
                    self._remove(identity, observed=False)
            self._went_back = False
            self._dropped &= self._listed_late
            self.error, self.failed = None, 0.0
            self.first.set()
            self.answered.set()

    def changed(self, _lines: Lines, change: str, identity: Identity, item: Object) -> None:
        with self.guard:
            if change != "DELETED":
                self._put(identity, item, observed=True)
                return
            self._dropped.discard(_uid_of(item))
            known = self.objects.get(identity)
            if known is not None and self._prevails(_version_of(item), known):
                self._remove(identity, observed=True)

    # --- what the answer to a write says
    def saw(self, item: Object) -> None:
        identity = identity_of(named(dict(item), self.resource))
        with self.guard:
            if self.closed.is_set() or not self._holds(identity, item) or not _is_newer(_version_of(item), self.version):
                return  # the WATCH has reported this state, and what came of it
            self._put(identity, item, observed=True, own=True)

    def _holds(self, identity: Identity, item: Object) -> bool:
        here = not self.namespace or not self.resource.namespaced or identity.namespace == self.namespace
        return here and item.get("kind", self.resource.kind) == self.resource.kind and matches(item, self.selector)

    def dropped(self, identity: Identity, uid: str) -> None:
        with self.guard:
            known = self.objects.get(identity)
            if known is not None and _uid_of(known) == uid:
                self._remove(identity, observed=True)
                self._dropped.add(uid)

    # --- under `guard`
    def _put(self, identity: Identity, item: Object, *, observed: bool, own: bool = False) -> None:
        known = self.objects.get(identity)
        (self._own.add if own else self._own.discard)(identity)
        if _uid_of(item) in self._dropped:
            self._listed_late.add(_uid_of(item))
            return
        if known is not None and not self._prevails(_version_of(item), known, strictly=True):
            return
        if known is not None and _uid_of(known) != _uid_of(item):
            self._tell(LiveChange(identity, known, None, observed))
            known = None
        self.objects[identity] = kept = self._keep(item)
        self._tell(LiveChange(identity, known, kept, observed))

    def _prevails(self, version: str, known: Object, *, strictly: bool = False) -> bool:
        """Return whether a version counts against the known state of an object; `strictly`: it is none that is known already."""
        if self._went_back:
            return True
        return not _is_newer(_version_of(known), version) and not (strictly and _version_of(known) == version)

    def _remove(self, identity: Identity, *, observed: bool) -> None:
        self._own.discard(identity)
        self._tell(LiveChange(identity, self.objects.pop(identity), None, observed))

    def _tell(self, change: LiveChange) -> None:
        for follower in self.followers:
            self._call(follower, change)

    def _call(self, follower: Followed, change: LiveChange) -> None:
        if follower.hear is not None:
            self._calls.put((follower, change))


class Followed:
    """One follower's handle on a shared scope. What it returns is shared: the caller doesn't change it."""

    def __init__(self, scope: _SharedScope, hear: Hear | None, leave: Callable[[Followed], None]) -> None:
        self.scope = scope
        self.hear = hear
        self.closed = False
        self._leave = leave

    def wait(self, seconds: float) -> bool:
        """Wait until a LIST was complete once; False: not in this time."""
        return self.scope.first.wait(seconds)

    def answered(self, seconds: float) -> bool:
        """Wait until a LIST was complete or has failed; False: neither in this time."""
        return self.scope.answered.wait(seconds)

    @property
    def complete(self) -> bool:
        """Whether a LIST was complete, and nothing is wrong since."""
        return self.scope.first.is_set() and self.scope.error is None

    @property
    def error(self) -> AnnealError | None:
        """What is wrong now, until the next complete LIST. An outage counts as one when the Api's deadline is over."""
        return self.scope.error

    @property
    def failed(self) -> float:
        """Since when it is wrong, in monotonic seconds; 0: nothing is."""
        return self.scope.failed

    def items(self) -> list[Object]:
        """Return the objects as known last, also while the scope isn't complete."""
        with self.scope.guard:
            return list(self.scope.objects.values())

    def get(self, namespace: str, name: str) -> Object | None:
        """Return one object as known last; None: it isn't known."""
        resource = self.scope.resource
        with self.scope.guard:
            return self.scope.objects.get(Identity(resource.group, resource.kind, namespace, name))

    def saw(self, obj: Object) -> None:
        """Take the answer to a write; the scope keeps it unless the WATCH has reported it, or it doesn't belong here."""
        self.scope.saw(obj)

    def dropped(self, identity: Identity, uid: str) -> None:
        """Take that an object is gone after a deletion of one's own; one that waits for finalizers is `saw`."""
        self.scope.dropped(identity, uid)

    def close(self) -> None:
        """Hear no more, but for a call that is under way; the last follower's close ends the WATCH and frees its memory."""
        self._leave(self)


class Lister:
    """One LIST and one WATCH per kind, namespace and selector, shared by all that follow it. Safe to share between threads.

    `keep`: what of an object stays in memory.
    """

    def __init__(self, api: Api, keep: Keep = lean) -> None:
        self._api, self._keep = api, keep
        self._lock = threading.Lock()
        self._scopes: dict[tuple[str, str, str], tuple[_SharedScope, threading.Thread]] = {}
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._hearing: threading.Thread | None = None
        self._closed = False

    def follow(self, resource: Resource, namespace: str = "", selector: str = "", hear: Hear | None = None) -> Followed:
        """Follow a kind in a namespace (empty: all) with these labels (`live.matches`; empty: all). Raises RuntimeError: it is closed.

        `hear` is called for each change in the scope's order, from one thread of the lister, without a lock; first the known objects as
        additions. What it raises is logged.
        """
        key = (resource.path(namespace), resource.kind, selector)
        with self._lock:
            if self._closed:
                raise RuntimeError("the lister is closed")
            scope, _ = self._scopes.get(key) or self._begun(key, resource, namespace, selector)
            if hear is not None and self._hearing is None:
                self._hearing = threading.Thread(target=_hear_all, args=(self._calls,), name="lister-hear", daemon=True)
                self._hearing.start()
            follower = Followed(scope, hear, self._left)
            scope.join(follower)
        return follower

    def _begun(self, key: tuple[str, str, str], resource: Resource, namespace: str, selector: str) -> tuple[_SharedScope, threading.Thread]:
        scope = _SharedScope(resource, namespace, selector, self._keep, self._calls)
        thread = threading.Thread(target=scope.run, args=(self._api,), name=f"lister-{resource.plural}", daemon=True)
        thread.start()
        self._scopes[key] = scope, thread
        return self._scopes[key]

    def _left(self, follower: Followed) -> None:
        with self._lock:
            if follower.closed:
                return
            follower.closed = True
            scope = follower.scope
            with scope.guard:
                scope.followers.remove(follower)
                if scope.followers:
                    return
            for key in [key for key, (held, _) in self._scopes.items() if held is scope]:
                del self._scopes[key]
        scope.close()

    def close(self) -> None:
        """End all threads; what is known stays readable."""
        with self._lock:
            self._closed = True
            ended, self._scopes = list(self._scopes.values()), {}
        for scope, _ in ended:
            scope.close()
        self._calls.put(None)
        for thread in [*(thread for _, thread in ended), self._hearing]:
            if thread is not None and thread is not threading.current_thread():
                thread.join(_END)


def _hear_all(calls: queue.SimpleQueue[_Call | None]) -> None:
    while call := calls.get():
        _hear_one(*call)
        del call  # while nothing comes, nothing of it stays in memory


def _hear_one(follower: Followed, change: LiveChange) -> None:
    if follower.closed or follower.hear is None:
        return
    try:
        follower.hear(change)
    except Exception:  # noqa: BLE001 - others still hear
        _LOG.exception("a change wasn't handled", extra={"fields": {"object": str(change.identity)}})


def _uid_of(item: Object) -> str:
    return str(item["metadata"].get("uid") or "")


def _version_of(item: Object) -> str:
    return str(item["metadata"].get("resourceVersion") or "")


def _is_newer(version: str, other: str) -> bool:
    """Return whether a resourceVersion is newer than another; of versions that aren't numbers none is."""
    return version.isdecimal() and (not other or (other.isdecimal() and int(version) > int(other)))
