"""When targets are looked at although no push came."""

from __future__ import annotations

import itertools

import pytest

from handler.model.event import Job
from handler.triggers.schedule import Schedule

TICK, DRIFT = 300.0, 1800.0
EPOCH = 1_700_000_000.0
NAMES = tuple(f"t{number:03}" for number in range(1000))


def schedule(
    *names: str, drifting: tuple[str, ...] = (), jitter: float = 0.0, epoch: float = EPOCH, now: float = 1000.0, place: str = "here"
) -> Schedule:
    """A schedule whose jitter is the given share of its range."""
    return Schedule(names, drifting, (TICK, DRIFT), now, epoch, place, lambda low, high: low + (high - low) * jitter)


def drifts(found: Schedule, start: float, end: float) -> list[tuple[float, str]]:
    """Return when which drift runs were due between two moments, as a worker's loop finds them."""
    seen = []
    while (at := found.next()) < end:
        seen += [(max(at, start), job.target) for job in found.due(at) if job.drift]
        found.ticks(at)
    return seen


def test_every_target_has_a_start_up_tick_at_once() -> None:
    found = schedule("a", "b")
    assert found.next() == 1000.0
    assert found.ticks(1000.0) == (Job("a", "tick"), Job("b", "tick"))
    assert found.due(1000.0) == ()


def test_ticks_come_again_together_after_the_jittered_interval() -> None:
    early, late = schedule("a", "b"), schedule("a", "b", jitter=1.0)
    assert (len(early.ticks(1000.0)), early.ticks(1269.0), len(early.ticks(1270.0))) == (2, (), 2)
    late.ticks(1000.0)
    assert late.next() == 1330.0


def test_runs_of_a_tick_begin_at_once_and_then_one_after_the_other() -> None:
    found = schedule("a", "b", "c")
    found.ticks(1000.0)
    assert [found.need(target, 1000.0) for target in "abc"] == [True, False, False]
    assert found.next() == 1000.2
    assert found.due(1000.3) == (Job("b", "tick"),)
    assert found.due(1000.5) == (Job("c", "tick"),)
    assert found.need("a", 1000.55) is False, "it waits for its place"
    assert found.need("b", 1100.0) is True


def test_the_runs_of_very_many_are_through_within_a_tenth_of_the_interval() -> None:
    found = schedule(*NAMES)
    found.ticks(1000.0)
    begun = [found.need(target, 1000.0) for target in NAMES]
    assert begun.count(True) == 1
    assert len(found.due(1000.0 + TICK / 10)) == 999


def test_drift_runs_are_spread_over_their_interval() -> None:
    found = schedule(*NAMES, drifting=NAMES)
    seen = drifts(found, 1000.0, 1000.0 + DRIFT)
    whole = [sum(start <= at - 1000.0 < start + 60 for at, _ in seen) for start in range(0, 1800, 60)]
    assert 900 < len(seen) < 1100
    assert max(whole) < 3 * 1000 / 30, "no minute has more than three times its share"
    assert min(whole) > 0


def test_a_target_is_compared_again_after_about_an_interval() -> None:
    times = [at for at, target in drifts(schedule("a", "b", drifting=("a", "b")), 1000.0, 1000.0 + 20 * DRIFT) if target == "a"]
    gaps = [later - sooner for sooner, later in itertools.pairwise(times)]
    assert len(gaps) >= 18
    assert 0.8 * DRIFT <= min(gaps) <= max(gaps) <= 1.2 * DRIFT


@pytest.mark.slow
@pytest.mark.parametrize("life", [30.0, 1200.0, 1799.0, 1800.0, 2000.0])
def test_a_handler_that_is_started_again_and_again_compares_each_target_as_often(life: float) -> None:
    """It is away for five seconds each time; its monotonic clock begins anew, as on a machine that boots."""
    names, hours, away = NAMES[:40], 12, 5.0
    seen: dict[str, int] = dict.fromkeys(names, 0)
    at = EPOCH
    while at < EPOCH + hours * 3600:
        for _, target in drifts(schedule(*names, drifting=names, epoch=at, now=50.0), 50.0, 50.0 + life - away):
            seen[target] += 1
        at += life
    rounds = hours * 3600 / DRIFT
    expected = rounds * (1 - away / life)
    assert all(0.6 * expected <= count <= 1.1 * rounds + 1 for count in seen.values()), seen


def test_handlers_on_several_machines_compare_at_different_times() -> None:
    here, there = (schedule("a", drifting=("a",), place=place) for place in ("here", "there"))
    here.ticks(1000.0)
    there.ticks(1000.0)
    assert abs(drifts(here, 1000.0, 1000.0 + 2 * DRIFT)[0][0] - drifts(there, 1000.0, 1000.0 + 2 * DRIFT)[0][0]) > 1.0


def test_a_retry_comes_once_at_its_time() -> None:
    found = schedule("a")
    found.ticks(1000.0)
    found.retry("a", 1015.0)
    assert found.next() == 1015.0
    assert (found.due(1014.0), found.due(1015.0), found.due(1016.0)) == ((), (Job("a", "tick"),), ())


def test_a_result_without_a_next_try_ends_the_retry() -> None:
    found = schedule("a")
    found.retry("a", 1015.0)
    found.retry("a", None)
    found.retry("a", None)
    assert found.due(1016.0) == ()


def test_without_targets_nothing_is_ever_due() -> None:
    assert schedule().next() == float("inf")
    assert schedule().ticks(5000.0) == ()


def test_a_target_that_is_forgotten_is_due_no_more() -> None:
    schedule = Schedule(["shop"], [], (300.0, 1800.0), 0.0, 0.0)
    schedule.ticks(0.0)
    schedule.retry("shop.ns.a", 5.0)
    schedule.need("shop", 0.0)
    assert not schedule.need("shop.ns.a", 0.0)
    schedule.forget("shop.ns.a")
    schedule.forget("never")
    assert [job.target for job in schedule.due(100.0)] == []
