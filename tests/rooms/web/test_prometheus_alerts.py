"""The alerts, judged by Prometheus' own promtool: every rule is sound, fires when it should, and stays silent otherwise."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from infra.debian import unpacked

ROOT = Path(__file__).resolve().parents[3]
ALERTS = ROOT / "infra" / "prometheus" / "alerts.yaml"
HEALTHY = {
    'anneal_build_info{version="1"}': "1x120",
    "anneal_worker_up": "1x120",
    "anneal_worker_start_time_seconds": "5x120",
    "anneal_web_start_time_seconds": "5x120",
    'anneal_target_failures{target="shop"}': "0x120",
    'anneal_target_last_success_timestamp_seconds{target="shop"}': "0+60x120",
    'anneal_target_health{target="shop",health="healthy"}': "1x120",
    'anneal_target_health{target="shop",health="degraded"}': "0x120",
    'anneal_target_health{target="shop",health="unknown"}': "0x120",
    "anneal_interval_seconds": "300x120",
    'anneal_heartbeat_timestamp_seconds{cluster="prod"}': "0+60x120",
    'anneal_git_host_up{host="git.example.com"}': "1x120",
    'anneal_cluster_up{cluster="prod"}': "1x120",
    'anneal_target_info{target="shop",host="git.example.com",cluster="prod"}': "1x120",
    'anneal_target_refused{target="shop"}': "0x120",
    'anneal_target_waiting_since_timestamp_seconds{target="shop"}': "0x120",
    'anneal_target_orphans{target="shop"}': "0x120",
    'anneal_dead_letters{queue="anneal-dead.fifo"}': "0x120",
    'anneal_target_held{target="shop"}': "0x120",
    'anneal_target_suspended{target="shop"}': "0x120",
    'anneal_target_pinned{target="shop"}': "0x120",
    'anneal_target_rolled_back{target="shop"}': "0x120",
    'anneal_target_drifted_objects{target="shop"}': "0x120",
    "anneal_queue_waiting": "0x120",
    'anneal_deliveries_total{provider="github",outcome="refused",code="bad-signature"}': "0x120",
    'anneal_deliveries_total{provider="github",outcome="matched",code=""}': "0+60x120",
    'anneal_token_failures_total{route="/replay/<target>"}': "0x120",
    'anneal_requests_total{route="/webhooks/github",status="202"}': "0+60x120",
    'anneal_request_duration_seconds_bucket{route="/webhooks/github",le="0.025"}': "0+60x120",
    'anneal_request_duration_seconds_bucket{route="/webhooks/github",le="2.5"}': "0+60x120",
    'anneal_request_duration_seconds_bucket{route="/webhooks/github",le="+Inf"}': "0+60x120",
}
"""Two hours, a value a minute."""
TROUBLE: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "AnnealDown": ({'anneal_build_info{version="1"}': "_x120"}, {}, "2h"),
    "AnnealWorkerDown": ({"anneal_worker_up": "0x120"}, {}, "2h"),
    "AnnealRestarts": ({"anneal_worker_start_time_seconds": "0+60x120"}, {}, "2h"),
    "AnnealTargetFailing": ({'anneal_target_failures{target="shop"}': "3x120"}, {"target": "shop"}, "2h"),
    "AnnealTargetStale": ({'anneal_target_last_success_timestamp_seconds{target="shop"}': "60x120"}, {"target": "shop"}, "2h"),
    "AnnealTargetDegraded": (
        {'anneal_target_health{target="shop",health="degraded"}': "1x120"},
        {"target": "shop", "health": "degraded"},
        "2h",
    ),
    "AnnealTargetHealthUnknown": (
        {'anneal_target_health{target="shop",health="unknown"}': "1x120"},
        {"target": "shop", "health": "unknown"},
        "2h",
    ),
    "AnnealHeartbeatLost": ({'anneal_heartbeat_timestamp_seconds{cluster="prod"}': "0+60x60 3600x60"}, {"cluster": "prod"}, "2h"),
    "AnnealGitHostUnreachable": ({'anneal_git_host_up{host="git.example.com"}': "0x120"}, {"host": "git.example.com"}, "2h"),
    "AnnealClusterUnreachable": ({'anneal_cluster_up{cluster="prod"}': "0x120"}, {"cluster": "prod"}, "2h"),
    "AnnealTargetRefused": ({'anneal_target_refused{target="shop"}': "1x120"}, {"target": "shop"}, "2h"),
    "AnnealTargetWaits": ({'anneal_target_waiting_since_timestamp_seconds{target="shop"}': "600x120"}, {"target": "shop"}, "2h"),
    "AnnealTargetOrphans": ({'anneal_target_orphans{target="shop"}': "2x1600"}, {"target": "shop"}, "25h"),
    "AnnealDeadLetters": ({'anneal_dead_letters{queue="anneal-dead.fifo"}': "3x120"}, {"queue": "anneal-dead.fifo"}, "2h"),
    "AnnealTargetHeld": ({'anneal_target_held{target="shop"}': "1x120"}, {"target": "shop"}, "2h"),
    "AnnealTargetSuspended": ({'anneal_target_suspended{target="shop"}': "1x1600"}, {"target": "shop"}, "25h"),
    "AnnealTargetPinned": ({'anneal_target_pinned{target="shop"}': "1x1600"}, {"target": "shop"}, "25h"),
    "AnnealTargetRolledBack": ({'anneal_target_rolled_back{target="shop"}': "1x120"}, {"target": "shop"}, "2h"),
    "AnnealTargetDrifted": ({'anneal_target_drifted_objects{target="shop"}': "2x120"}, {"target": "shop"}, "2h"),
    "AnnealQueueWaits": ({"anneal_queue_waiting": "3x120"}, {}, "2h"),
    "AnnealDeliveriesRefused": (
        {'anneal_deliveries_total{provider="github",outcome="refused",code="bad-signature"}': "0+1x120"},
        {"provider": "github", "code": "bad-signature"},
        "2h",
    ),
    "AnnealTokenFailures": ({'anneal_token_failures_total{route="/replay/<target>"}': "0+3x120"}, {}, "2h"),
    "AnnealDoorErrors": ({'anneal_requests_total{route="/api/targets",status="503"}': "0+1x120"}, {"route": "/api/targets"}, "2h"),
    "AnnealDoorSlow": ({'anneal_request_duration_seconds_bucket{route="/webhooks/github",le="0.025"}': "0x120"}, {}, "2h"),
}
"""Alert: the series that differ, the labels it fires with, and when it must."""


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = unpacked("prometheus", ("prometheus",)) / "usr/bin/promtool"
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def fires(series: dict[str, str], at: str, alert: str, place: Path) -> bool:
    """Whether Prometheus lets an alert fire over these series, whatever it says."""
    expression = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
    wanted = {"expr": expression, "eval_time": at, "exp_samples": [{"labels": "{}", "value": 0}]}
    case = {"interval": "1m", "input_series": _series(series), "promql_expr_test": [wanted]}
    done = judged(case, place / f"{alert}.yaml")
    assert done.returncode == 0 or "exp:" in done.stdout + done.stderr, done.stdout + done.stderr
    return done.returncode != 0


def _series(series: dict[str, str]) -> list[dict[str, str]]:
    return [{"series": name, "values": values} for name, values in series.items()]


def judged(case: dict[str, Any], file: Path) -> subprocess.CompletedProcess[str]:
    file.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": [case]}))
    return promtool("test", "rules", file)


def run(series: dict[str, str], at: str, fires: dict[str, list[dict[str, Any]]], file: Path) -> None:
    """Let Prometheus evaluate the rules over these series and compare what fires, alert by alert."""
    wanted = [{"eval_time": at, "alertname": alert, "exp_alerts": expected} for alert, expected in fires.items()]
    done = judged({"interval": "1m", "input_series": _series(series), "alert_rule_test": wanted}, file)
    assert done.returncode == 0, done.stdout + done.stderr


RULES: dict[str, dict[str, Any]] = {rule["alert"]: rule for rule in yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]}


def test_prometheus_reads_the_rules() -> None:
    done = promtool("check", "rules", ALERTS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case() -> None:
    assert set(TROUBLE) == set(RULES)


def test_health_has_every_metric_that_an_alert_uses() -> None:
    """An alert is silent for what it sees, and not for what it doesn't."""
    used = {name for rule in RULES.values() for name in re.findall(r"\banneal_\w+", rule["expr"])}
    assert used == {name.partition("{")[0] for name in HEALTHY}


def test_no_alert_fires_in_health(tmp_path: Path) -> None:
    run(HEALTHY, "2h", {alert: [] for alert in RULES}, tmp_path / "healthy.yaml")
