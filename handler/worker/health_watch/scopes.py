"""What a worker WATCHes on one cluster: a kind, for all targets of one identity, everywhere or in each namespace that it may read.

    watched      the first `WATCHES` scopes: one LIST, one WATCH, a thread
    listed       the others, and those whose WATCH is denied: one LIST each interval

Law: never across identities: what one may read says nothing of what another may. A scope that can't be read is tried again each interval,
and is the trouble of its targets alone.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.own_objects import OwnObjects
from handler.cluster.watch import Lines, Scope, look, started
from handler.config.settings import Target
from handler.engine.health.custom_health import CustomHealth
from handler.model.errors import AccessDenied, AnnealError, ClusterUnavailable
from handler.model.names import PART_OF, Identity
from handler.state.store import StateStore
from handler.worker.health_watch.watched_target import WatchedTarget

WATCHES = 48  # scopes of one cluster that are followed at once: each is a connection and a thread
_LISTS = 4  # LISTs that are under way at once
_AHEAD = 256
_LOOK_AGAIN = 60.0  # seconds between LISTs of a kind that can't be watched, or isn't served any more
Key = tuple[str, str, str, str]  # service account (empty: our own), apiVersion, kind, namespace (empty: all)


class WatchConnections(Protocol):
    """The ways to targets' clusters (`handler.app.connections.Connections`); each raises AnnealError where there is none."""

    def api(self, target: Target, *, impersonated: bool = True) -> Api:
        """Return the way to a target's cluster, as the target's identity or as our own."""

    def discovery(self, target: Target) -> Discovery:
        """Return what a target's cluster serves."""

    def records(self, target: Target) -> OwnObjects:
        """Return raw access to states and Leases, with short time-outs."""

    def custom_health(self, target: Target) -> CustomHealth:
        """Return the operator's expressions for a target's objects."""

    def brief_store(self, target: Target) -> StateStore:
        """Return a target's record by the same."""


@dataclass(slots=True)
class FollowedScope:
    """One scope. `runs`: a thread is at it, since `began`; `listed`: by a LIST alone; `denied`: no WATCH; `whole`: it was LISTed.

    `error`: what is wrong with it since `failed`; `due`: when it is next LISTed, or watched again; `shown`: when the newest LIST began that
    has ended well (monotonic seconds).
    """

    api: Api
    scope: Scope
    runs: bool = False
    listed: bool = False
    denied: bool = False
    whole: bool = False
    error: AnnealError | None = None
    failed: float = 0.0
    due: float = 0.0
    began: float = 0.0
    shown: float = 0.0
    kept: bool = False


