"""What Prometheus is shown of runs and of the door, read back by its own parser."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from handler.feedback.prometheus import DoorMetrics, RunMetrics, TargetLabels
from handler.model.event import Job
from handler.model.health import HealthState
from handler.model.names import Identity
from handler.model.plan import Action, Change, Plan
from handler.model.result import Outcome, Result, TargetStanding
from handler.model.run_event import DeliveryDecided, HealthFound, RunPhase
from tests.fakes.signed_webhooks import SECRETS
from tests.unit.feedback.exposition_format import parsed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
TICK = Job("shop", "tick")
GOOD = TargetStanding(succeeded=1000.0)


def counting(**values: float) -> RunMetrics:
    return RunMetrics(*(lambda name=name: values.get(name, 0.0) for name in ("waiting", "running", "requests")))


def change(action: Action, name: str) -> Change:
    return Change(action, Identity("", "ConfigMap", "shop", name))


def test_a_run_is_counted_by_target_trigger_and_outcome_and_what_it_wrote_by_action() -> None:
    metrics = counting(waiting=2, running=1, requests=7)
    plan = Plan("shop", "a" * 40, ((change(Action.CREATE, "a"), change(Action.UNCHANGED, "b")),), (change(Action.PRUNE, "c"),))
    applied = Result("shop", Outcome.APPLIED, plan=plan, written=plan.writes, standing=GOOD)
    metrics.run(replace(TICK, trigger="push"), applied, 0.3)
    metrics.run(TICK, Result("shop", Outcome.UNCHANGED, standing=GOOD), 0.01)
    metrics.run(TICK, Result("shop", Outcome.HELD, plan=plan, standing=GOOD), 0.01)
    found = parsed(metrics.text())
    assert {key: value for key, value in found.items() if key[0] == "anneal_runs_total"} == {
        ("anneal_runs_total", ("", "applied", "shop", "push")): 1.0,
        ("anneal_runs_total", ("", "unchanged", "shop", "tick")): 1.0,
        ("anneal_runs_total", ("", "held", "shop", "tick")): 1.0,
    }
    assert {key[1]: value for key, value in found.items() if key[0] == "anneal_changes_total"} == {
        ("created", "shop"): 1.0,
        ("pruned", "shop"): 1.0,
    }
    assert found["anneal_run_duration_seconds_count", ("shop",)] == 3
    assert found["anneal_run_duration_seconds_bucket", ("0.05", "shop")] == 2
    assert (found["anneal_queue_waiting", ()], found["anneal_queue_running", ()], found["anneal_cluster_requests_total", ()]) == (2, 1, 7)


def test_changes_of_a_run_are_counted_whatever_its_outcome_under_its_trigger() -> None:
    metrics = counting()
    made = change(Action.CREATE, "a")
    metrics.run(replace(TICK, trigger="oneoff", rollback=True), Result("shop", Outcome.FAILED, written=(made,)), 0.1)
    found = parsed(metrics.text())
    assert found["anneal_changes_total", ("created", "shop")] == 1
    assert found["anneal_runs_total", ("", "failed", "shop", "rollback")] == 1


def test_target_metrics_follow_the_record() -> None:
    metrics = counting()
    standing = TargetStanding(failures=3, next_try=2000.0, succeeded=1000.0, held=True, suspended=True, pinned=True, orphans=4, drifted=5)
    standing = replace(standing, rolled_back=True, waiting=1500.0, refused=True)
    metrics.run(TICK, Result("shop", Outcome.FAILED, next_try=2000.0, standing=standing), 0.1)
    found = parsed(metrics.text())
    assert {key[0].removeprefix("anneal_target_"): value for key, value in found.items() if key[0].startswith("anneal_target_")} == {
        "failures": 3,
        "next_try_timestamp_seconds": 2000,
        "last_success_timestamp_seconds": 1000,
        "refused": 1,
        "held": 1,
        "suspended": 1,
        "pinned": 1,
        "rolled_back": 1,
        "waiting_since_timestamp_seconds": 1500,
        "orphans": 4,
        "drifted_objects": 5,
    }


def test_a_pass_of_the_watch_shows_the_health_of_each_target() -> None:
    metrics = counting()
    metrics.hear(HealthFound({"shop": HealthState.UNKNOWN, "site": HealthState.HEALTHY}))
    shown = [key[1] for key, value in parsed(metrics.text()).items() if key[0] == "anneal_target_health" and value == 1]
    assert sorted(shown) == [("healthy", "site"), ("unknown", "shop")]


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


def test_a_refused_request_is_no_failed_run_and_its_target_stands_as_before() -> None:
    metrics = counting()
    standing = replace(GOOD, failures=1, next_try=2000.0)
    for _ in range(3):
        metrics.run(replace(TICK, trigger="replay"), Result("shop", Outcome.REFUSED, standing=standing), 0.1)
    assert failures(metrics) == 1
    found = parsed(metrics.text())
    assert found["anneal_target_next_try_timestamp_seconds", ("shop",)] == 2000
    assert found["anneal_runs_total", ("", "refused", "shop", "replay")] == 3


def test_a_run_is_counted_by_the_code_of_its_failure_and_no_other_word_becomes_a_label() -> None:
    metrics = counting()
    for code in ("plan-refused", "internal", "whatever a record says"):
        metrics.run(TICK, Result("shop", Outcome.FAILED, code=code), 0.1)
    codes = {key[1][0] for key in parsed(metrics.text()) if key[0] == "anneal_runs_total"}
    assert codes == {"plan-refused", "internal", "other"}


def test_git_host_up_and_cluster_up_follow_the_last_answer() -> None:
    metrics = RunMetrics(
        *[lambda: 0.0] * 3, places={"shop": TargetLabels("git.example.com", "prod"), "site": TargetLabels("git.example.com", "stage")}
    )

    def up() -> dict[str, float]:
        return {key[1][0]: value for key, value in parsed(metrics.text()).items() if key[0] in ("anneal_git_host_up", "anneal_cluster_up")}

    assert up() == {}, "nobody was asked yet"
    metrics.run(TICK, Result("shop", Outcome.FAILED, code="cluster-unavailable"), 0.1)
    assert up() == {"prod": 0}, "the host wasn't asked"
    metrics.run(TICK, Result("shop", Outcome.FAILED, code="git-unavailable"), 0.1)
    assert up() == {"prod": 1, "git.example.com": 0}
    for code in ("access-denied", "kubeconfig-invalid"):
        metrics.run(TICK, Result("shop", Outcome.FAILED, code=code), 0.1)
    assert up() == {"prod": 1, "git.example.com": 0}, "these may come before anybody is heard"
    metrics.quiet(replace(TICK, target="site"), Result("site", Outcome.UNCHANGED, standing=GOOD))
    assert up() == {"prod": 1, "git.example.com": 1, "stage": 1}
    info = [key[1] for key in parsed(metrics.text()) if key[0] == "anneal_target_info"]
    assert sorted(info) == [("prod", "git.example.com", "shop"), ("stage", "git.example.com", "site")]


def test_a_refused_commit_is_one_failure_however_often_it_is_looked_at() -> None:
    metrics = counting()
    standing = replace(GOOD, failures=1, refused=True)
    for outcome in (Outcome.FAILED, Outcome.FAILED, Outcome.FAILED, Outcome.APPLIED):
        metrics.run(TICK, Result("shop", outcome, standing=standing), 0.1)
        assert failures(metrics) == 1, "also after a drift run that held the commit before"


def test_a_wait_is_shown_while_its_run_is_under_way() -> None:
    metrics = counting()
    metrics.hear(RunPhase("shop", "shop.1", "a" * 40, "waiting", 1500.0))
    assert parsed(metrics.text())["anneal_target_waiting_since_timestamp_seconds", ("shop",)] == 1500


def test_both_parts_make_one_text_and_a_silent_worker_is_a_zero() -> None:
    door, runs = DoorMetrics("1.2.3", lambda: 1.0, lambda: 2.0), counting()
    runs.run(TICK, Result("shop", Outcome.UNCHANGED, standing=GOOD), 0.1)
    door.hear(DeliveryDecided("github", "matched"))
    door.hear(DeliveryDecided("github", "refused", "bad-signature"))
    door.request("/webhooks/github", 202, 0.004)
    whole = parsed(door.merged(runs.text()))
    assert whole["anneal_worker_up", ()] == 1
    assert whole["anneal_runs_total", ("", "unchanged", "shop", "tick")] == 1
    assert whole["anneal_deliveries_total", ("", "matched", "github")] == 1
    assert whole["anneal_deliveries_total", ("bad-signature", "refused", "github")] == 1
    assert whole["anneal_requests_total", ("/webhooks/github", "202")] == 1
    assert (whole["anneal_outbox_waiting", ()], whole["anneal_outbox_kept", ()]) == (1, 2)
    alone = parsed(door.merged(None))
    assert alone["anneal_worker_up", ()] == 0
    assert not any(name.startswith("anneal_runs") for name, _ in alone)


HEAVY = {
    "kubernetes",
    "dulwich",
    "paramiko",
    "urllib3",
    "pysequoia",
    "jwt",
    "handler.worker.worker",
    "handler.app.target_status",
    "handler.app.build",
}
ROOMS = ("handler.cluster", "handler.source", "handler.render", "handler.plan", "handler.engine")
CONFIG = """\
apiVersion: anneal.dev/v1alpha1
kind: Config
webhooks: {github: {secrets: [{env: GITHUB}]}}
replay: {tokens: [{name: all, secret: {env: ALL}, may: [read, replay, metrics]}]}
targets: [{name: shop, repository: {url: "https://git.example.com/acme/shop.git"}, namespaces: [shop]}]
"""
SERVED = """
import os, sys
from handler.wsgi import application
print(*sys.modules)
from tests.fakes.signed_webhooks import SECRETS, github_headers, github_push
app, outbox = application(os.environ)
client, body, bearer = app.test_client(), github_push(), {"Authorization": f"Bearer {SECRETS['ALL']}"}
answers = [client.post("/webhooks/github", data=body, headers=github_headers(body)), client.post("/replay/shop", headers=bearer)]
paths = ("/healthz", "/readyz", "/api/targets", "/api/targets/shop", "/api/deliveries", "/api/openapi.json", "/metrics")
answers += [client.get(path, headers=bearer) for path in paths]
print(*(answer.status_code for answer in answers))
print(*sys.modules)
outbox.close(0)
"""


def test_prometheus_client_is_loaded_by_the_counting_process_alone(tmp_path: Path) -> None:
    """Neither on import nor when the application is made and serves: a lazy import would come only then."""
    (tmp_path / "anneal.yaml").write_text(CONFIG)
    place = {"ANNEAL_CONFIG": str(tmp_path / "anneal.yaml"), "ANNEAL_SOCKET": str(tmp_path / "worker.sock")}
    environ = {**os.environ, **place, **{name: SECRETS[name] for name in ("GITHUB", "ALL")}}
    ended = subprocess.run([sys.executable, "-c", SERVED], capture_output=True, text=True, check=True, cwd=ROOT, env=environ)
    imported, statuses, served = (line.split() for line in ended.stdout.splitlines())
    assert statuses == ["202", "202", "200", "503", "503", "503", "200", "200", "200"]
    assert "prometheus_client" not in imported
    assert "prometheus_client" in served
    assert not HEAVY & set(served)
    assert not [name for name in served if name.startswith(ROOMS)]
