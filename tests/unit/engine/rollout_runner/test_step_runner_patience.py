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
from tests.patience import PATIENCE
from tests.unit.engine.in_memory_cluster import MAPS, InMemoryCluster, group, step

pytestmark = pytest.mark.slow


class Impatient:
    """A place that may not be rested in."""

    def asked(self) -> tuple[Job, ...]:
        return ()

    @contextmanager
    def resting(self) -> Iterator[float]:
        yield 0.0


def ready(timeout: int = 600, progress: int = 300) -> list[dict[str, Any]]:
    """A check of success: a controller says `ready: yes`."""
    expected = [{"name": "ready", "path": "{.metadata.annotations.ready}", "default": "no", "value": {"static": "yes"}}]
    return [{"fieldComparisons": {"expectedValues": expected, "timeout": f"{timeout}s", "progressTimeout": f"{progress}s"}}]


def say_ready(fake: InMemoryCluster, name: str, ready: str = "yes") -> None:
    """Be the controller."""
    body = {"metadata": {"annotations": {"ready": ready}}}
    fake.server.must(Asked("PATCH", f"{MAPS}/{name}", {"fieldManager": "controller"}, body, "application/merge-patch+json", ""))


def look(fake: InMemoryCluster, later: float = 0.0) -> Result:
    """Run once; `later`: by how many seconds its clock is on."""
    handler = fake.handler()
    deps = replace(handler.dependencies("shop"), clock=lambda: time.time() + later)
    handler.dependencies = lambda name: {"shop": deps}[name]  # type: ignore[method-assign]  # the seam
    return handler.run(Job("shop", "tick"), None, Impatient())


def recorded(fake: InMemoryCluster, name: str) -> StepRecord:
    known = state_of(fake.handler()).rollout
    assert known
    return next(each for each in known.steps if each.step == name)


@pytest.fixture
def fake() -> InMemoryCluster:
    made = InMemoryCluster()
    both = [step("CreateOrUpdate", name, success=ready()) for name in ("a", "b")]
    made.push(dict.fromkeys("abc", "1"), group("at once", *both, parallel=True), group("then", step("CreateOrUpdate", "c")))
    return made


def test_each_look_goes_on_where_the_last_one_was_and_writes_nothing_twice(fake: InMemoryCluster) -> None:
    look(fake)
    began = recorded(fake, "a").started
    say_ready(fake, "a")
    assert look(fake).outcome is Outcome.WAITING
    assert fake.outcomes() == {"a": "done", "b": "", "c": ""}
    assert (recorded(fake, "a").started, fake.data("c")) == (began, [None])
    say_ready(fake, "b")
    assert look(fake).outcome in (Outcome.APPLIED, Outcome.UNCHANGED)
    assert fake.outcomes() == dict.fromkeys("abc", "done")
    assert sorted(fake.written) == ["PATCH a", "PATCH b", "PATCH c"]


def test_a_step_of_which_nothing_has_changed_for_too_long_fails_though_no_run_waits() -> None:
    fake = InMemoryCluster()
    both = [step("CreateOrUpdate", name, success=ready(timeout=6000, progress=1000)) for name in ("a", "b")]
    fake.push({"a": "1", "b": "1"}, group("one", *both, parallel=True))
    assert look(fake).outcome is Outcome.WAITING
    say_ready(fake, "b", "soon")
    assert look(fake, later=900).outcome is Outcome.WAITING
    assert [len(recorded(fake, name).stood) for name in "ab"] == [1, 1]
    failed = look(fake, later=1200)
    assert (failed.outcome, failed.code) == (Outcome.FAILED, "rollout-failed")
    assert "nothing of it has changed for 16m40s" in recorded(fake, "a").message
    assert [(recorded(fake, name).outcome, recorded(fake, name).stood) for name in "ab"] == [("failed", ()), ("skipped", ())]


def test_a_clock_that_is_set_back_during_a_wait_makes_it_no_longer(fake: InMemoryCluster) -> None:
    begun: list[float] = []
    stop = threading.Event()
    fake.push({"a": "2"}, group("one", step("CreateOrUpdate", "a", success=ready(timeout=2))))
    handler = fake.handler()

    def wall() -> float:
        return time.time() - (86_400.0 if begun and time.monotonic() >= begun[0] + 0.3 else 0.0)

    def announce(event: RunEvent) -> None:
        if isinstance(event, RunPhase) and any(each.what == "one, a" for each in event.waits):
            begun.append(time.monotonic())

    deps = replace(handler.dependencies("shop"), clock=wall, announce=announce)
    handler.dependencies = lambda name: {"shop": deps}[name]  # type: ignore[method-assign]  # the seam
    giving_up = threading.Timer(PATIENCE, stop.set)
    giving_up.start()
    result = handler.run(Job("shop", "tick"), stop)
    giving_up.cancel()
    assert (result.outcome, "not so after 2s" in result.message) == (Outcome.FAILED, True), result
