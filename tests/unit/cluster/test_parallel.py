"""Requests at once: results in order, errors as results, and when no further one starts."""

from __future__ import annotations

import threading
import time

import pytest

from handler.cluster.parallel import parallel, together
from handler.model import deadline
from handler.model.errors import ApiRefused, LeaseLost


def test_parallel_results_keep_their_order_and_errors_are_results() -> None:
    refusal = ApiRefused.of("ConfigMap/a", "no")

    def refuse() -> int:
        raise refusal

    assert parallel([lambda: 1, refuse, lambda: 3], workers=3) == [1, refusal, 3]
    assert parallel([]) == []
    with pytest.raises(ApiRefused):
        together([lambda: 1, refuse])


def test_no_task_starts_after_a_lost_lease() -> None:
    started: list[int] = []
    lost = LeaseLost.of("Lease", "taken")

    def task(number: int) -> int:
        started.append(number)
        if number == 2:
            raise lost
        return number

    results = parallel([lambda number=number: task(number) for number in range(50)], workers=1)  # type: ignore[misc] # mypy can't type a default
    assert started == [0, 1, 2]
    assert results == [0, 1, *[lost] * 48]


def test_an_unexpected_exception_is_raised_and_no_further_task_starts() -> None:
    started = threading.Semaphore(0)

    def mistake() -> None:
        started.release()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        parallel([mistake] * 100, workers=2)
    assert sum(started.acquire(blocking=False) for _ in range(100)) <= 2


def test_parallel_threads_share_the_deadline() -> None:
    with deadline.until(time.monotonic() - 1.0):
        assert parallel([lambda: deadline.left(60.0)] * 3) == [deadline.LEAST] * 3
