"""What Prometheus is told of runs and of the door, read back by its own parser."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from handler.feedback.metrics import DoorMetrics, RunMetrics
from handler.model.event import Job
from handler.model.names import Identity
from handler.model.plan import Action, Change, Plan
from handler.model.result import Outcome, Result, Standing

TICK = Job("shop", "tick")
GOOD = Standing(succeeded=1000.0)


def parsed(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return each sample by its name and the values of its labels, sorted by label."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    found = {(sample.name, tuple(sample.labels[key] for key in sorted(sample.labels))): sample.value for sample in samples}
    assert len(found) == len(samples), "no sample is told twice"
    return found


def counting(**values: float) -> RunMetrics:
    return RunMetrics(*(lambda name=name: values.get(name, 0.0) for name in ("waiting", "running", "requests")))


def change(action: Action, name: str) -> Change:
    return Change(action, Identity("", "ConfigMap", "shop", name))


def test_a_run_is_counted_by_target_trigger_and_outcome_and_what_it_wrote_by_action() -> None:
    metrics = counting(waiting=2, running=1, requests=7)
    plan = Plan("shop", "a" * 40, ((change(Action.CREATE, "a"), change(Action.UNCHANGED, "b")),), (change(Action.PRUNE, "c"),))
    applied = Result("shop", Outcome.APPLIED, plan=plan, standing=GOOD)
    metrics.run(replace(TICK, trigger="push"), applied, 0.3)
    metrics.run(TICK, Result("shop", Outcome.UNCHANGED, standing=GOOD), 0.01)
    metrics.run(TICK, Result("shop", Outcome.HELD, plan=plan, standing=GOOD), 0.01)
    found = parsed(metrics.text())
    assert {key: value for key, value in found.items() if key[0] == "anneal_runs_total"} == {
        ("anneal_runs_total", ("applied", "shop", "push")): 1.0,
        ("anneal_runs_total", ("unchanged", "shop", "tick")): 1.0,
        ("anneal_runs_total", ("held", "shop", "tick")): 1.0,
    }
    assert {key[1]: value for key, value in found.items() if key[0] == "anneal_changes_total"} == {
        ("created", "shop"): 1.0,
        ("pruned", "shop"): 1.0,
    }
    assert found["anneal_run_duration_seconds_count", ("shop",)] == 3
    assert found["anneal_run_duration_seconds_bucket", ("0.05", "shop")] == 2
    assert (found["anneal_queue_waiting", ()], found["anneal_queue_running", ()], found["anneal_cluster_requests", ()]) == (2, 1, 7)


def test_how_a_target_stands_is_what_its_record_says() -> None:
    metrics = counting()
    standing = Standing(failures=3, next_try=2000.0, succeeded=1000.0, held=True, suspended=True, pinned=True, orphans=4, drifted=5)
    metrics.run(TICK, Result("shop", Outcome.FAILED, next_try=2000.0, standing=standing), 0.1)
    found = parsed(metrics.text())
    assert {key[0].removeprefix("anneal_target_"): value for key, value in found.items() if key[0].startswith("anneal_target_")} == {
        "failures": 3,
        "next_try_timestamp_seconds": 2000,
        "last_success_timestamp_seconds": 1000,
        "held": 1,
        "suspended": 1,
        "pinned": 1,
        "orphans": 4,
        "drifted_objects": 5,
    }


def failures(metrics: RunMetrics) -> float | None:
    return parsed(metrics.text()).get(("anneal_target_failures", ("shop",)))


def test_failures_count_where_no_record_can_be_read_and_end_with_a_success() -> None:
    metrics = counting()
    away = Result("shop", Outcome.FAILED)
    for number in (1, 2, 3):
        metrics.run(TICK, away, 0.1)
        assert failures(metrics) == number
    metrics.run(replace(TICK, dry_run=True), away, 0.1)
    metrics.run(TICK, Result("shop", Outcome.BUSY), 0.1)
    assert failures(metrics) == 3, "a plan and a busy target are no failed runs"
    metrics.run(TICK, Result("shop", Outcome.APPLIED, standing=GOOD), 0.1)
    assert failures(metrics) == 0
    assert ("anneal_target_last_success_timestamp_seconds", ("shop",)) in parsed(metrics.text())


def test_both_parts_make_one_text_and_a_silent_worker_is_a_zero() -> None:
    door, runs = DoorMetrics("1.2.3", lambda: 1.0, lambda: 2.0), counting()
    runs.run(TICK, Result("shop", Outcome.UNCHANGED, standing=GOOD), 0.1)
    door.delivery("github", "matched")
    door.delivery("github", "refused", "bad-signature")
    door.request("/webhooks/github", 202, 0.004)
    whole = parsed(door.merged(runs.text()))
    assert whole["anneal_worker_up", ()] == 1
    assert whole["anneal_runs_total", ("unchanged", "shop", "tick")] == 1
    assert whole["anneal_deliveries_total", ("", "matched", "github")] == 1
    assert whole["anneal_deliveries_total", ("bad-signature", "refused", "github")] == 1
    assert whole["anneal_requests_total", ("/webhooks/github", "202")] == 1
    assert (whole["anneal_outbox_waiting", ()], whole["anneal_outbox_kept", ()]) == (1, 2)
    alone = parsed(door.merged(None))
    assert alone["anneal_worker_up", ()] == 0
    assert not any(name.startswith("anneal_runs") for name, _ in alone)


def test_the_library_is_loaded_by_who_counts_and_nothing_heavy_by_the_door() -> None:
    code = "import sys, handler.wsgi; print(*sys.modules)"
    loaded: Any = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"prometheus_client", "kubernetes", "dulwich", "paramiko", "urllib3", "handler.worker", "handler.reading", "handler.build"}
    assert not heavy & set(loaded)
