"""Steps of a run that may not wait, as in a function: they act, look once, and the next run goes on with what time is left."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.model.run_event import RunEvent, RunPhase
from handler.state.record import StepRecord
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import state_of
from tests.unit.engine.in_memory_cluster import MAPS, InMemoryCluster, group, step


class Impatient:
    """A place that may not be rested in."""

    def asked(self) -> tuple[Job, ...]:
        return ()

    @contextmanager
    def resting(self) -> Iterator[float]:
        yield 0.0


def ready(timeout: int = 600, progress: int = 300) -> list[dict[str, Any]]:
    """A check of success: somebody else says `ready: yes`."""
    expected = [{"name": "ready", "path": "{.metadata.annotations.ready}", "default": "no", "value": {"static": "yes"}}]
    return [{"fieldComparisons": {"expectedValues": expected, "timeout": f"{timeout}s", "progressTimeout": f"{progress}s"}}]


def say_ready(town: InMemoryCluster, name: str, ready: str = "yes") -> None:
    """Be the controller."""
    body = {"metadata": {"annotations": {"ready": ready}}}
    town.server.must(Asked("PATCH", f"{MAPS}/{name}", {"fieldManager": "controller"}, body, "application/merge-patch+json", ""))


def look(town: InMemoryCluster, later: float = 0.0) -> Result:
    """Run once; `later`: by how many seconds its clock is on."""
    handler = town.handler()
    deps = replace(handler.dependencies("shop"), clock=lambda: time.time() + later)
    handler.dependencies = lambda name: {"shop": deps}[name]  # type: ignore[method-assign]  # the seam
    return handler.run(Job("shop", "tick"), None, Impatient())


def recorded(town: InMemoryCluster, name: str) -> StepRecord:
    known = state_of(town.handler()).rollout
    assert known
    return next(each for each in known.steps if each.step == name)


@pytest.fixture
def town() -> InMemoryCluster:
    made = InMemoryCluster()
    both = [step("CreateOrUpdate", name, success=ready()) for name in ("a", "b")]
    made.push(dict.fromkeys("abc", "1"), group("at once", *both, parallel=True), group("then", step("CreateOrUpdate", "c")))
    return made


def test_steps_at_once_all_act_before_the_run_leaves_its_wait_to_the_next(town: InMemoryCluster) -> None:
    assert look(town).outcome is Outcome.WAITING
    assert town.data("a", "b", "c") == ["1", "1", None]
    assert town.outcomes() == {"a": "", "b": "", "c": ""}


def test_each_look_goes_on_where_the_last_one_was_and_writes_nothing_twice(town: InMemoryCluster) -> None:
    look(town)
    began = recorded(town, "a").started
    say_ready(town, "a")
    assert look(town).outcome is Outcome.WAITING
    assert town.outcomes() == {"a": "done", "b": "", "c": ""}
    assert (recorded(town, "a").started, town.data("c")) == (began, [None])
    say_ready(town, "b")
    assert look(town).outcome in (Outcome.APPLIED, Outcome.UNCHANGED)
    assert town.outcomes() == dict.fromkeys("abc", "done")
    assert sorted(town.written) == ["PATCH a", "PATCH b", "PATCH c"]


def test_a_step_whose_time_is_over_fails_at_the_next_look() -> None:
    town = InMemoryCluster()
    town.push({"a": "1"}, group("one", step("CreateOrUpdate", "a", success=ready(timeout=600, progress=6000))))
    assert [look(town, later).outcome for later in (0, 300)] == [Outcome.WAITING] * 2
    result = look(town, later=660)
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed")
    assert recorded(town, "a").outcome == "failed"


def test_a_step_of_which_nothing_has_changed_for_too_long_fails_though_no_run_waits() -> None:
    town = InMemoryCluster()
    both = [step("CreateOrUpdate", name, success=ready(timeout=6000, progress=1000)) for name in ("a", "b")]
    town.push({"a": "1", "b": "1"}, group("one", *both, parallel=True))
    assert look(town).outcome is Outcome.WAITING
    say_ready(town, "b", "soon")
    assert look(town, later=900).outcome is Outcome.WAITING
    assert [len(recorded(town, name).stood) for name in "ab"] == [1, 1]
    failed = look(town, later=1200)
    assert (failed.outcome, failed.code) == (Outcome.FAILED, "rollout-failed")
    assert "nothing of it has changed for 16m40s" in recorded(town, "a").message
    assert [(recorded(town, name).outcome, recorded(town, name).stood) for name in "ab"] == [("failed", ()), ("skipped", ())]


def test_a_clock_that_is_set_back_during_a_wait_makes_it_no_longer(town: InMemoryCluster) -> None:
    begun: list[float] = []
    stop = threading.Event()
    town.push({"a": "2"}, group("one", step("CreateOrUpdate", "a", success=ready(timeout=2))))
    handler = town.handler()

    def wall() -> float:
        return time.time() - (86_400.0 if begun and time.monotonic() >= begun[0] + 0.3 else 0.0)

    def announce(event: RunEvent) -> None:
        if isinstance(event, RunPhase) and any(each.what == "one, a" for each in event.waits):
            begun.append(time.monotonic())

    deps = replace(handler.dependencies("shop"), clock=wall, announce=announce)
    handler.dependencies = lambda name: {"shop": deps}[name]  # type: ignore[method-assign]  # the seam
    giving_up = threading.Timer(120, stop.set)
    giving_up.start()
    result = handler.run(Job("shop", "tick"), stop)
    giving_up.cancel()
    assert (result.outcome, "not so after 2s" in result.message) == (Outcome.FAILED, True), result