@dataclass(slots=True)
class Scopes:
    """The scopes of one cluster.

    `lines`: what their threads have seen (`cluster.watch`); `keys`: by target, where its objects are; `mute`: why it isn't known whether a
    kind of it is served.
    """

    lines: Lines = field(default_factory=lambda: queue.Queue(maxsize=_AHEAD))
    followed: dict[Key, FollowedScope] = field(default_factory=dict)
    keys: dict[str, tuple[Key, ...]] = field(default_factory=dict)
    mute: dict[str, AnnealError] = field(default_factory=dict)
    _accounts: dict[int, str] = field(default_factory=dict)
    """Whose rights a scope has, by the scope's id."""
    _narrow: set[str] = field(default_factory=set)
    """Identities that may not read all namespaces at once."""

    def keep(self, key: Key, api: Api, scope: Scope) -> None:
        """Follow a scope for good."""
        self._follow(key, api, scope, kept=True)

    def adjust(self, targets: Iterable[tuple[WatchedTarget, Api, Discovery]]) -> list[Key]:
        """Follow what these targets declare, and nothing else but what is kept; return what isn't followed any more."""
        wanted: dict[Key, tuple[Api, Scope]] = {}
        self.keys, self.mute = {}, {}
        accounts: set[str] = set()
        for watched, api, discovery in targets:
            name, found = watched.target.name, dict(self._of(watched, discovery))
            self.keys[name] = tuple(found)
            accounts.add(account_of(watched))
            for key, scope in found.items():
                wanted.setdefault(key, (api, scope))
        self._narrow &= accounts
        ended = [key for key, each in self.followed.items() if key not in wanted and not each.kept]
        for key in ended:
            dropped = self.followed.pop(key).scope
            dropped.close()
            del self._accounts[id(dropped)]
        for key in sorted(wanted.keys() - self.followed.keys()):
            self._follow(key, *wanted[key])
        return ended

    def restart(self, keys: Collection[Key], known: Collection[tuple[str, Identity]]) -> None:
        """LIST scopes anew that have been LISTed already. `known`: by account, what was seen; what of it the LIST lacks has gone."""
        for key in keys:
            each = self.followed.get(key)
            if each is not None and each.whole and not each.kept:
                each.scope.close()
                del self._accounts[id(each.scope)]
                scope = each.scope
                present = {identity for account, identity in known if holds(key, account, identity)}
                anew = Scope(scope.resource, scope.namespace, scope.partial, scope.selector, present=present, pause=scope.pause)
                self._follow(key, each.api, anew)

    def _follow(self, key: Key, api: Api, scope: Scope, *, kept: bool = False) -> None:
        self.followed[key], self._accounts[id(scope)] = FollowedScope(api, scope, kept=kept), key[0]

    def account(self, scope: Scope) -> str | None:
        """Return whose rights a scope has; None: it isn't followed any more, and its late lines are ignored."""
        return self._accounts.get(id(scope))

    def _of(self, watched: WatchedTarget, discovery: Discovery) -> Iterator[tuple[Key, Scope]]:
        account = account_of(watched)
        everywhere = account not in self._narrow
        for kind in sorted(watched.kinds):
            resource = discovery.preferred(kind)
            if resource is None and kind.group in discovery.stale:
                seen = f"the API group {kind.group} doesn't answer"
                self.mute[watched.target.name] = ClusterUnavailable.of(str(kind), seen, fix=f"repair the APIService of {kind.group}")
            if resource is None:
                continue
            spaces: Collection[str] = ("",) if everywhere or not resource.namespaced else sorted(watched.namespaces)
            for namespace in spaces:
                key = (account, resource.api_version, resource.kind, namespace)
                yield key, Scope(resource, namespace, partial=False, selector=PART_OF, pause=_LOOK_AGAIN)

    def go_on(self, now: float, interval: float) -> None:
        """Start what isn't followed yet, and LIST again what is due. `now`: monotonic seconds; `interval`: seconds."""
        watching = sum(each.runs and not each.listed for each in self.followed.values())
        listing = sum(each.runs and each.listed for each in self.followed.values())
        for each in self.followed.values():
            if each.runs or each.due > now:
                continue
            each.listed = each.denied or watching >= WATCHES
            if each.listed and listing >= _LISTS:
                continue
            each.due, each.began = now + interval, now
            (look if each.listed else started)(each.api, each.scope, self.lines)  # raises RuntimeError: there is no thread for it
            each.runs = True
            watching, listing = watching + (not each.listed), listing + each.listed

    def ended(self, scope: Scope, error: BaseException) -> None:
        """Note what ended a scope's thread; an account that may not read all namespaces watches each, one that may only LIST is LISTed."""
        found = next(((key, each) for key, each in self.followed.items() if each.scope is scope), None)
        if found is None:
            return
        key, each = found
        each.runs = False
        if not isinstance(error, AnnealError):
            raise error
        if isinstance(error, AccessDenied):
            if each.whole and not each.listed:
                each.denied = True
                return
            if scope.resource.namespaced and not scope.namespace:
                self._narrow.add(key[0])
        each.error, each.failed = error, each.failed or time.monotonic()

    def stands(self, scope: Scope) -> None:
        """Note that a scope was LISTed whole."""
        for each in self.followed.values():
            if each.scope is scope:
                each.whole, each.shown, each.error, each.failed = True, each.began, None, 0.0
                each.runs = each.runs and not each.listed

    def stood(self, scope: Scope, since: float) -> bool:
        """Whether a scope was LISTed, and hasn't been in trouble since before a moment (monotonic seconds)."""
        found = next((each for each in self.followed.values() if each.scope is scope), None)
        return found is not None and found.whole and (found.error is None or found.failed > since)

    def trouble(self, target: str, since: float) -> AnnealError | None:
        """Return what is wrong with one of a target's scopes since before a moment (monotonic seconds); None: nothing."""
        if target in self.mute:
            return self.mute[target]
        found = (self.followed[key] for key in self.keys.get(target, ()))
        return next((each.error for each in found if each.error and each.failed <= since), None)

    def are_whole(self, target: str) -> bool:
        """Whether each of a target's scopes was LISTed."""
        return target in self.keys and all(self.followed[key].whole for key in self.keys[target])

    def show(self, target: str, since: float) -> bool:
        """Whether each of a target's scopes is WATCHed, or was LISTed since a moment (monotonic seconds)."""
        found = [self.followed[key] for key in self.keys.get(target, ())]
        return all((each.runs and not each.listed and each.error is None) or each.shown >= since for each in found)

    def close(self) -> None:
        """End all threads."""
        for each in self.followed.values():
            each.scope.close()


def holds(key: Key, account: str, identity: Identity) -> bool:
    """Whether an object that an account has seen is in a scope."""
    here = key[3] in ("", identity.namespace)
    return here and (key[0], key[1].rpartition("/")[0], key[2]) == (account, identity.group, identity.kind)


def account_of(watched: WatchedTarget) -> str:
    """Return whose rights a target's looks have; empty: our own."""
    return watched.target.impersonate.service_account if watched.target.impersonate else ""
