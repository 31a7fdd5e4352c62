"""Live objects that are known all the time: one LIST and one WATCH per kind, namespace and selector, shared by all that follow it.

    a scope's thread    LIST, then WATCH; resumed after a cut, LISTed again after 410 (`watch`)
    one thread          takes what they saw, keeps it, and lets followers hear of it, in its order
    an error            ends a scope's thread: what is known stays, isn't whole any more, and is tried again, ever more rarely

Law: what isn't known whole says so. A kind that isn't served, or may not be read, has no absent objects.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from handler.cluster.api import Api
from handler.cluster.live import Object
from handler.cluster.watch import Lines, Scope, started
from handler.model.backoff import Backoff
from handler.model.errors import AnnealError
from handler.model.names import Identity, Resource

_LOG = logging.getLogger("anneal.lister")
_AHEAD = 256  # states queued, at most
_LONGEST = 1.0  # seconds until what is due is looked at
_PAUSES = Backoff(1.0, 60.0)


def lean(live: Object) -> Object:
    """Return an object without what only an apply needs of it (`managedFields`), which is most of it."""
    return {**live, "metadata": {key: value for key, value in live["metadata"].items() if key != "managedFields"}}


@dataclass(frozen=True, slots=True)
class LiveChange:
    """What happened to one object. `before`: None: it is new; `after`: None: it isn't there any more."""

    identity: Identity
    before: Object | None
    after: Object | None


Hear = Callable[[LiveChange], None]
"""Takes a change, on the lister's thread: it must not wait."""


@dataclass(slots=True)
class _Shared:
    """What is known of one scope. `gone`: uids of objects that a follower has deleted, until the server says so."""

    scope: Scope
    objects: dict[Identity, Object] = field(default_factory=dict)
    followers: list[Followed] = field(default_factory=list)
    gone: dict[Identity, str] = field(default_factory=dict)
    whole: threading.Event = field(default_factory=threading.Event)
    error: AnnealError | None = None
    failures: int = 0
    due: float = 0.0
    runs: bool = False


class Followed:
    """What one follower knows of a scope, as last heard of; `close` ends that. Safe to share between threads."""

    def __init__(self, lister: Lister, shared: _Shared, hear: Hear | None) -> None:
        self._lister, self._shared, self._hear = lister, shared, hear

    def wait(self, seconds: float) -> bool:
        """Wait until all is known, an error is, or time is up; return whether all is known."""
        end = time.monotonic() + seconds
        while not self._shared.whole.wait(min(max(end - time.monotonic(), 0.0), 0.05)):
            if self._shared.error is not None or time.monotonic() >= end:
                return self._shared.whole.is_set()
        return True

    @property
    def complete(self) -> bool:
        """Whether all objects are known: a LIST was whole, and nothing is wrong since."""
        return self._shared.whole.is_set()

    @property
    def error(self) -> AnnealError | None:
        """What is wrong now; None: nothing, or nothing is known yet."""
        return self._shared.error

    def items(self) -> list[Object]:
        """Return the objects as last heard of, also where they aren't all. They are shared: nothing in them may be changed."""
        with self._lister.lock:
            return list(self._shared.objects.values())

    def get(self, identity: Identity) -> Object | None:
        """Return one object as last heard of."""
        return self._shared.objects.get(identity)

    def saw(self, live: Object, identity: Identity) -> None:
        """Note what a write of one's own was answered with; an older version replaces no newer one."""
        self._lister.saw(self._shared, identity, live)

    def dropped(self, identity: Identity, uid: str) -> None:
        """Note that one has deleted an object."""
        self._lister.dropped(self._shared, identity, uid)

    def hear(self, change: LiveChange) -> None:
        """Pass on a change; a mistake of the follower's ends nothing."""
        try:
            if self._hear is not None:
                self._hear(change)
        except Exception:  # noqa: BLE001 - other followers and later changes are still heard
            _LOG.exception("a change wasn't taken", extra={"fields": {"object": str(change.identity)}})

    def close(self) -> None:
        """Hear of nothing any more; the last one of a scope ends its WATCH."""
        self._lister.leave(self._shared, self)


