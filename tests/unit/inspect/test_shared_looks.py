"""Looks that many ask for: one at a time, few at once, and none waits for ever."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from handler.inspect import shared_looks
from handler.inspect.shared_looks import SharedLooks
from handler.model import deadline
from handler.model.errors import AccessDenied, ClusterUnavailable


def test_many_who_ask_at_once_share_one_look() -> None:
    looks, entered, go, seen, asking = SharedLooks(), threading.Event(), threading.Event(), list[int](), threading.Semaphore(0)

    def look() -> int:
        seen.append(1)
        entered.set()
        assert go.wait(60)
        return len(seen)

    def ask() -> int:
        asking.release()
        return looks.ask("key", look, seconds=60, fresh=math.inf)

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask)]
        assert entered.wait(60)
        asked += [pool.submit(ask) for _ in range(7)]
        for _ in range(8):
            assert asking.acquire(timeout=60)
        go.set()
        assert [each.result(60) for each in asked] == [1] * 8


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
    looks, go, done = SharedLooks(), threading.Event(), threading.Event()

    def look() -> int:
        assert go.wait(60)
        done.set()
        return 1

    with pytest.raises(ClusterUnavailable, match=r"hasn't ended within 0\.01 s"):
        looks.ask("key", look, seconds=0.01, fresh=math.inf)
    go.set()
    assert done.wait(60)
    assert looks.ask("key", lambda: 2, seconds=60, fresh=math.inf) == 1


def test_few_looks_are_under_way_at_once() -> None:
    looks, go, entered = SharedLooks(at_once=1), threading.Event(), threading.Event()

    def holds() -> int:
        entered.set()
        assert go.wait(60)
        return 1

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(looks.ask, "a", holds, seconds=60)
        assert entered.wait(60)
        with pytest.raises(ClusterUnavailable):
            looks.ask("b", lambda: 2, seconds=0.05)
        go.set()
        assert first.result(60) == 1
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
