"""Locutus' metrics beside ours, read back by Prometheus' own parser: each run that came to an end is one execution."""

from __future__ import annotations

import re
import sys

import pytest

from handler.feedback.locutus import LocutusMetrics
from handler.feedback.prometheus import RunMetrics
from handler.model.event import Job
from handler.model.result import Outcome, Result
from tests.unit.feedback.exposition_format import parsed

TICK = Job("locutus", "drift")
WHOLE = {Outcome.APPLIED, Outcome.UNCHANGED, Outcome.HELD, Outcome.SUPERSEDED, Outcome.DRIFTED, Outcome.PLANNED}
BAD = {Outcome.FAILED, Outcome.PRUNING, Outcome.ROLLED_BACK}


def none() -> float:
    return 0.0


def counts(*outcomes: Outcome, seconds: float = 0.5) -> tuple[float, float, float, float]:
    """Return executions, failures, number and sum of durations after runs with these ends."""
    metrics = LocutusMetrics(none, none, none)
    for outcome in outcomes:
        metrics.run(TICK, Result("locutus", outcome), seconds)
    found = parsed(metrics.text())
    assert sum(value for (name, _), value in found.items() if name == "anneal_runs_total") == len(outcomes), "ours are there, too"
    names = ("executions_total", "executions_failed_total", "execution_duration_seconds_count", "execution_duration_seconds_sum")
    executions, failed, number, total = (found[f"rollout_{name}", ()] for name in names)
    return executions, failed, number, total


@pytest.mark.parametrize("outcome", Outcome)
def test_each_outcome_is_counted_as_locutus_counts_it(outcome: Outcome) -> None:
    executed, failed = outcome in WHOLE | BAD, outcome in BAD
    assert counts(outcome) == (executed, failed, executed, 0.5 * executed)


def test_runs_add_up_and_all_is_there_before_the_first() -> None:
    assert counts() == (0, 0, 0, 0)
    assert counts(Outcome.APPLIED, Outcome.BUSY, Outcome.FAILED, Outcome.UNCHANGED, seconds=2.0) == (3, 1, 3, 6.0)


def test_metric_names_types_and_helps_are_those_of_locutus() -> None:
    """As Go's client writes them: two counters, and a summary without quantiles, none with labels."""
    text = LocutusMetrics(none, none, none).text()
    own = [line for line in text.splitlines() if re.match(r"(# \w+ )?rollout_", line)]
    assert own == [
        "# HELP rollout_executions_total Total number of times rollouts have been executed.",
        "# TYPE rollout_executions_total counter",
        "rollout_executions_total 0.0",
        "# HELP rollout_executions_failed_total Total number of times rollouts failed.",
        "# TYPE rollout_executions_failed_total counter",
        "rollout_executions_failed_total 0.0",
        "# HELP rollout_execution_duration_seconds Time executions are taking.",
        "# TYPE rollout_execution_duration_seconds summary",
        "rollout_execution_duration_seconds_count 0.0",
        "rollout_execution_duration_seconds_sum 0.0",
    ]
    if sys.platform == "linux":  # prometheus_client reads them in /proc
        assert "process_cpu_seconds_total " in text


def test_other_processes_have_no_locutus_metrics() -> None:
    assert "rollout_" not in RunMetrics(none, none, none).text().replace("anneal_", "")
