"""Every metric that an alert uses is exposed by a server that works, and has a value for its target where it is one of a target's."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families

from handler.feedback.prometheus import GAUGES
from tests.e2e.documents import config_map
from tests.e2e.one_target import Shop
from tests.e2e.serve_process import Serving
from tests.e2e.status_api import metrics, pushed
from tests.patience import until

ALERTS = Path(__file__).resolve().parents[2] / "infra" / "prometheus" / "alerts.yaml"
RULES = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
USED = {re.sub(r"_bucket$", "", name) for rule in RULES for name in re.findall(r"\banneal_\w+", rule["expr"])}


def test_a_server_exposes_what_its_alerts_use(shop: Shop, serving: Serving) -> None:
    shop.push(config_map(shop.name, "a"))
    serving.start().ready()
    pushed(serving, shop, shop.head)
    gauge = f'anneal_target_last_success_timestamp_seconds{{target="{shop.name}"}}'
    until(lambda: gauge in metrics(serving), lambda: metrics(serving))
    text = metrics(serving)
    exposed = {name for name, _ in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)}
    assert exposed >= USED, USED - exposed
    samples = {sample.name: sample for family in text_string_to_metric_families(text) for sample in family.samples}
    assert samples["anneal_interval_seconds"].value == 3600
    assert samples["anneal_cluster_requests_total"].value > 0
    assert (samples["anneal_git_host_up"].value, samples["anneal_cluster_up"].value) == (1, 1)
    assert not {name for name, _ in GAUGES.values()} - samples.keys()
    (info,) = re.findall(rf'anneal_target_info{{.*host="([^"]+)".*target="{shop.name}"}} 1.0', text)
    assert f"//{info}/" in shop.target.repository.url
