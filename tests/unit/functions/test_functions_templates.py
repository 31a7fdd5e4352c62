"""Templates in functions, which follow no objects: the tick leaves them out, a push for one is answered why, and each start logs it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from handler.functions.codecommit_events import of_codecommit
from handler.functions.http_entry import webhooks
from handler.functions.scheduled import minutes
from handler.model.event import Job
from handler.queues.sqs import SqsQueue
from tests.fakes.aws_events import Context
from tests.fakes.signed_webhooks import SECRETS, github_headers, github_push
from tests.unit.functions.conftest import CONFIG, QUEUE
from tests.unit.triggers.codecommit_events import sample

TEMPLATE = {
    "name": "grafana",
    "repository": {"url": "https://git.example.com/acme/shop.git", "aliases": ["codecommit::eu-central-1://shop"]},
    "namespaces": "*",
    "renderer": {"type": "jsonnet"},
    "trigger": {"resource": {"mainResource": "g", "resources": [{"name": "g", "apiVersion": "example.com/v1", "kind": "Grafana"}]}},
}
WHY = "functions follow no objects: `anneal serve` or `anneal run --trigger resource grafana` runs its instances"


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root_logger: logging.Logger) -> dict[str, str]:
    """Functions of an ordinary target and a template; their queue takes everything."""

    def put_all(_queue: SqsQueue, jobs: Sequence[Job]) -> list[str]:
        return [f"{job.target}.1" for job in jobs]

    monkeypatch.setattr(SqsQueue, "put_all", put_all)
    config = tmp_path / "anneal.yaml"
    config.write_text(json.dumps({**CONFIG, "targets": [*CONFIG["targets"], TEMPLATE]}))
    return {"ANNEAL_CONFIG": str(config), "ANNEAL_QUEUE_URL": QUEUE, "GITHUB": SECRETS["GITHUB"]}


def test_a_push_for_a_template_is_answered_why_nothing_runs(environ: dict[str, str]) -> None:
    body = github_push("https://git.example.com/acme/shop")
    response = webhooks(environ).test_client().post("/webhooks/github", data=body, headers=github_headers(body, SECRETS["GITHUB"]))
    found = response.get_json()
    assert [each["target"] for each in found["matched"]] == ["shop-prod"]
    assert found["ignored"] == [{"target": "grafana", "reason": WHY}]
    pushed: dict[str, Any] = of_codecommit(environ)(sample(), Context())
    assert [each["target"] for each in pushed["matched"]] == ["shop-prod"]
    assert pushed["ignored"] == [{"target": "grafana", "reason": WHY}]


def test_the_tick_leaves_templates_out_and_its_start_logs_that_once(
    environ: dict[str, str], printed: Callable[[], list[dict[str, Any]]]
) -> None:
    made = minutes(environ)
    assert [target.name for target in made.settings.targets] == ["shop-prod"]
    (line,) = printed()
    assert (line["message"], line["code"], line["targets"]) == ("templates are left out", "needs-a-process", ["grafana"])
    assert line["fix"] == "run `anneal serve`, or `anneal run --trigger resource grafana`, where a process lives"
