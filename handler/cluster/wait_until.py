"""Waits for live objects: until they are ready, until they are gone, until a caller's judge is satisfied. `watch` feeds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from handler.cluster.api import Api
from handler.cluster.live import Object
from handler.cluster.watch import Seen, Stop, feed, scopes_of
from handler.model.names import Identity
from handler.model.resource import Resource


def until_gone(
    api: Api,
    wanted: Sequence[tuple[Resource, Identity, str]],
    timeout: float,
    stop: Callable[[], None] = lambda: None,
    left: Callable[[list[Object]], None] = lambda _: None,
) -> list[Object]:
    """Wait until none of these objects (kind, identity, uid) lives, and return those that still do after `timeout` seconds.

    An object of the same name with another uid counts as gone. Only metadata is read (finalizers are in it), but for Namespaces, whose
    conditions say what holds them. `left`: called with those that still live as often as `stop`.
    """
    uids = {identity: uid for _, identity, uid in wanted}
    live: dict[Identity, Object] = {identity: {} for identity in uids}

    def judge(seen: Seen) -> bool:
        identity, found = seen
        if found is None or found["metadata"].get("uid") != uids[identity]:
            live.pop(identity, None)
        else:
            live[identity] = found
        return identity not in live

    def there() -> list[Object]:
        return [found for found in live.values() if found]

    def tick() -> None:
        stop()
        left(there())

    scopes = scopes_of([(resource, identity) for resource, identity, _ in wanted], partial=True)
    feed(api, scopes, judge, timeout, tick)
    return there()


def until(
    api: Api,
    wanted: Sequence[tuple[Resource, Identity]],
    ready: Callable[[Object], bool],
    timeout: float,
    stop: Callable[[], None] = lambda: None,
    selector: str = "",
) -> list[Seen]:
    """Wait until `ready` is true of each object, and return those of which it isn't after `timeout` seconds.

    Args:
        api: with the right to list and watch these kinds.
        wanted: kind and identity.
        ready: called with each new state of an object; what it raises ends the wait.
        timeout: seconds in all.
        stop: called several times a second; what it raises (LeaseLost) ends the wait.
        selector: labels all of them carry, to spare the rest of their kind; empty: none.

    Returns:
        Identity and last state (None: not there) of each object that isn't ready.
    """
    waiting: dict[Identity, Object | None] = {identity: None for _, identity in wanted}

    def judge(seen: Seen) -> bool:
        identity, found = seen
        if found is not None and ready(found):
            waiting.pop(identity, None)
        else:
            waiting[identity] = found
        return identity not in waiting

    feed(api, scopes_of(wanted, partial=False, selector=selector), judge, timeout, stop)
    return list(waiting.items())


def follow(
    api: Api,
    wanted: Sequence[tuple[Resource, Identity]],
    judge: Callable[[Identity, Object | None], bool],
    timeout: float,
    stop: Stop = lambda: None,
    selector: str = "",
    *,
    everywhere: bool = False,
) -> bool:
    """Feed `judge` with each state of each object until it accepts all of them; False when `timeout` seconds ended first.

    Args:
        api: with the right to list and watch these kinds.
        wanted: kind and identity.
        judge: called with each new state of an object, None: it isn't there; what it raises ends the wait. An accepted object is judged
            again when it changes before the wait's end.
        timeout: seconds in all; 0: what the first LIST shows is judged, and nothing more.
        stop: called several times a second, on the thread that `judge` is called on; what it raises ends the wait. It may return objects
            that passing time alone makes acceptable.
        selector: labels all of them carry, to spare the rest of their kind; empty: none.
        everywhere: one LIST and one WATCH may show all namespaces, which needs the rights to that.

    """
    scopes = scopes_of(wanted, partial=False, selector=selector, everywhere=everywhere)
    feed(api, scopes, lambda seen: judge(*seen), timeout, stop)
    return not any(scope.open for scope in scopes)
