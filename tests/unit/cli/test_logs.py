"""Whose logs are asked for."""

from __future__ import annotations

from dataclasses import replace

from handler.cli.logs import of_record
from handler.engine.planner.due import DONE, FAILED
from handler.state.record import Progress, RunStatus, StepRecord
from tests.unit.state.samples import NOON, blank, sha


def test_the_record_names_what_failed_and_what_is_waited_for() -> None:
    steps = (StepRecord("one", "a", "Job/shop/a", "Create", outcome=FAILED), StepRecord("one", "b", "Job/shop/b", "Create", outcome=DONE))
    state = replace(blank(), rollout=Progress(sha(), "d" * 64, NOON, steps=steps), status=RunStatus(unhealthy=("Pod/shop/c: is: Pending",)))
    assert of_record(state) == ["Job/shop/a", "Pod/shop/c"]
    assert of_record(blank()) == of_record(None) == []
