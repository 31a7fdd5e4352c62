"""The alerts, judged by Prometheus' own promtool: every rule is sound, fires when it should, and stays silent otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rooms.web.test_prometheus_alerts import HEALTHY, RULES, TROUBLE, fires, run

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


@pytest.mark.parametrize("what", CASES)
def test_an_alert_expression_regards_other_series(what: str, tmp_path: Path) -> None:
    alert, series, at, expected = CASES[what]
    assert fires(HEALTHY | series, at, alert, tmp_path) is expected


@pytest.mark.parametrize("alert", TROUBLE)
def test_an_alert_fires_in_its_trouble(alert: str, tmp_path: Path) -> None:
    trouble, labels, at = TROUBLE[alert]
    values = {f"{{{{ $labels.{name} }}}}": value for name, value in labels.items()}
    summary = RULES[alert]["annotations"]["summary"]
    for written, value in (values | _VALUES.get(alert, {})).items():
        summary = summary.replace(written, value)
    fires = [{"exp_labels": {**RULES[alert]["labels"], **labels}, "exp_annotations": {"summary": summary}}]
    run(HEALTHY | trouble, at, {alert: fires}, tmp_path / f"{alert}.yaml")
