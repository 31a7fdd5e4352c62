"""What the shared lister keeps: whose word counts, what its followers hear, what is left of what has gone."""

from __future__ import annotations

import gc
import json
import queue
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from handler.cluster import lister as listing
from handler.cluster.lister import Followed, Lister, LiveChange
from handler.model.backoff import Backoff
from handler.model.errors import AccessDenied, ApiRefused, ClusterUnavailable
from handler.model.names import Identity, Resource
from tests.patience import PATIENCE, until

pytestmark = pytest.mark.slow

MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
WEB = Identity("", "ConfigMap", "shop", "web")


def config(version: int, name: str = "web", uid: str = "u1", labels: dict[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": str(version), "managedFields": [{"manager": "x"}]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata | ({"labels": labels} if labels else {})}


class Stream:
    """A WATCH: its events come when the test sends them."""

    def __init__(self) -> None:
        self.pieces: queue.Queue[bytes] = queue.Queue()

    def read1(self, _most: int) -> bytes:
        return self.pieces.get()

    def shutdown(self) -> None:
        self.pieces.put(b"")

    def close(self) -> None:
        """Nothing is open."""


class Server:
    """Answers each LIST with the next of `lists` (the last one stays), and opens WATCHes."""

    def __init__(self, *lists: Any) -> None:
        self.lists = list(lists)
        self.listed = 0
        self.streams: queue.Queue[Stream] = queue.Queue()
        self.opened: list[str] = []
        self.refreshed: list[int] = []
        self.connection = SimpleNamespace(generation=7, refresh=self.refreshed.append)

    def get(self, _path: str, _query: Any, **_: Any) -> Any:
        self.listed += 1
        answer = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        if callable(answer):
            answer = answer()
        if isinstance(answer, Exception):
            raise answer
        return json.loads(json.dumps(answer))

    def stream(self, request: Any) -> Stream:
        self.opened.append(request.query["resourceVersion"])
        made = Stream()
        self.streams.put(made)
        return made

    def watched(self) -> Stream:
        return self.streams.get(timeout=PATIENCE)


def page(version: int, *items: dict[str, Any], following: str = "") -> dict[str, Any]:
    metadata = {"resourceVersion": str(version)} | ({"continue": following} if following else {})
    return {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": list(items)}


def event(change: str, item: dict[str, Any]) -> bytes:
    return json.dumps({"type": change, "object": item}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    return event("BOOKMARK", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}})


def version_of(followed: Followed, name: str = "web") -> str:
    item = followed.get("shop", name)
    return item["metadata"]["resourceVersion"] if item else ""


def told(change: LiveChange) -> tuple[str, str, str, bool]:
    before, after = (str(each["metadata"]["resourceVersion"]) if each else "" for each in (change.before, change.after))
    return change.identity.name, before, after, change.observed


Made = Callable[[Server], Lister]


@pytest.fixture
def lister(monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    monkeypatch.setattr(listing, "_AGAIN", Backoff(0.01, 0.05))
    made: list[Lister] = []

    def make(server: Server) -> Lister:
        made.append(Lister(server))  # type: ignore[arg-type]  # as much of an Api as is called
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_one_list_and_one_watch_serve_all_followers_of_a_scope(lister: Made) -> None:
    server = Server(page(5, config(3)))
    ours = lister(server)
    first, second = ours.follow(MAPS, "shop"), ours.follow(MAPS, "shop")
    assert first.wait(PATIENCE)
    server.watched().pieces.put(event("MODIFIED", config(6)))
    until(lambda: version_of(first) == version_of(second) == "6")
    assert (server.listed, server.opened) == (1, ["5"])
    assert first.complete
    assert [item["metadata"] for item in first.items()] == [{"name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "6"}], (
        "managedFields aren't kept"
    )
    ours.follow(MAPS, "other")
    until(lambda: server.listed == 2)


def test_a_follower_hears_what_is_known_as_additions_and_then_each_change_in_order(lister: Made) -> None:
    server = Server(page(5, config(3)))
    ours = lister(server)
    early, late = list[LiveChange](), list[LiveChange]()
    ours.follow(MAPS, hear=early.append).wait(PATIENCE)
    watch = server.watched()
    watch.pieces.put(event("MODIFIED", config(6)))
    until(lambda: len(early) == 2)
    ours.follow(MAPS, hear=late.append)
    watch.pieces.put(event("ADDED", config(7, "api", "u2")) + event("DELETED", config(8)))
    until(lambda: len(late) == 3)
    assert [told(change) for change in early] == [
        ("web", "", "3", False),
        ("web", "3", "6", True),
        ("api", "", "7", True),
        ("web", "6", "", True),
    ]
    assert [told(change) for change in late] == [("web", "", "6", False), ("api", "", "7", True), ("web", "6", "", True)]


def test_a_replaced_object_is_heard_as_a_deletion_and_an_addition(lister: Made) -> None:
    server = Server(page(5, config(3)))
    heard = list[LiveChange]()
    lister(server).follow(MAPS, hear=heard.append)
    server.watched().pieces.put(event("ADDED", config(9, uid="u2")))
    until(lambda: len(heard) == 3)
    assert [told(change) for change in heard[1:]] == [("web", "3", "", True), ("web", "", "9", True)]


def test_hearing_is_called_without_a_lock_and_its_failure_ends_nothing(lister: Made) -> None:
    server = Server(page(5, config(3)))
    ours, heard = lister(server), list[str]()

    def hear(_: LiveChange) -> None:
        heard.append(version_of(ours.follow(MAPS)))
        raise ValueError("a hearer's own mistake")

    ours.follow(MAPS, hear=hear)
    server.watched().pieces.put(event("MODIFIED", config(6)))
    until(lambda: len(heard) == 2)
    assert heard[-1] == "6"


def test_an_answer_to_a_write_is_read_at_once_and_a_late_older_event_does_not_replace_it(lister: Made) -> None:
    server = Server(page(5, config(3)))
    heard = list[LiveChange]()
    followed = lister(server).follow(MAPS, hear=heard.append)
    watch = server.watched()
    followed.saw(config(10))
    assert version_of(followed) == "10"
    watch.pieces.put(event("MODIFIED", config(8)) + event("MODIFIED", config(10)) + event("ADDED", config(11, "api", "u2")))
    until(lambda: version_of(followed, "api"))
    assert version_of(followed) == "10"
    until(lambda: len(heard) == 3)
    assert [told(change) for change in heard] == [("web", "", "3", False), ("web", "3", "10", True), ("api", "", "11", True)]


def test_an_answer_older_than_what_the_watch_has_reported_is_ignored(lister: Made) -> None:
    server = Server(page(5))
    followed = lister(server).follow(MAPS)
    watch = server.watched()
    watch.pieces.put(event("ADDED", config(6)) + event("DELETED", config(8)) + bookmark(9))
    until(lambda: followed.scope.version == "9")
    followed.saw(config(6))
    assert followed.items() == []


def test_an_object_known_from_a_write_alone_goes_when_a_later_list_lacks_it(lister: Made) -> None:
    waiting, going = threading.Event(), threading.Event()

    def slowly() -> dict[str, Any]:
        waiting.set()
        assert going.wait(PATIENCE)
        return page(20)

    server = Server(page(5), slowly)
    followed = lister(server).follow(MAPS)
    server.watched().pieces.put(event("ERROR", {"code": 410}))
    assert waiting.wait(PATIENCE)
    followed.saw(config(15))
    followed.saw(config(25, "new", "u2"))
    going.set()
    until(lambda: len(server.opened) == 2)
    assert [item["metadata"]["name"] for item in followed.items()] == ["new"]


def test_an_object_that_was_dropped_does_not_come_back_by_a_late_event(lister: Made) -> None:
    server = Server(page(5, config(3)))
    followed = lister(server).follow(MAPS)
    watch = server.watched()
    followed.dropped(WEB, "another")
    assert followed.items()
    followed.dropped(WEB, "u1")
    assert followed.items() == []
    watch.pieces.put(event("MODIFIED", config(6)) + event("ADDED", config(7, "api", "u2")))
    until(lambda: version_of(followed, "api"))
    assert not version_of(followed)
    watch.pieces.put(event("DELETED", config(8)) + event("ADDED", config(9, uid="u3")))
    until(lambda: version_of(followed) == "9")
    assert not followed.scope._dropped


def test_answers_of_other_namespaces_and_without_the_labels_are_not_kept(lister: Made) -> None:
    server = Server(page(5))
    followed = lister(server).follow(MAPS, "shop", "app=web")
    server.watched()
    followed.saw(config(6))
    other = config(7, labels={"app": "web"})
    other["metadata"]["namespace"] = "elsewhere"
    followed.saw(other)
    assert followed.items() == []
    followed.saw(config(8, labels={"app": "web"}))
    assert version_of(followed) == "8"


@pytest.mark.parametrize(
    "wrong", [AccessDenied.of("list ConfigMap", "forbidden"), ClusterUnavailable.of("list", "down"), ValueError("odd")], ids=type
)
def test_a_scope_that_fails_keeps_what_it_knows_says_why_and_recovers(lister: Made, wrong: Exception) -> None:
    server = Server(page(5, config(3)), wrong, wrong, page(9, config(8)))
    server.lists.insert(2, wrong)
    holding, going = threading.Event(), threading.Event()

    def hold() -> Exception:
        holding.set()
        assert going.wait(PATIENCE)
        return wrong

    server.lists[2] = hold
    followed = lister(server).follow(MAPS)
    server.watched().pieces.put(event("ERROR", {"code": 410}))
    assert holding.wait(PATIENCE)
    assert isinstance(followed.error, AccessDenied | ClusterUnavailable)
    assert followed.failed
    assert not followed.complete
    assert followed.wait(0)
    assert version_of(followed) == "3"
    going.set()
    until(lambda: followed.complete)
    assert version_of(followed) == "8"
    assert not followed.failed


def test_a_kind_that_is_not_served_is_no_empty_list(lister: Made) -> None:
    server = Server(page(5, config(3)), None)
    followed = lister(server).follow(MAPS)
    server.watched().pieces.put(event("ERROR", {"code": 410}))
    until(lambda: followed.error)
    assert isinstance(followed.error, ApiRefused)
    assert "v1 isn't served" in str(followed.error)
    assert version_of(followed) == "3"
    server.lists = [page(9)]
    until(lambda: followed.complete)
    assert followed.items() == []


def test_a_kind_that_goes_between_two_pages_leaves_what_the_other_page_holds(lister: Made) -> None:
    both = page(5, config(3), config(4, "api", "u2"))
    server = Server(both, page(9, config(3), following="more"), None)
    followed = lister(server).follow(MAPS)
    server.watched().pieces.put(event("ERROR", {"code": 410}))
    until(lambda: followed.error)
    assert len(followed.items()) == 2


def test_an_expired_token_inside_a_watch_is_renewed_and_the_watch_goes_on(lister: Made) -> None:
    server = Server(page(5, config(3)))
    followed = lister(server).follow(MAPS)
    server.watched().pieces.put(event("MODIFIED", config(6)) + event("ERROR", {"code": 401, "reason": "Unauthorized"}))
    server.watched()
    assert (server.refreshed, server.opened, server.listed) == ([7], ["5", "6"], 1)
    assert followed.complete


def test_a_cluster_restored_from_a_backup_is_read_again_whatever_was_newer(lister: Made) -> None:
    server = Server(page(50, config(40), config(41, "late", "u2")), page(20, config(10)))
    heard = list[LiveChange]()
    followed = lister(server).follow(MAPS, hear=heard.append)
    server.watched().pieces.put(event("ERROR", {"code": 504}))
    until(lambda: len(server.opened) == 2)
    assert followed.complete
    assert [version_of(followed), version_of(followed, "late")] == ["10", ""]
    assert server.opened[1] == "20"


def test_the_last_follower_ends_the_watch_and_a_closed_one_hears_nothing(lister: Made) -> None:
    server = Server(page(5, config(3)))
    ours, heard, others = lister(server), list[LiveChange](), list[LiveChange]()
    first, second = ours.follow(MAPS, hear=heard.append), ours.follow(MAPS, hear=others.append)
    watch = server.watched()
    until(lambda: len(heard) == len(others) == 1)
    first.close()
    first.close()
    watch.pieces.put(event("MODIFIED", config(6)))
    until(lambda: len(others) == 2)
    assert len(heard) == 1
    thread = next(iter(ours._scopes.values()))[1]
    second.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    ours.close()
    with pytest.raises(RuntimeError, match="closed"):
        ours.follow(MAPS)


def test_ten_thousand_objects_that_come_and_go_leave_nothing_behind(lister: Made) -> None:
    server = Server(page(5, config(3)))
    count = [0]
    followed = lister(server).follow(MAPS, hear=lambda _: count.__setitem__(0, count[0] + 1))
    watch = server.watched()

    def come_and_go(start: int) -> int:
        for number in range(start, start + 2000):
            name, uid, version = f"c{number}", f"n{number}", number * 10
            watch.pieces.put(event("ADDED", config(version, name, uid)) + event("DELETED", config(version + 5, name, uid)))
            if number % 7 == 0:
                followed.saw(config(version, name, uid))
                followed.dropped(Identity("", "ConfigMap", "shop", name), uid)
        until(lambda: followed.scope.version == str((start + 1999) * 10 + 5))
        until(followed.scope._calls.empty)
        gc.collect()
        return len(gc.get_objects())

    before = come_and_go(1000)
    after = [come_and_go(start) for start in range(3000, 11000, 2000)]
    assert max(after) - before < 300
    assert not followed.scope._dropped
    assert not followed.scope._own
    assert len(followed.items()) == 1
    assert count[0] >= 20_000
