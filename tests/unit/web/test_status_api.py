"""`GET /api/...`: who may read what, page by page, and what is shown of deliveries and runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from handler.model.errors import WorkerUnavailable
from handler.model.event import Job
from handler.queues.pending import Work
from handler.web import recent_deliveries
from handler.web.app import create_app
from handler.web.status_api import WorkerLink
from tests.fakes.signed_webhooks import INFRA, SECRETS, Kept, door_secrets, door_settings, github_headers, github_push
from tests.unit.rows import each_row
from tests.unit.web.door_with_runs import ENDED, FAILED, QUEUED, RECORDED, RUNNING, door

pytestmark = pytest.mark.slow

READS = (
    "/api/targets",
    "/api/targets/shop-prod",
    "/api/targets/shop-prod/gap",
    "/api/targets/shop-prod/orphans",
    f"/api/runs/{ENDED}",
    "/api/deliveries",
    "/api/openapi.json",
    "/metrics",
)


def nothing(_request: str) -> None:
    """The web process has nothing that waits."""


@pytest.fixture
def client() -> FlaskClient:
    return door().test_client()


def get(client: FlaskClient, path: str, token: str = "ALL") -> TestResponse:
    return client.get(path, headers={"Authorization": f"Bearer {SECRETS[token]}"})


def found(response: TestResponse) -> Any:
    assert response.status_code == 200, response.text
    return response.get_json()


@each_row("path", [*READS, "/api/targets/nobody", "/api/runs/nobody.1", "/api/runs/x", "/api/deliveries?target=nobody"])
@each_row("header", [None, "", "Bearer", "Bearer wrong-token-wrong-token", "Basic YTpi", "Bearer é", "Bearer " + "a" * 9000])
def test_without_a_token_every_read_is_answered_401(client: FlaskClient, path: str, header: str | None) -> None:
    response = client.get(path, headers={} if header is None else {"Authorization": header})
    assert response.status_code == 401
    assert response.get_json() == {
        "matched": [],
        "ignored": [],
        "run": None,
        "code": "bad-signature",
        "error": "token: missing or wrong bearer token",
    }


@pytest.mark.parametrize(
    ("token", "allowed"),
    [
        ("CI", {"/api/openapi.json"}),
        ("OPS", {"/api/openapi.json"}),
        ("READER", set(READS) - {"/metrics"}),
        ("ALL", set(READS) - {"/metrics"}),
        ("SCRAPER", {"/api/openapi.json", "/metrics"}),
    ],
)
def test_a_token_reads_only_what_it_may(client: FlaskClient, token: str, allowed: set[str]) -> None:
    answers = {path: get(client, path, token).status_code for path in READS}
    assert {path for path, status in answers.items() if status == 200} == allowed
    assert {status for path, status in answers.items() if path not in allowed} <= {403}


@pytest.mark.parametrize(
    "path", ["/api/targets/{}", "/api/targets/{}/gap", "/api/targets/{}/orphans", "/api/runs/{}.0123456789ab", "/api/deliveries?target={}"]
)
def test_beyond_its_bounds_a_token_cant_tell_what_exists(client: FlaskClient, path: str) -> None:
    real, made_up = (get(client, path.format(name), "READER") for name in ("infra", "nobody"))
    assert (real.status_code, real.get_data()) == (made_up.status_code, made_up.get_data())
    assert real.status_code == 403
    assert get(client, path.format("shop-nowhere"), "READER").status_code == 404


def test_targets_come_in_pages_and_only_those_of_the_token(client: FlaskClient) -> None:
    assert [row["target"] for row in found(get(client, "/api/targets", "READER"))["targets"]] == ["shop-dev", "shop-fixed", "shop-prod"]
    names, after = [], ""
    while True:
        page = found(get(client, f"/api/targets?limit=3&after={after}"))
        names += [row["target"] for row in page["targets"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert names == ["infra", "shop-dev", "shop-fixed", "shop-prod"]


@pytest.mark.parametrize("query", ["limit=0", "limit=-1", "limit=1001", "limit=x", "limit=1e3", "limit=99999999999999999999", "limit=٣"])
@pytest.mark.parametrize("path", ["/api/targets", "/api/deliveries"])
def test_a_page_has_a_size(client: FlaskClient, path: str, query: str) -> None:
    response = get(client, f"{path}?{query}")
    assert (response.status_code, response.get_json()["code"]) == (400, "bad-payload")


def test_the_gap_and_the_orphans_of_a_target_are_told_by_a_look_now(client: FlaskClient) -> None:
    gap = found(get(client, "/api/targets/shop-prod/gap", "READER"))
    assert (gap["outcome"], gap["counts"]["missing"], gap["counts"]["undeclared"]) == ("planned", 1, 1)
    assert [(each["object"], each["state"], each["action"]) for each in gap["objects"]] == [
        ("ConfigMap/shop/web", "missing", "create"),
        ("ConfigMap/shop/old", "undeclared", "prune"),
    ]
    one = found(get(client, "/api/targets/shop-prod/gap?object=ConfigMap/shop/old", "READER"))
    assert [each["object"] for each in one["objects"]] == ["ConfigMap/shop/old"]
    told = found(get(client, "/api/targets/shop-prod/orphans", "READER"))
    assert [(each["object"], each["fate"], each["held"]) for each in told["orphans"]] == [("ConfigMap/shop/old", "deleted", False)]
    broken = found(get(client, "/api/targets/shop-dev/gap"))
    assert (broken["outcome"], broken["objects"], broken["problems"][0]["fix"] != "") == ("failed", [], True)


def test_a_run_is_told_in_each_of_its_stages(client: FlaskClient) -> None:
    told = {run: found(get(client, f"/api/runs/{run}", "READER")) for run in (QUEUED, "shop-prod.merged", RUNNING, ENDED, FAILED, RECORDED)}
    assert {run: (each["status"], each.get("outcome"), each["source"]) for run, each in told.items()} == {
        QUEUED: ("queued", None, "memory"),
        "shop-prod.merged": ("queued", None, "memory"),
        RUNNING: ("running", None, "memory"),
        ENDED: ("ended", "applied", "memory"),
        FAILED: ("ended", "failed", "memory"),
        RECORDED: ("ended", "applied", "record"),
    }
    assert told["shop-prod.merged"]["run"] == QUEUED
    assert told[FAILED]["problems"][0]["fix"] == "write it right"
    missing = get(client, "/api/runs/shop-prod.000000000000")
    assert missing.status_code == 404
    assert "only the worker process that ran it" in missing.get_json()["error"]


def test_what_the_worker_hasnt_been_handed_yet_is_queued() -> None:
    work = Work(Job("shop-prod", "replay", actor="ci"), ("shop-prod.1", "shop-prod.2"))

    def ask(question: str, **_about: Any) -> dict[str, Any]:
        return {question: None}

    def waits(request: str) -> Work | None:
        return work if request in work.runs else None

    client = create_app(door_settings(), door_secrets(), Kept(), lambda: True, worker=WorkerLink(ask, waits)).test_client()
    told = found(get(client, "/api/runs/shop-prod.2"))
    assert (told["run"], told["status"], told["requests"]) == ("shop-prod.1", "queued", ["shop-prod.1", "shop-prod.2"])
    assert get(client, "/api/runs/shop-prod.3").status_code == 404


def test_a_silent_worker_answers_reads_with_503_and_deliveries_from_memory(caplog: pytest.LogCaptureFixture) -> None:
    def silent(question: str, **_about: Any) -> dict[str, Any]:
        raise WorkerUnavailable.of("worker", "doesn't answer")

    client = create_app(door_settings(), door_secrets(), Kept(), lambda: False, worker=WorkerLink(silent, nothing)).test_client()
    for path in ("/api/targets", "/api/targets/shop-prod", f"/api/runs/{ENDED}"):
        response = get(client, path)
        assert (response.status_code, response.get_json()["code"]) == (503, "worker-unavailable")
    shown = found(get(client, "/api/deliveries?target=shop-prod"))
    assert [(row["target"], row["code"]) for row in shown["unread"]] == [("shop-prod", "worker-unavailable")]
    assert "anneal_worker_up 0.0" in get(client, "/metrics", "SCRAPER").text


def test_a_delivery_shows_to_each_token_only_its_own_targets(client: FlaskClient) -> None:
    for body, secret in ((github_push(), "GITHUB"), (github_push(INFRA), "INFRA"), (github_push(), "CI")):
        client.post("/webhooks/github", data=body, headers=github_headers(body, SECRETS[secret]))
    elsewhere = github_push("https://git.example.com/acme/shpo")
    client.post("/webhooks/github", data=elsewhere, headers=github_headers(elsewhere))
    everything = found(get(client, "/api/deliveries"))["process"]
    assert [row["outcome"] for row in everything] == ["ignored", "refused", "matched", "matched"]
    assert everything[1] | {"received": ""} == {
        "received": "",
        "provider": "github",
        "delivery": "",
        "kind": "",
        "actor": "",
        "outcome": "refused",
        "code": "bad-signature",
        "reason": "webhook: missing or wrong signature",
        "targets": [],
    }
    assert "the nearest one is" in everything[0]["reason"]
    shop = found(get(client, "/api/deliveries", "READER"))
    assert [[row["target"] for row in each["targets"] if row["matched"]] for each in shop["process"]] == [["shop-prod"]]
    assert "infra" not in json.dumps(shop)
    assert shop["process"][0]["targets"][0]["run"]
    assert [row["target"] for row in shop["recorded"]] == ["shop-prod"]
    assert found(get(client, "/api/deliveries?target=shop-dev"))["process"][0]["targets"][0]["target"] == "shop-dev"


def test_refused_deliveries_evict_only_refused_deliveries(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_deliveries, "REMEMBERED", 5)
    client = door().test_client()
    body = github_push()
    client.post("/webhooks/github", data=body, headers=github_headers(body))
    for _ in range(50):
        client.post("/webhooks/github", data=body, headers=github_headers(body, "x"))
    shown = found(get(client, "/api/deliveries"))["process"]
    assert [row["outcome"] for row in shown] == ["refused"] * 5 + ["matched"]
    assert len(found(get(client, "/api/deliveries?limit=2"))["process"]) == 2


def test_many_wrong_tokens_are_counted_and_lock_nobody_out(client: FlaskClient, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(300):
        header = {"Authorization": f"Bearer wrong-token-{number:06}"}
        assert client.get("/api/targets", headers=header).status_code == 401
        assert client.post("/replay/shop-prod", headers=header).status_code == 401
        if number % 100 == 0:
            assert get(client, "/api/targets").status_code == 200
    metrics = get(client, "/metrics", "SCRAPER").text
    assert 'anneal_token_failures_total{route="/api/targets"} 300.0' in metrics
    assert 'anneal_token_failures_total{route="/replay/<target>"} 300.0' in metrics
    refusals = [record for record in caplog.records if record.name in ("anneal.read", "anneal.replay")]
    assert len(refusals) == 600
    assert {record.__dict__["fields"]["code"] for record in refusals} == {"bad-signature"}
    assert "wrong-token-" not in json.dumps([record.__dict__["fields"] for record in refusals])


def test_the_worker_is_asked_for_no_more_than_the_token_may_read() -> None:
    asked: list[Any] = []

    def ask(question: str, **about: Any) -> dict[str, Any]:
        asked.append((question, about))
        return {"targets": [], "retired": [], "recorded": [], "unread": []}

    client = create_app(door_settings(), door_secrets(), Kept(), lambda: True, worker=WorkerLink(ask, nothing)).test_client()
    get(client, "/api/targets", "READER")
    get(client, "/api/deliveries", "READER")
    names = ["shop-dev", "shop-fixed", "shop-prod"]
    assert asked == [("targets", {"names": names, "retired": True}), ("deliveries", {"names": names})]


def test_metrics_name_routes_and_never_what_was_sent(client: FlaskClient) -> None:
    client.get("/api/targets/canary-1", headers={"Authorization": f"Bearer {SECRETS['ALL']}"})
    client.get("/canary-2")
    body = github_push(ref="refs/heads/canary-3", after="c" * 40)
    client.post("/webhooks/github", data=body, headers=github_headers(body))
    text = get(client, "/metrics", "SCRAPER").text
    assert "canary" not in text
    assert 'anneal_requests_total{route="/api/targets/<target>",status="404"} 1.0' in text
    assert 'anneal_requests_total{route="other",status="404"} 1.0' in text
    assert 'anneal_deliveries_total{code="",outcome="ignored",provider="github"} 1.0' in text
    assert 'anneal_build_info{version="1.2.3"} 1.0' in text
    assert "anneal_worker_up 1.0" in text
    assert "anneal_queue_waiting 0.0" in text
