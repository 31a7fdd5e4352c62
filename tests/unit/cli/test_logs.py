"""Whose logs are asked for, and how they are printed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.cli.logs import LoggedPod, _workload, of_record
from handler.engine.planner.due import DONE, FAILED
from handler.engine.waits.log_tail import LogTail
from handler.model.names import Identity
from handler.state.record import Progress, RunStatus, StepRecord
from tests.unit.state.samples import NOON, blank, sha


@pytest.mark.parametrize(
    ("subject", "found"),
    [
        ("Deployment/shop/api", Identity("apps", "Deployment", "shop", "api")),
        ("Job/shop/migrate", Identity("batch", "Job", "shop", "migrate")),
        ("Pod/shop/api", Identity("", "Pod", "shop", "api")),
        ("Service/shop/api", None),
        ("Namespace/shop", None),
        ("Deployment/api", None),
        ("Deployment//api", None),
        ("target shop", None),
        ("", None),
    ],
)
def test_workloads_have_logs(subject: str, found: Identity | None) -> None:
    assert _workload(subject) == found


def test_the_record_names_what_failed_and_what_is_waited_for() -> None:
    steps = (StepRecord("one", "a", "Job/shop/a", "Create", outcome=FAILED), StepRecord("one", "b", "Job/shop/b", "Create", outcome=DONE))
    state = replace(blank(), rollout=Progress(sha(), "d" * 64, NOON, steps=steps), status=RunStatus(unhealthy=("Pod/shop/c: is: Pending",)))
    assert of_record(state) == ["Job/shop/a", "Pod/shop/c"]
    assert of_record(blank()) == of_record(None) == []


@pytest.mark.parametrize(
    ("tail", "lines"),
    [
        (None, ["Pod/shop/c: none of its containers that have run does badly now"]),
        (LogTail("c", "main", lines=("one", "two")), ["Pod/shop/c, pod c, container main:", "| one", "| two"]),
        (
            LogTail("c", "main", previous=True),
            [
                "Pod/shop/c, pod c, container main, before its last restart:",
                "| nothing; or it can't be read: kubectl auth can-i get pods --subresource=log -n shop",
            ],
        ),
        (LogTail("c", "main", withheld="why", fix="way out"), ["Pod/shop/c, pod c, container main:", "| withheld: why", "| way out"]),
    ],
)
def test_a_log_is_printed_below_its_object(tail: LogTail | None, lines: list[str]) -> None:
    assert list(LoggedPod("Pod/shop/c", tail).lines()) == lines
