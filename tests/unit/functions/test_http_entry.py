"""The reading half of the api function: the records of clusters, no memory, and a queue that can't be looked into."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from handler.app.build import Handler
from handler.feedback.emf import EmfLines
from handler.functions import http_entry
from handler.functions.gateway import Answer, served
from handler.functions.http_entry import TOKENS, behind
from handler.inspect.inspector import Inspector
from handler.model.event import Job
from handler.model.names import run_id
from handler.web.app import create_app
from tests.fakes import aws_events
from tests.fakes.aws_events import Context
from tests.fakes.engine import cluster, engine
from tests.fakes.git_host import GitHost
from tests.fakes.objects import FakeObjects
from tests.fakes.signed_webhooks import SECRETS, SHOP, Kept, door_secrets, door_settings
from tests.unit.engine.promoting_targets import promoted_once
from tests.unit.functions.conftest import CONFIG, QUEUE
from tests.unit.web.openapi_schema import declared


@pytest.fixture
def handler() -> Handler:
    """What the worker function has; its one target is applied."""
    host = GitHost()
    made = engine(cluster(), host, door_settings())
    host.push(host.commit({"web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\n"}))
    made.run(Job("shop-prod", "tick", run=run_id("shop-prod")))
    return made


def door(records: Any, token: str = "ALL", inspector: Callable[[], Inspector] | None = None) -> Any:
    """Return what reads a path with a token: status and document."""
    worker = behind(door_settings(), records, inspector)
    app = create_app(
        door_settings(), door_secrets(), Kept(), lambda: True, worker=worker, metrics=EmfLines(lambda _line: None), routes=TOKENS
    )
    answer: Answer = served(app)

    def read(path: str) -> tuple[int, Any]:
        found = answer(aws_events.function_url("GET", path, {"Authorization": f"Bearer {SECRETS[token]}"}), Context())
        return found["statusCode"], json.loads(found["body"])

    return read


def test_a_run_is_unknown_until_its_end_is_recorded(handler: Handler) -> None:
    read, run = door(handler.records), run_id("shop-prod")
    status, before = read(f"/api/runs/{run}")
    assert (status, before["status"], before["run"], before["requests"]) == (200, "unknown", run, [run])
    Draft202012Validator(declared("/api/runs/{run}", 200)).validate(before)
    handler.run(Job("shop-prod", "replay", actor="ci", run=run))
    status, after = read(f"/api/runs/{run}")
    assert (status, after["status"], after["outcome"], after["actor"]) == (200, "ended", "unchanged", "ci")
    Draft202012Validator(declared("/api/runs/{run}", 200)).validate(after)


def test_targets_are_read_from_their_records(handler: Handler) -> None:
    status, page = door(handler.records)("/api/targets")
    rows = {row["target"]: row["phase"] for row in page["targets"]}
    assert (status, rows["shop-prod"], rows["shop-dev"]) == (200, "applied", "")
    assert door(handler.records)("/api/targets/shop-prod")[1]["repository"] == SHOP


def test_a_function_looks_at_clusters_only_with_what_can_and_makes_that_once(handler: Handler) -> None:
    made = []

    def inspector() -> Inspector:
        made.append(Inspector(handler))
        return made[-1]

    assert door(handler.records)("/api/targets/shop-prod/gap")[0] == 503
    read = door(handler.records, inspector=inspector)
    assert read("/api/targets")[0] == 200
    assert made == []
    assert [read(f"/api/targets/shop-prod/{each}")[1]["outcome"] for each in ("gap", "orphans")] == ["planned"] * 2
    assert len(made) == 1


def test_an_unreadable_record_is_no_end_of_a_run() -> None:
    def broken(_target: object) -> FakeObjects:
        raise ZeroDivisionError

    assert door(broken)(f"/api/runs/{run_id('shop-prod')}")[0] == 503


def test_the_api_function_serves_healthz_but_not_readyz(handler: Handler) -> None:
    assert door(handler.records)("/healthz") == (200, {"web": "ok"})
    assert door(handler.records)("/readyz")[0] == 404


def test_a_target_that_follows_others_says_what_its_next_commit_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = promoted_once()
    second = line.commit("2")
    line.done("staging")
    targets = [{"name": each.name, "repository": {"url": each.repository.url}, "namespaces": [each.name]} for each in line.targets]
    targets[1] |= {"revision": {"promoted": {"from": "staging", "soak": "30m"}}}
    (tmp_path / "anneal.yaml").write_text(json.dumps({**CONFIG, "targets": targets}))
    monkeypatch.setattr(http_entry, "clusters", lambda _base, _environ: line.handler)
    environ = {"ANNEAL_CONFIG": str(tmp_path / "anneal.yaml"), "ANNEAL_QUEUE_URL": QUEUE, "ALL": SECRETS["ALL"]}
    event = aws_events.function_url("GET", "/api/targets/prod", {"Authorization": f"Bearer {SECRETS['ALL']}"})
    answer = served(http_entry.api(environ))(event, Context())
    (awaited,) = json.loads(answer["body"])["promotion"]
    assert (answer["statusCode"], awaited["target"]) == (200, "staging")
    assert awaited["why"].startswith(f"has kept {second[:12]} healthy for")
    Draft202012Validator(declared("/api/targets/{target}", 200)).validate(json.loads(answer["body"]))