class Lister:
    """The scopes of one API server, seen with one identity. Safe to share between threads. `keep`: what of an object is kept."""

    def __init__(self, api: Api, keep: Callable[[Object], Object] = lean) -> None:
        self._api, self._keep = api, keep
        self._lines: Lines = queue.Queue(maxsize=_AHEAD)
        self._shared: dict[tuple[Resource, str, str], _Shared] = {}
        self._scopes: dict[int, _Shared] = {}
        self._joining: deque[tuple[_Shared, Followed]] = deque()
        self.lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def follow(self, resource: Resource, namespace: str = "", selector: str = "", hear: Hear | None = None) -> Followed:
        """Follow a kind; returns at once. `hear` gets what is known already as additions, then each change."""
        key = (resource, namespace, selector)
        with self.lock:
            shared = self._shared.get(key)
            if shared is None:
                shared = self._shared[key] = _Shared(Scope(resource, namespace, partial=False, selector=selector, strict=True))
                self._scopes[id(shared.scope)] = shared
            followed = Followed(self, shared, hear)
            shared.followers.append(followed)
            self._joining.append((shared, followed))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lister", daemon=True)
                self._thread.start()
        self._wake()
        return followed

    def close(self) -> None:
        """End all threads."""
        self._closed.set()
        with self.lock:
            shared, self._shared, self._scopes = list(self._shared.values()), {}, {}
        for each in shared:
            each.scope.close()
        self._wake()

    # --- for `Followed`
    def leave(self, shared: _Shared, followed: Followed) -> None:
        """End one follower."""
        with self.lock:
            if followed in shared.followers:
                shared.followers.remove(followed)
            if shared.followers:
                return
            self._scopes.pop(id(shared.scope), None)
            self._shared = {key: each for key, each in self._shared.items() if each is not shared}
        shared.scope.close()

    def saw(self, shared: _Shared, identity: Identity, live: Object) -> None:
        """Keep a newer state that a write was answered with."""
        with self.lock:
            known = shared.objects.get(identity)
            if known is None or _version(live) > _version(known) or known["metadata"].get("uid") != live["metadata"].get("uid"):
                shared.objects[identity] = self._keep(live)
                shared.gone.pop(identity, None)
                shared.scope.present.add(identity)

    def dropped(self, shared: _Shared, identity: Identity, uid: str) -> None:
        """Keep an object no longer, whatever a WATCH still says of that uid."""
        with self.lock:
            known = shared.objects.get(identity)
            if known is not None and known["metadata"].get("uid") == uid:
                del shared.objects[identity]
                shared.gone[identity] = uid

    # --- the thread
    def _wake(self) -> None:
        try:
            self._lines.put_nowait((None, None))
        except queue.Full:
            return  # it is awake

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._turn()
            except Exception:  # noqa: BLE001 - a mistake of ours may not end what others rely on
                _LOG.exception("a turn of the lister failed")

    def _turn(self) -> None:
        while self._joining:
            self._join(*self._joining.popleft())
        now = time.monotonic()
        with self.lock:
            due = [each for each in self._scopes.values() if not each.runs and each.due <= now]
        for each in due:
            each.runs = True
            started(self._api, each.scope, self._lines)
        try:
            scope, line = self._lines.get(timeout=_LONGEST)
        except queue.Empty:
            return
        shared = self._scopes.get(id(scope)) if scope is not None else None
        if shared is not None:
            self._take(shared, line)

    def _join(self, shared: _Shared, followed: Followed) -> None:
        with self.lock:
            known = list(shared.objects.items())
        for identity, live in known:
            followed.hear(LiveChange(identity, None, live))

    def _take(self, shared: _Shared, line: Any) -> None:
        if line is None:
            shared.error, shared.failures = None, 0
            with self.lock:
                shared.gone.clear()
            shared.whole.set()
        elif isinstance(line, BaseException):
            self._failed(shared, line)
        else:
            self._saw(shared, *line)

    def _failed(self, shared: _Shared, error: BaseException) -> None:
        shared.failures += 1
        shared.due, shared.runs = time.monotonic() + _PAUSES.after(shared.failures), False
        shared.whole.clear()
        if not isinstance(error, AnnealError):
            _LOG.error("a kind isn't followed for a while", exc_info=error)
            return
        shared.error = error

    def _saw(self, shared: _Shared, identity: Identity, live: Object | None) -> None:
        with self.lock:
            before, now = shared.objects.get(identity), None if live is None else self._keep(live)
            if now is None:
                shared.gone.pop(identity, None)
            elif shared.gone.get(identity) == now["metadata"].get("uid") or (before and _is_old(before, now)):
                return
            if now is None:
                shared.objects.pop(identity, None)
            else:
                shared.objects[identity] = now
            followers = [each for each in shared.followers if (shared, each) not in self._joining]
        for change in _changes(identity, before, now):
            for each in followers:
                each.hear(change)


def _changes(identity: Identity, before: Object | None, now: Object | None) -> list[LiveChange]:
    """Return what happened; an object that was made anew is gone, then new."""
    if before is None and now is None:
        return []
    if before is not None and now is not None and before["metadata"].get("uid") != now["metadata"].get("uid"):
        return [LiveChange(identity, before, None), LiveChange(identity, None, now)]
    return [LiveChange(identity, before, now)]


def _is_old(before: Object, now: Object) -> bool:
    """Whether a state is the same as a known one, or older: of the same object."""
    return before["metadata"].get("uid") == now["metadata"].get("uid") and _version(now) <= _version(before)


def _version(live: Object) -> int:
    """Return an object's resourceVersion as the number that it is (KEP-5504); one that is none counts as newer than all."""
    text = str(live["metadata"].get("resourceVersion") or "")
    return int(text) if text.isascii() and text.isdigit() else 1 << 128
