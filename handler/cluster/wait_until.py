"""Waits for live objects, fed by `watch`: until they are ready, gone, or accepted by a caller's judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from handler.cluster.api import Api
from handler.cluster.live import Object
from handler.cluster.watch import Seen, Stop, feed, scopes_of
from handler.model.names import Identity, Resource


def until_gone(
    api: Api,
    wanted: Sequence[tuple[Resource, Identity, str]],
    timeout: float,
    stop: Callable[[], None] = lambda: None,
    left: Callable[[list[Object]], None] = lambda _: None,
) -> list[Object]:
    """Wait until none of these objects (kind, identity, uid) lives; return those that still do after `timeout` seconds.

    Another uid counts as gone. `left`: called with the living as often as `stop`.
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
    """Wait until `ready` accepts each object; return identity and last state (None: absent) of those it doesn't after `timeout` seconds.

    `stop`: called several times a second; what it or `ready` raises ends the wait. `selector`: labels of all; empty: none.
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
    """Feed `judge` with each state of each object (None: absent) until it accepts all; False when `timeout` seconds ended first.

    An accepted object is judged again when it changes. `timeout` 0: only the first LIST counts. `stop`: called several times a second;
    returns objects that time alone makes acceptable. `selector`: labels of all. `everywhere`: one LIST and WATCH may show all namespaces.
    """
    scopes = scopes_of(wanted, partial=False, selector=selector, everywhere=everywhere)
    feed(api, scopes, lambda seen: judge(*seen), timeout, stop)
    return not any(scope.open for scope in scopes)
