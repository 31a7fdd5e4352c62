"""Looks that many ask for: one at a time, few at once, and none waits for ever."""

from __future__ import annotations

import gc
import math
import threading
import weakref
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor

import pytest

from handler.inspect import shared_looks
from handler.inspect.shared_looks import SharedLooks
from handler.model import deadline
from handler.model.errors import AccessDenied, ClusterUnavailable
from tests.patience import PATIENCE, until


def test_an_answer_serves_others_while_it_is_fresh() -> None:
    looks, seen = SharedLooks(), list[int]()

    def look() -> int:
        seen.append(1)
        return len(seen)

    assert [looks.ask("a", look, seconds=60, fresh=math.inf) for _ in range(3)] == [1, 1, 1]
    assert [looks.ask("b", look, seconds=60) for _ in range(2)] == [2, 3]
    looks.forget("a")
    assert looks.ask("a", look, seconds=60, fresh=math.inf) == 4


def test_few_answers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_looks, "KEPT", 2)
    looks = SharedLooks()
    for key in "abc":
        looks.ask(key, lambda: 1, seconds=60, fresh=math.inf)
    assert looks.ask("a", lambda: 2, seconds=60, fresh=math.inf) == 2
    assert looks.ask("c", lambda: 2, seconds=60, fresh=math.inf) == 1


def test_who_waits_too_long_is_told_and_the_late_answer_serves_the_next() -> None:
    looks, go = SharedLooks(), threading.Event()

    def look() -> int:
        assert go.wait(PATIENCE)
        return 1

    with pytest.raises(ClusterUnavailable, match=r"hasn't ended within \S+ s"):
        looks.ask("key", look, seconds=0.01, fresh=math.inf)
    go.set()
    until(lambda: looks.known("key"))
    assert looks.ask("key", lambda: 2, seconds=60, fresh=math.inf) == 1


def test_few_looks_are_under_way_at_once() -> None:
    looks, go, entered = SharedLooks(at_once=1), threading.Event(), threading.Event()

    def holds() -> int:
        entered.set()
        assert go.wait(PATIENCE)
        return 1

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(looks.ask, "a", holds, seconds=60)
        assert entered.wait(PATIENCE)
        with pytest.raises(ClusterUnavailable):
            looks.ask("b", lambda: 2, seconds=0.05)
        go.set()
        assert first.result(PATIENCE) == 1
    assert looks.ask("c", lambda: 2, seconds=60) == 2


def test_each_who_asks_gets_an_error_of_his_own_and_the_next_look_is_made() -> None:
    looks = SharedLooks()
    errors = list[AccessDenied]()

    def denied() -> int:
        raise AccessDenied.of("list pods", "403", fix="grant it")

    for _ in range(2):
        with pytest.raises(AccessDenied, match="list pods: 403; grant it") as caught:
            looks.ask("key", denied, seconds=60, fresh=math.inf)
        errors.append(caught.value)
    assert errors[0] is not errors[1]
    assert looks.ask("key", lambda: 1, seconds=60) == 1


def test_the_requests_of_a_look_have_its_deadline() -> None:
    assert SharedLooks().ask("key", lambda: deadline.left(1000.0), seconds=60) <= 60


def test_an_answer_is_forgotten_when_it_is_old_though_nobody_asks_again() -> None:
    looks, before = SharedLooks(), set(threading.enumerate())
    held = _Answer()
    gone, kept = weakref.ref(held), [held]
    del held
    looks.ask("key", kept.pop, seconds=60, fresh=0.001)
    looks.ask("other", lambda: 1, seconds=60, fresh=0.001)
    for thread in [each for each in set(threading.enumerate()) - before if each.name == "forget"]:
        assert thread.daemon, "a process that stops waits for none"
        thread.join(PATIENCE)
    gc.collect()
    assert gone() is None


def test_one_thread_forgets_all_and_stays_while_something_is_kept() -> None:
    looks, before = SharedLooks(), set(threading.enumerate())
    for key in "abc":
        looks.ask(key, lambda: 1, seconds=60, fresh=math.inf)
    assert [each.name for each in set(threading.enumerate()) - before if each.name == "forget"] == ["forget"]


