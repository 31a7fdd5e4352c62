"""Following many objects: in several namespaces, in pages, through refusals, silence and new credentials."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handler.cluster import watch
from handler.cluster.api import Api
from handler.cluster.wait_until import follow, until
from handler.model.names import Identity, Resource, identity_of
from tests.kubectl import Kubectl
from tests.patience import PATIENCE
from tests.rooms.cluster.conftest import Apply, Kind, config_map
from tests.rooms.cluster.faulty_proxy import Handler, Trick, Wire, refuse

Through = Callable[..., Api]
LABEL = "anneal.dev/test"


@pytest.fixture
def spaces(kubectl: Kubectl, namespace: str) -> Iterator[tuple[str, str]]:
    other = f"{namespace}-b"
    kubectl.create_namespace(other)
    yield namespace, other
    kubectl.leave_namespaces(other)


def wanted_of(apply: Apply, kind: Kind, *places: tuple[str, str], data: str = "1") -> list[tuple[Resource, Identity]]:
    """Make ConfigMaps that carry a label, and return what is waited for."""
    label = {LABEL: places[0][0]}
    made = [apply(config_map(space, name, {"a": data}, labels=label)) for space, name in places]
    return [(kind("v1", "ConfigMap"), identity_of(each)) for each in made]


def is_done(_: Identity, live: dict[str, Any] | None) -> bool:
    return bool(live and live["data"]["a"] == "done")


def done(item: dict[str, Any]) -> bool:
    return bool(item["data"]["a"] == "done")


def lists(wire: Wire) -> list[str]:
    return [path for _, path in wire.seen if "watch=true" not in path]


def watches(wire: Wire) -> list[str]:
    return [path for _, path in wire.seen if "watch=true" in path]


def changing(apply: Apply, *places: tuple[str, str]) -> Callable[[], None]:
    """Return what makes ConfigMaps done as soon as it is called, once."""
    left = list(places)

    def change() -> None:
        while left:
            space, name = left.pop()
            apply(config_map(space, name, {"a": "done"}, labels={LABEL: places[0][0]}))

    return change


@pytest.mark.parametrize(("everywhere", "requests"), [(True, 1), (False, 2)])
def test_with_cluster_wide_rights_one_list_and_one_watch_serve_all_namespaces(
    wire: Wire, through: Through, apply: Apply, kind: Kind, spaces: tuple[str, str], *, everywhere: bool, requests: int
) -> None:
    places = [(space, name) for space in spaces for name in ("a", "b")]
    wanted = wanted_of(apply, kind, *places)
    change = changing(apply, *places)
    watched = threading.Event()

    def stop() -> None:
        if len(watches(wire)) == requests and not watched.is_set():
            watched.set()
            change()

    assert follow(through(), wanted, is_done, PATIENCE, stop, f"{LABEL}={spaces[0]}", everywhere=everywhere)
    assert (len(lists(wire)), len(watches(wire))) == (requests, requests)
    assert all(("/namespaces/" in path) is not everywhere for _, path in wire.seen)


def test_objects_of_the_first_list_may_be_judged_by_the_stop_callback(through: Through, apply: Apply, kind: Kind, namespace: str) -> None:
    wanted, seen = wanted_of(apply, kind, (namespace, "a"), (namespace, "b")), list[Identity]()

    def judge(identity: Identity, _live: object) -> bool:
        seen.append(identity)
        return False

    selector = f"{LABEL}={namespace}"
    assert follow(through(), wanted, judge, 0, lambda: seen, selector)
    assert len(seen) == 2
    assert not follow(through(), wanted, judge, 0, lambda: seen[:1], selector)


def test_a_list_is_read_in_pages_and_begun_anew_when_its_token_expires(
    wire: Wire, through: Through, apply: Apply, kind: Kind, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "LIMIT", 2)
    wanted = wanted_of(apply, kind, *((namespace, f"c{number}") for number in range(5)), data="done")
    wire.only = lambda method, path: "continue=" in path
    wire.tricks = [refuse(410)]
    assert follow(through(), wanted, is_done, PATIENCE, selector=f"{LABEL}={namespace}")
    assert ["continue=" in path for path in lists(wire)] == [False, True, False, True, True]


def test_an_expired_version_in_the_middle_of_a_watch_lists_again(
    wire: Wire, through: Through, apply: Apply, kind: Kind, namespace: str
) -> None:
    change = changing(apply, (namespace, "a"))

    def expire(handler: Handler) -> bool:
        change()
        told = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
        handler.answer(200, {"Content-Type": "application/json"}, json.dumps(told).encode() + b"\n")
        return False

    wanted = wanted_of(apply, kind, (namespace, "a"))
    wire.only, wire.tricks = lambda method, path: "watch=true" in path, [expire]
    assert until(through(), wanted, done, PATIENCE) == []
    assert len(lists(wire)) == 2


def test_a_watch_that_says_nothing_is_resumed_where_it_was(wire: Wire, through: Through, apply: Apply, kind: Kind, namespace: str) -> None:
    ended = threading.Event()
    change = changing(apply, (namespace, "a"))

    def hang(handler: Handler) -> bool:
        handler.start(200, {"Content-Type": "application/json", "Connection": "close"})
        handler.close_connection = True
        change()
        ended.wait(PATIENCE)
        return False

    wanted = wanted_of(apply, kind, (namespace, "a"))
    wire.only, wire.tricks = lambda method, path: "watch=true" in path, [hang]
    assert until(through(silence=0.5), wanted, done, PATIENCE) == []
    ended.set()
    assert len(lists(wire)) == 1, "it knew where it was"
    assert len(watches(wire)) >= 2, "the next may be silent for as long where the machine is busy"


def test_credentials_that_ended_are_loaded_anew_in_the_middle_of_a_wait(
    wire: Wire, through: Through, apply: Apply, kind: Kind, namespace: str, tmp_path: Path
) -> None:
    wanted = wanted_of(apply, kind, (namespace, "a"))
    change, heard = changing(apply, (namespace, "a")), list[str]()

    def end(handler: Handler) -> bool:
        heard.append(handler.headers["Authorization"])
        path = tmp_path / "proxied"
        path.write_text(path.read_text().replace("unused-by-the-proxy", "a-new-one"))
        change()
        return refuse(401)(handler)

    def listen(handler: Handler) -> bool:
        heard.append(handler.headers["Authorization"])
        return True

    wire.only = lambda method, path: "watch=true" in path
    tricks: list[Trick] = [end, listen]
    wire.tricks = tricks
    assert until(through(), wanted, done, PATIENCE) == []
    assert heard == ["Bearer unused-by-the-proxy", "Bearer a-new-one"]
    assert len(lists(wire)) == 1


def test_watch_events_queue_in_bounded_numbers(api: Api, apply: Apply, kind: Kind, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    most = [0]

    class Counted(queue.Queue[Any]):
        def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
            super().put(item, block, timeout)
            most[0] = max(most[0], self.qsize())

    monkeypatch.setattr(watch, "_AHEAD", 3)
    monkeypatch.setattr(queue, "Queue", Counted)
    wanted = wanted_of(apply, kind, *((namespace, f"c{number:02}") for number in range(12)), data="done")
    seen: list[str] = []

    def judge(identity: Identity, live: dict[str, Any] | None) -> bool:
        seen.append(identity.name)
        return is_done(identity, live)

    assert follow(api, wanted, judge, PATIENCE, selector=f"{LABEL}={namespace}")
    assert sorted(seen) == [f"c{number:02}" for number in range(12)]
    assert 1 <= most[0] <= 3


def test_an_object_healthy_by_time_alone_ends_the_wait(api: Api, apply: Apply, kind: Kind, namespace: str) -> None:
    wanted = wanted_of(apply, kind, (namespace, "a"), (namespace, "b"))
    calls = [0]

    def stop() -> list[Identity]:
        calls[0] += 1
        return [identity for _, identity in wanted] if calls[0] == 3 else []

    assert follow(api, wanted, is_done, PATIENCE, stop, f"{LABEL}={namespace}")
