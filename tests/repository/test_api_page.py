"""docs/api.md lists every metric, with its words and labels, and every route."""

from __future__ import annotations

import re

import yaml

from handler.feedback.prometheus import DoorMetrics, RunMetrics
from infra.house.pages import DOCS
from infra.house.sources import ROOT

TEXT = (DOCS / "api.md").read_text()
PROCESSES = {
    "web": DoorMetrics("1", lambda: 0.0, lambda: 0.0).text(),
    "worker": RunMetrics(lambda: 0.0, lambda: 0.0, lambda: 0.0).text(),
}


def test_every_metric_is_listed_in_its_own_words_with_the_labels_of_a_run() -> None:
    for process, shown in PROCESSES.items():
        table = TEXT.partition(f"\nOf the {process} process:\n")[2].strip().partition("\n\n")[0]
        listed = re.findall(r"^\| `(\w+)(?:\{[\w, ]+\})?` \| (.+) \|$", table, re.MULTILINE)
        assert listed == re.findall(r"^# HELP (\S+) (.+)$", shown, re.MULTILINE)
    assert "`anneal_runs_total{target, trigger, outcome, code}`" in TEXT
    assert "`anneal_deliveries_total{provider, outcome, code}`" in TEXT
    assert "`anneal_target_health{target, health}`" in TEXT


def test_every_route_that_is_read_is_listed() -> None:
    paths = yaml.safe_load((ROOT / "handler" / "web" / "openapi.yaml").read_text())["paths"]
    told = re.sub(r"<\w+>", "{}", TEXT)
    assert [path for path, acts in paths.items() if "get" in acts and f"GET {re.sub(r'{[^}]+}', '{}', path)}" not in told] == []
