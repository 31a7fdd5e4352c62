"""docs/deploy/aws.md says what functions cost while idle: metrics and alarms are counted as the code has them; README says that price."""

from __future__ import annotations

import json
import re

from handler.feedback.emf import EmfLines
from handler.model.event import Job
from handler.model.health import HealthState
from handler.model.result import Outcome, Result, TargetStanding
from infra.house.pages import DOCS
from infra.house.sources import ROOT

TEXT = (DOCS / "deploy" / "aws.md").read_text()
SECTION = " ".join(TEXT.partition("\n## What it costs while idle\n")[2].partition("\n## ")[0].split())
A_METRIC, AN_ALARM = 0.30, 0.10  # dollars a month, by the list


def metrics_of(standing: TargetStanding) -> set[str]:
    """Return which metrics CloudWatch makes of a quiet tick's line."""
    lines: list[str] = []
    EmfLines(lines.append, lambda: 1_000.0).run(Job("shop", "tick"), Result("shop", Outcome.UNCHANGED, standing=standing), 0.1)
    (line,) = map(json.loads, lines)
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert directive["Dimensions"] == [["target"]]
    return {metric["Name"] for metric in directive["Metrics"]}


QUIET = metrics_of(TargetStanding(succeeded=1.0, health=HealthState.HEALTHY))


def test_every_metric_of_a_target_is_listed_and_the_price_is_theirs() -> None:
    price = f"{len(QUIET) * A_METRIC:.2f}"
    assert f"**about ${price} a target a month**" in SECTION
    assert f"writes {len(QUIET)} metrics by target" in SECTION
    assert f"| {len(QUIET)} a target, ${A_METRIC:.2f} each; the account's first 10 are free | {price} a target |" in SECTION
    assert f"${price} a target a month" in (ROOT / "README.md").read_text()
    more = metrics_of(TargetStanding(succeeded=1.0, waiting=1.0)) - QUIET
    assert more == {"anneal_target_waiting_seconds"}
    assert f"A {len(QUIET) + 1}th is charged" in SECTION
    (listed,) = re.findall(r"by `target` (.+?); by provider", " ".join(TEXT.split()))
    assert set(re.findall(r"`(anneal_\w+)`", listed)) == metrics_of(TargetStanding(succeeded=1.0, waiting=1.0))


def test_the_alarms_are_counted() -> None:
    functions = ROOT / "infra" / "functions"
    always = (functions / "alarms.yml").read_text().count("Type: AWS::CloudWatch::Alarm")
    url, http_api = (text.count("Type: AWS::CloudWatch::Alarm") for text in (functions / "answers.yml").read_text().split("\nhttpApi:\n"))
    assert f"| {always + url} ({always + http_api} with `door=httpApi`), ${AN_ALARM:.2f} each" in SECTION
    assert f"| {(always + url) * AN_ALARM:.2f} |" in SECTION