class _Answer:
    pass


def test_a_cluster_that_did_not_answer_is_told_at_once_for_a_while() -> None:
    now, tried = [100.0], list[int]()
    looks = SharedLooks(clock=lambda: now[0])

    def dead() -> int:
        tried.append(1)
        raise ClusterUnavailable.of("https://cluster", "no answer", fix="look at it")

    errors = list[ClusterUnavailable]()
    for _ in range(3):
        with pytest.raises(ClusterUnavailable, match="no answer; look at it") as caught:
            looks.ask("key", dead, seconds=60, fresh=5)
        errors.append(caught.value)
    assert (len(tried), len({id(each) for each in errors}), looks.known("key")) == (1, 3, None)
    now[0] += shared_looks.FAILED + 1
    assert looks.ask("key", lambda: 1, seconds=60) == 1


def test_that_many_look_is_no_failure_of_the_cluster() -> None:
    looks, before = SharedLooks(at_once=0), set(threading.enumerate())
    with pytest.raises(ClusterUnavailable, match=r"0 others are under way|hasn't ended within"):
        looks.ask("key", lambda: 1, seconds=0.01)
    for thread in [each for each in set(threading.enumerate()) - before if each.name == "look"]:
        thread.join(PATIENCE)
    looks._places.release()
    assert looks.ask("key", lambda: 1, seconds=60) == 1


def test_who_joins_a_look_waits_only_for_what_is_left_of_its_time() -> None:
    looks, go = SharedLooks(), threading.Event()
    with pytest.raises(ClusterUnavailable):
        looks.ask("key", lambda: go.wait(PATIENCE), seconds=0.01)
    with ThreadPoolExecutor(1) as pool:
        joined = pool.submit(looks.ask, "key", lambda: True, seconds=10_000)
        try:
            with pytest.raises(ClusterUnavailable):
                joined.result(PATIENCE)
        finally:
            go.set()


def test_looks_of_one_name_follow_each_other_also_after_one_was_given_up() -> None:
    looks, go, begun, seen = SharedLooks(at_once=2), threading.Event(), threading.Event(), list[str]()

    def slow() -> int:
        begun.set()
        assert go.wait(PATIENCE)
        seen.append("slow ended")
        return 1

    def quick() -> int:
        seen.append("second")
        return 2

    with pytest.raises(ClusterUnavailable):
        looks.ask("head", slow, seconds=0.01, alone="shop")
    assert begun.wait(PATIENCE)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(looks.ask, "rollback", quick, seconds=60, alone="shop")
        assert looks.ask("elsewhere", lambda: 3, seconds=60, alone="other") == 3, "who waits for a turn takes no place"
        assert seen == []
        go.set()
        assert second.result(PATIENCE) == 2
    assert seen == ["slow ended", "second"]


def test_what_is_asked_anew_joins_no_look_that_began_before() -> None:
    looks, go, begun = SharedLooks(), threading.Event(), threading.Event()

    def old() -> str:
        begun.set()
        assert go.wait(PATIENCE)
        return "old"

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(looks.ask, "key", old, seconds=60, fresh=math.inf, alone="shop")
        assert begun.wait(PATIENCE)
        second = pool.submit(looks.ask, "key", lambda: "new", seconds=60, fresh=math.inf, alone="shop", anew=True)
        go.set()
        assert (first.result(PATIENCE), second.result(PATIENCE)) == ("old", "new")
    assert looks.known("key") == "new"


class EndsMeanwhile(SharedLooks):
    """An older look ends just after its answer was forgotten."""

    def forget(self, key: Hashable) -> None:
        super().forget(key)
        self._kept[key] = (math.inf, "old")


def test_what_is_asked_anew_is_no_look_that_ends_just_now() -> None:
    assert EndsMeanwhile().ask("key", lambda: "new", seconds=60, anew=True) == "new"
