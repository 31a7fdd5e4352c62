"""Metrics as lines of a log: what CloudWatch reads of them, and that their names are Prometheus' own."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from handler.feedback.emf import NAMESPACE, EmfLines
from handler.feedback.prometheus import DoorMetrics, RunMetrics
from handler.model.event import Job
from handler.model.names import Identity
from handler.model.plan import Action, Change, Plan
from handler.model.result import Outcome, Result, TargetStanding
from handler.model.run_event import DeliveryDecided

NOW = 1_772_366_400.0
WEB = Identity("", "ConfigMap", "shop", "web")
PLAN = Plan("shop", "a" * 40, ((Change(Action.CREATE, WEB), Change(Action.UNCHANGED, WEB)),), ())
STANDING = TargetStanding(failures=2, next_try=NOW + 60, succeeded=NOW - 90.4, held=True, orphans=3, drifted=4)
PUSH = Job("shop", "push")
OWN = {"anneal_run_failures", "anneal_target_last_success_age_seconds", "anneal_target_degraded"}
"""What Prometheus derives itself, or has in a label."""


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def lines(told: list[str]) -> EmfLines:
    return EmfLines(told.append, lambda: NOW)


def result(outcome: Outcome = Outcome.APPLIED, **about: Any) -> Result:
    return Result("shop", outcome, "a" * 40, "push", run="shop.1", **about)


def test_a_run_is_one_line_of_the_embedded_metric_format(lines: EmfLines, told: list[str]) -> None:
    lines.run(PUSH, result(plan=PLAN, written=PLAN.writes, standing=STANDING), 1.23456)
    (line,) = told
    assert "\n" not in line
    found = json.loads(line)
    about = found.pop("_aws")
    assert about["Timestamp"] == 1_772_366_400_000
    (directive,) = about["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == (NAMESPACE, [["target"]])
    named = {metric["Name"]: metric["Unit"] for metric in directive["Metrics"]}
    assert {name: found.pop(name) for name in named} == {
        "anneal_runs": 1,
        "anneal_run_failures": 0,
        "anneal_run_duration_seconds": 1.235,
        "anneal_changes": 1,
        "anneal_target_failures": 2,
        "anneal_target_refused": 0,
        "anneal_target_held": 1,
        "anneal_target_suspended": 0,
        "anneal_target_pinned": 0,
        "anneal_target_rolled_back": 0,
        "anneal_target_orphans": 3,
        "anneal_target_drifted_objects": 4,
        "anneal_target_degraded": 0,
        "anneal_target_last_success_age_seconds": 90,
    }
    assert {name for name, unit in named.items() if unit == "Seconds"} == {name for name in named if name.endswith("_seconds")}
    assert found == {"target": "shop", "trigger": "push", "outcome": "applied", "run": "shop.1", "commit": "a" * 40}


@pytest.mark.parametrize(
    ("outcome", "job", "failed"),
    [
        (Outcome.FAILED, PUSH, 1),
        (Outcome.PRUNING, PUSH, 1),
        (Outcome.FAILED, Job("shop", "replay", dry_run=True), 0),
        (Outcome.BUSY, PUSH, 0),
        (Outcome.HELD, PUSH, 0),
    ],
)
def test_a_failure_is_counted_and_a_plan_writes_nothing(lines: EmfLines, told: list[str], outcome: Outcome, job: Job, failed: int) -> None:
    lines.run(job, result(outcome, plan=PLAN, code="x"), 1.0)
    found = json.loads(told[0])
    assert (found["anneal_run_failures"], found["anneal_changes"], found["code"]) == (failed, 0, "x")


def test_what_a_failed_run_wrote_is_counted_and_an_approval_is_no_replay(lines: EmfLines, told: list[str]) -> None:
    lines.run(Job("shop", "replay", approve="h1"), result(Outcome.FAILED, written=PLAN.writes), 1.0)
    found = json.loads(told[0])
    assert (found["anneal_changes"], found["trigger"]) == (len(PLAN.writes), "approval")


def test_without_a_readable_record_there_are_no_target_metrics(lines: EmfLines, told: list[str]) -> None:
    lines.run(PUSH, result(Outcome.FAILED), 1.0)
    lines.run(PUSH, result(standing=TargetStanding()), 1.0)
    assert not [name for name in json.loads(told[0]) if name.startswith("anneal_target_")]
    assert "anneal_target_last_success_age_seconds" not in json.loads(told[1]), "it never succeeded"


def test_emf_counts_deliveries_and_token_failures_and_no_request(lines: EmfLines, told: list[str]) -> None:
    lines.hear(DeliveryDecided("github", "refused", "bad-signature"))
    lines.hear(DeliveryDecided("codecommit", "matched"))
    lines.token_failure("/replay/<target>")
    lines.request("/healthz", 200, 0.1)
    found = [json.loads(line) for line in told]
    assert [each["_aws"]["CloudWatchMetrics"][0]["Dimensions"] for each in found] == [[["provider", "outcome"]]] * 2 + [[["route"]]]
    assert [(each.get("anneal_deliveries"), each.get("code")) for each in found] == [(1, "bad-signature"), (1, None), (None, None)]
    assert found[2]["anneal_token_failures"] == 1


def test_the_names_are_prometheus_own(lines: EmfLines, told: list[str]) -> None:
    runs = RunMetrics(lambda: 0.0, lambda: 0.0, lambda: 0.0)
    runs.run(PUSH, result(plan=PLAN, written=PLAN.writes, standing=STANDING), 1.0)
    known = {family.name for text in (runs.text(), DoorMetrics("", lambda: 0.0, lambda: 0.0).text()) for family in _families(text)}
    lines.run(PUSH, result(plan=PLAN, written=PLAN.writes, standing=STANDING), 1.0)
    lines.hear(DeliveryDecided("github", "matched"))
    lines.token_failure("/metrics")
    named = {metric["Name"] for line in told for metric in json.loads(line)["_aws"]["CloudWatchMetrics"][0]["Metrics"]}
    assert named - OWN <= known
    assert all(re.fullmatch(r"anneal_[a-z_]+", name) for name in named)


def _families(text: str) -> Any:
    return text_string_to_metric_families(text)


def test_emf_lines_are_written_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    EmfLines().hear(DeliveryDecided("github", "matched"))
    assert json.loads(capsys.readouterr().out)["anneal_deliveries"] == 1
