"""The alerts, judged by Prometheus' own promtool: every rule is sound, fires when it should, and stays silent otherwise."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
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


HOST_DOWN = {'anneal_git_host_up{host="git.example.com"}': "0x120"}
CLUSTER_DOWN = {'anneal_cluster_up{cluster="prod"}': "0x120"}
FAILING = {'anneal_target_failures{target="shop"}': "9x120"}
STALE = {'anneal_target_last_success_timestamp_seconds{target="shop"}': "60x120"}
REFUSED = {'anneal_target_refused{target="shop"}': "1x120"}
BAD_SIGNATURE = 'anneal_deliveries_total{provider="github",outcome="refused",code="bad-signature"}'
ONCE = {BAD_SIGNATURE: "_x29 1x91"}
ONCE_MORE = {BAD_SIGNATURE: "7x29 8x91"}
CASES: dict[str, tuple[str, dict[str, str], str, bool]] = {
    "one refused delivery is seen at once, the first of its life": ("AnnealDeliveriesRefused", ONCE, "31m", True),
    "and for most of an hour": ("AnnealDeliveriesRefused", ONCE, "85m", True),
    "but not for ever": ("AnnealDeliveriesRefused", ONCE, "2h", False),
    "as one is that isn't": ("AnnealDeliveriesRefused", ONCE_MORE, "32m", True),
    "which ends, too": ("AnnealDeliveriesRefused", ONCE_MORE, "2h", False),
    "a host that is away is one alert": ("AnnealTargetFailing", FAILING | HOST_DOWN, "2h", False),
    "and not its targets' that are stale": ("AnnealTargetStale", STALE | HOST_DOWN, "2h", False),
    "a cluster that is away is one alert": ("AnnealTargetFailing", FAILING | CLUSTER_DOWN, "2h", False),
    "nor are its targets stale": ("AnnealTargetStale", STALE | CLUSTER_DOWN, "2h", False),
    "nor is their health unknown": (
        "AnnealTargetHealthUnknown",
        {'anneal_target_health{target="shop",health="unknown"}': "1x120"} | CLUSTER_DOWN,
        "2h",
        False,
    ),
    "nor is nobody there": (
        "AnnealHeartbeatLost",
        TROUBLE["AnnealHeartbeatLost"][0] | CLUSTER_DOWN,
        "2h",
        False,
    ),
    "one target of a host that is there is its own alert": (
        "AnnealTargetFailing",
        FAILING | {'anneal_git_host_up{host="other.example.com"}': "0x120"},
        "2h",
        True,
    ),
    "a refused commit is an alert of its own": ("AnnealTargetFailing", FAILING | REFUSED, "2h", False),
    "and not a stale target": ("AnnealTargetStale", STALE | REFUSED, "2h", False),
    "a start finds old records": ("AnnealTargetStale", STALE | {"anneal_worker_start_time_seconds": "6000x120"}, "2h", False),
    "a target's first run takes its time": (
        "AnnealTargetStale",
        {'anneal_target_last_success_timestamp_seconds{target="shop"}': "0x120", "anneal_worker_start_time_seconds": "6000x120"},
        "2h",
        False,
    ),
    "one that has never come to an end is stale in the end": (
        "AnnealTargetStale",
        {'anneal_target_last_success_timestamp_seconds{target="shop"}': "0x120"},
        "2h",
        True,
    ),
    "a long interval is not stale": ("AnnealTargetStale", STALE | {"anneal_interval_seconds": "21600x120"}, "2h", False),
    "a wait that is young": (
        "AnnealTargetWaits",
        {'anneal_target_waiting_since_timestamp_seconds{target="shop"}': "6600x120"},
        "2h",
        False,
    ),
    "another replica still beats": (
        "AnnealHeartbeatLost",
        {'anneal_heartbeat_timestamp_seconds{cluster="prod",instance="dead"}': "60x120"},
        "2h",
        False,
    ),
}
"""What: the alert, the series that differ from health, when, and whether it fires then."""
_VALUES = {
    "AnnealTargetFailing": {"{{ $value }}": "3"},
    "AnnealTargetWaits": {"{{ $value | humanizeDuration }}": "1h 50m 0s"},
    "AnnealTargetDrifted": {"{{ $value }}": "2"},
    "AnnealTargetOrphans": {"{{ $value }}": "2"},
    "AnnealDeadLetters": {"{{ $value }}": "3"},
}


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


def test_alerts_on_what_waits_for_a_person_are_warnings() -> None:
    severities = {name: rule["labels"]["severity"] for name, rule in RULES.items()}
    assert {severities[name] for name in ("AnnealTargetHeld", "AnnealTargetRefused", "AnnealTargetDegraded", "AnnealDeadLetters")} == {
        "warning"
    }


@pytest.mark.parametrize("what", CASES)
def test_an_alert_expression_regards_other_series(what: str, tmp_path: Path) -> None:
    alert, series, at, expected = CASES[what]
    assert fires(HEALTHY | series, at, alert, tmp_path) is expected


def test_no_alert_fires_in_health(tmp_path: Path) -> None:
    run(HEALTHY, "2h", {alert: [] for alert in RULES}, tmp_path / "healthy.yaml")


@pytest.mark.parametrize("alert", TROUBLE)
def test_an_alert_fires_in_its_trouble(alert: str, tmp_path: Path) -> None:
    trouble, labels, at = TROUBLE[alert]
    values = {f"{{{{ $labels.{name} }}}}": value for name, value in labels.items()}
    summary = RULES[alert]["annotations"]["summary"]
    for written, value in (values | _VALUES.get(alert, {})).items():
        summary = summary.replace(written, value)
    fires = [{"exp_labels": {**RULES[alert]["labels"], **labels}, "exp_annotations": {"summary": summary}}]
    run(HEALTHY | trouble, at, {alert: fires}, tmp_path / f"{alert}.yaml")
