"""When targets are looked at although nobody pushed."""

from __future__ import annotations

from handler.model.event import Job
from handler.triggers.schedule import Schedule


def schedule(*names: str, drifting: tuple[str, ...] = (), jitter: float = 0.0) -> Schedule:
    """A schedule started at 1000 whose jitter is the given share of its range."""
    return Schedule(names, drifting, (300.0, 1800.0), 1000.0, lambda low, high: low + (high - low) * jitter)


def test_every_target_has_a_start_up_tick() -> None:
    assert schedule("a", "b").due(1000.0) == (Job("a", "tick"), Job("b", "tick"))


def test_the_only_target_starts_at_once_and_many_are_spread() -> None:
    assert schedule("a", jitter=1.0).next() == 1000.0
    assert schedule(*(str(number) for number in range(11)), jitter=1.0).next() == 1002.0
    assert schedule(*(str(number) for number in range(1000)), jitter=1.0).next() == 1030.0


def test_a_tick_comes_again_after_the_jittered_interval() -> None:
    early = schedule("a")
    early.due(1000.0)
    assert (early.due(1269.0), early.due(1270.0)) == ((), (Job("a", "tick"),))
    late = schedule("a", jitter=1.0)
    late.due(1000.0)
    assert late.next() == 1330.0


def test_drift_runs_are_spread_over_the_targets_that_want_them() -> None:
    found = schedule("a", "b", "c", drifting=("a", "b"))
    found.due(1000.0)
    assert [job for job in found.due(1900.0) if job.drift] == [Job("a", "drift")]
    assert [job for job in found.due(2800.0) if job.drift] == [Job("b", "drift")]


def test_a_retry_comes_once_at_its_time() -> None:
    found = schedule("a")
    found.due(1000.0)
    found.retry("a", 1015.0)
    assert found.next() == 1015.0
    assert (found.due(1014.0), found.due(1015.0), found.due(1016.0)) == ((), (Job("a", "tick"),), ())


def test_a_result_without_a_next_try_ends_the_retry() -> None:
    found = schedule("a")
    found.due(1000.0)
    found.retry("a", 1015.0)
    found.retry("a", None)
    found.retry("a", None)
    assert found.due(1016.0) == ()


def test_without_targets_nothing_is_ever_due() -> None:
    assert schedule().next() == float("inf")
