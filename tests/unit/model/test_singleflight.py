"""One attempt serves concurrent callers of a key; its end reaches all of them, and each of them anew."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from handler.model.errors import AnnealError, RefNotFound, TransientError
from handler.model.singleflight import SingleFlight
from tests.patience import PATIENCE
from tests.unit.waiting import joined

Flights = SingleFlight[str, object]


def unexpected() -> AnnealError:
    return TransientError.of("question", "another caller's attempt failed")


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    return joined(monkeypatch)


def ten_callers(waiting: threading.Semaphore, end: Callable[[], object]) -> list[object]:
    """Return what ten concurrent callers get from one attempt."""
    flights, gate, asked = Flights(), threading.Event(), []

    def ask() -> object:
        asked.append(1)
        assert gate.wait(PATIENCE)
        return end()

    def call() -> object:
        try:
            return flights.do("key", ask, unexpected)
        except Exception as error:  # noqa: BLE001 - it is what is compared
            return error

    with ThreadPoolExecutor(10) as pool:
        ends = [pool.submit(call) for _ in range(10)]
        for _ in range(9):
            assert waiting.acquire(timeout=PATIENCE)
        gate.set()
    assert len(asked) == 1
    assert flights._flights == {}
    return [each.result() for each in ends]


@pytest.mark.parametrize("answer", [object(), None], ids=["object", "none"])
def test_concurrent_callers_get_the_answer_of_one_attempt(waiting: threading.Semaphore, answer: object) -> None:
    assert ten_callers(waiting, lambda: answer) == [answer] * 10


def test_an_error_is_raised_to_each_caller_as_one_of_its_own(waiting: threading.Semaphore) -> None:
    def fails() -> object:
        raise RefNotFound.of("main", "not on the host")

    ends = ten_callers(waiting, fails)
    assert [(type(end), str(end)) for end in ends] == [(RefNotFound, "main: not on the host")] * 10
    assert len({id(end) for end in ends}) == 10, "an exception belongs to one thread"


def test_an_unexpected_exception_stays_with_the_asking_thread(waiting: threading.Semaphore) -> None:
    ends = ten_callers(waiting, lambda: 1 / 0)
    assert sorted(type(end).__name__ for end in ends) == [*["TransientError"] * 9, "ZeroDivisionError"]


def test_the_next_caller_asks_anew_unless_answers_are_kept_for_their_age() -> None:
    now = [10.0]
    flights, cache = (SingleFlight[str, float](lambda: now[0], kept=kept) for kept in (False, True))

    def ask() -> float:
        return now[0]

    assert (flights.do("key", ask, unexpected), cache.do("key", ask, unexpected)) == (10.0, 10.0)
    now[0] = 20.0
    assert (flights.do("key", ask, unexpected), cache.do("key", ask, unexpected)) == (20.0, 10.0)
    assert cache.do("key", ask, unexpected, since=10.0) == 10.0
    assert cache.do("other", ask, unexpected, since=10.0) == 20.0
    assert cache.do("key", ask, unexpected, since=10.1) == 20.0


def test_an_error_isnt_kept() -> None:
    cache = SingleFlight[str, int](kept=True)
    with pytest.raises(ZeroDivisionError):
        cache.do("key", lambda: 1 // 0, unexpected)
    assert cache.do("key", lambda: 1, unexpected) == 1


def test_the_entry_is_removed_before_a_waiting_caller_goes_on() -> None:
    flights = Flights()
    for number in range(100):
        assert flights.start("key", str(number).strip, thread="test").result(PATIENCE) == str(number)


def test_callers_that_bound_their_wait_share_one_daemon_thread() -> None:
    flights, gate, threads = Flights(), threading.Event(), []

    def ask() -> object:
        threads.append(threading.current_thread())
        assert gate.wait(PATIENCE)
        raise OSError("the answer's own error")

    first, second = (flights.start("key", ask, thread="test") for _ in range(2))
    assert first is second
    with pytest.raises(TimeoutError):
        first.result(0.01)
    gate.set()
    with pytest.raises(OSError, match="own error"):
        second.result(PATIENCE)
    assert [(thread.name, thread.daemon) for thread in threads] == [("test", True)]


def test_without_a_thread_the_flight_fails_and_the_next_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    flights = Flights()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", full)
        failed = flights.start("key", lambda: 1, thread="test")
    with pytest.raises(RuntimeError):
        failed.result(PATIENCE)
    assert flights.start("key", lambda: 1, thread="test").result(PATIENCE) == 1
