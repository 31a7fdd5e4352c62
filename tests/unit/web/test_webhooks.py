"""The webhook routes through Flask's client: what is matched, ignored, refused."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from handler.config.settings import Settings
from handler.model.event import Delivery, Job
from handler.web.app import create_app
from tests.fakes.feedback import AtOnce
from tests.fakes.signed_webhooks import (
    INFRA,
    SECRETS,
    SHA,
    ZEROS,
    Kept,
    door_secrets,
    door_settings,
    github_headers,
    github_push,
    gitlab_headers,
)
from tests.unit.rows import each_row


def bounded(settings: Settings) -> Settings:
    return replace(settings, webhooks=replace(settings.webhooks, max_body=100_000))


@pytest.fixture
def queue() -> Kept:
    return Kept()


@pytest.fixture
def client(queue: Kept) -> FlaskClient:
    return create_app(bounded(door_settings()), door_secrets(), queue, lambda: True, events=AtOnce("log")).test_client()


def github(client: FlaskClient, body: bytes, secret: str = "GITHUB", event: str = "push", **headers: str) -> TestResponse:
    return client.post("/webhooks/github", data=body, headers=github_headers(body, SECRETS[secret], event) | headers)


def gitlab(client: FlaskClient, body: bytes, secret: str = "GITLAB") -> TestResponse:
    return client.post("/webhooks/gitlab", data=body, headers=gitlab_headers(SECRETS[secret]))


def answer(response: TestResponse) -> Any:
    assert response.content_type == "application/json"
    found = response.get_json()
    assert {"matched", "ignored", "run"} <= set(found)
    return found


def test_a_push_is_queued_for_the_target_that_follows_its_branch(client: FlaskClient, queue: Kept) -> None:
    response = github(client, github_push())
    assert response.status_code == 202
    assert answer(response) == {
        "matched": [{"target": "shop-prod", "reason": "it follows refs/heads/main", "run": "r1"}],
        "ignored": [
            {"target": "shop-dev", "reason": "it follows refs/heads/dev, and refs/heads/main was pushed"},
            {"target": "shop-fixed", "reason": "it follows a fixed commit"},
        ],
        "run": "r1",
    }
    (job,) = queue.jobs
    (delivery,) = job.deliveries
    assert delivery.received.endswith("Z")
    assert 0 < job.asked <= time.monotonic()
    assert job == Job(
        "shop-prod",
        "push",
        hint=SHA,
        actor="ada",
        deliveries=(Delivery("72d3162e-cc78-11e3-81ab-4c9367dc0958", "github", "refs/heads/main", SHA, "ada", delivery.received),),
        asked=job.asked,
    )


@pytest.mark.parametrize(
    ("body", "event", "reason"),
    [
        (github_push(ref="refs/heads/feature"), "push", "refs/heads/feature was pushed"),
        (github_push(after=ZEROS), "push", "was deleted"),
        (github_push(), "ping", "a ping"),
        (github_push("https://git.example.com/acme/shpo"), "push", "the nearest one is git.example.com/acme/shop"),
        (b'{"action": "created"}', "star", "star events ask for nothing"),
    ],
)
def test_an_irrelevant_delivery_is_answered_200_with_its_reason(
    client: FlaskClient, queue: Kept, body: bytes, event: str, reason: str
) -> None:
    response = github(client, body, event=event)
    assert response.status_code == 200
    assert reason in json.dumps(answer(response)["ignored"])
    assert queue.jobs == []


def test_of_two_repositories_in_one_payload_only_the_one_of_the_secret_is_triggered_and_named(
    client: FlaskClient, queue: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    body = github_push(repository={"clone_url": INFRA, "html_url": "https://git.example.com/acme/shop"})
    response = github(client, body, "INFRA")
    assert response.status_code == 202
    assert [job.target for job in queue.jobs] == ["infra"]
    assert "shop" not in response.text
    (record,) = [record for record in caplog.records if record.name == "anneal.delivery"]
    assert record.__dict__["fields"]["foreign"] == ("shop-prod", "shop-dev", "shop-fixed")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ({"Content-Type": ""}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 202),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Content-Encoding": "identity"}, 202),
    ],
)
def test_only_plain_json_is_read(client: FlaskClient, headers: dict[str, str], status: int) -> None:
    assert github(client, github_push(), **headers).status_code == status


@pytest.mark.parametrize(("size", "status"), [(100_000, 401), (100_001, 413), (10_000_000, 413)])
def test_the_cap_is_exact(client: FlaskClient, size: int, status: int) -> None:
    response = client.post("/webhooks/github", data=b" " * size, headers={"Content-Type": "application/json"})
    assert response.status_code == status
    answer(response)


@each_row("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"])
def test_a_replay_is_posted(client: FlaskClient, method: str) -> None:
    response = client.open("/replay/shop-prod", method=method)
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "path", ["/", "/webhooks", "/webhooks/", "/webhooks/gogs", "/webhooks/github/", "/static/x", "/%00", "/webhooks/../healthz"]
)
def test_other_paths_are_not_found(client: FlaskClient, path: str) -> None:
    response = client.post(path)
    assert response.status_code == 404
    assert answer(response)["code"] == "not-found"


def test_every_answer_has_the_security_headers(client: FlaskClient) -> None:
    body = github_push()
    for response in (
        github(client, body),
        client.get("/"),
        client.get("/healthz"),
        client.post("/webhooks/github"),
        client.get("/webhooks/github"),
    ):
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert not {name.lower() for name in response.headers.keys()} & {"set-cookie", "access-control-allow-origin", "location"}  # noqa: SIM118 - Headers iterates pairs


def test_health_tells_the_process_and_readiness_tells_the_worker(queue: Kept) -> None:
    for reachable, status in ((True, 200), (False, 503)):
        client = create_app(door_settings(), door_secrets(), queue, lambda: reachable).test_client()  # noqa: B023 - called in this turn
        assert client.get("/healthz").get_json() == {"web": "ok"}
        assert (client.get("/readyz").status_code, client.get("/readyz").get_json()["web"]) == (status, "ok")


def test_our_own_mistake_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Kept):
        def put(self, job: Job) -> str:
            raise RuntimeError("inside")

    client = create_app(door_settings(), door_secrets(), Broken(), lambda: True).test_client()
    response = github(client, github_push())
    assert response.status_code == 500
    assert "inside" not in response.text
    assert any(record.exc_info for record in caplog.records)


def test_one_line_is_logged_for_each_delivery(client: FlaskClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    github(client, github_push())
    github(client, github_push(), "CI")
    lines = [(record.message, record.__dict__["fields"]) for record in caplog.records if record.name == "anneal.delivery"]
    assert [message for message, _ in lines] == ["delivery", "delivery refused"]
    assert lines[0][1]["runs"] == {"shop-prod": "r1"}
    assert lines[1][1]["code"] == "bad-signature"
    assert not any(secret in str(lines) for secret in SECRETS.values())
