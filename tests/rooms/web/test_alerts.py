"""The alerts, judged by Prometheus' own promtool: every rule is sound, fires when it should, and stays silent otherwise."""

from __future__ import annotations

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


_VALUES = {
    "AnnealTargetFailing": {"{{ $value }}": "3"},
    "AnnealTargetStale": {"{{ $value | humanizeDuration }}": "1h 59m 0s"},
    "AnnealTargetDrifted": {"{{ $value }}": "2"},
}


def promtool(*arguments: str | Path) -> None:
    done = subprocess.run(
        [unpacked("prometheus", ("prometheus",)) / "usr/bin/promtool", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def run(series: dict[str, str], at: str, alert: str, fires: list[dict[str, Any]], place: Path) -> None:
    """Let Prometheus evaluate the rules over these series and compare what fires."""
    case = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [{"eval_time": at, "alertname": alert, "exp_alerts": fires}],
    }
    file = place / f"{alert}.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": [case]}))
    promtool("test", "rules", file)


RULES: dict[str, dict[str, Any]] = {rule["alert"]: rule for rule in yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]}


def test_prometheus_reads_the_rules() -> None:
    promtool("check", "rules", ALERTS)


def test_every_alert_has_its_trouble() -> None:
    assert set(TROUBLE) == set(RULES)


@pytest.mark.parametrize("alert", TROUBLE)
def test_an_alert_fires_in_its_trouble_and_not_in_health(alert: str, tmp_path: Path) -> None:
    trouble, labels, at = TROUBLE[alert]
    run(HEALTHY, "2h", alert, [], tmp_path)
    values = {f"{{{{ $labels.{name} }}}}": value for name, value in labels.items()}
    summary = RULES[alert]["annotations"]["summary"]
    for written, value in (values | _VALUES.get(alert, {})).items():
        summary = summary.replace(written, value)
    fires = [{"exp_labels": {**RULES[alert]["labels"], **labels}, "exp_annotations": {"summary": summary}}]
    run(HEALTHY | trouble, at, alert, fires, tmp_path)
