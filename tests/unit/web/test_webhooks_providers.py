"""Every provider's route through Flask's client: what is answered, that nothing leaks, and never a 5xx by input."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from handler.web.app import create_app
from tests.fakes import host_webhooks
from tests.fakes.feedback import AtOnce
from tests.fakes.host_webhooks import COMMIT, KEYS, ONE_OF_EACH, PROOF, PROVIDERS, PUSHES, SAMPLES, Sample
from tests.fakes.signed_webhooks import Kept
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

REFUSED: dict[str, Any] = {
    "matched": [],
    "ignored": [],
    "run": None,
    "code": "bad-signature",
    "error": "webhook: missing or wrong signature",
}


@pytest.fixture
def queue() -> Kept:
    return Kept()


@pytest.fixture
def client(queue: Kept) -> FlaskClient:
    return create_app(host_webhooks.settings(), host_webhooks.secrets(), queue, lambda: True, events=AtOnce("log")).test_client()


def send(
    client: FlaskClient, sample: Sample, body: bytes | None = None, secret: str = "", headers: Mapping[str, str] | None = None
) -> TestResponse:
    body = sample.body if body is None else body
    sent = host_webhooks.headers(sample.provider, body, sample.event, secret) | dict(headers or {})
    return client.post(f"/webhooks/{sample.provider}", data=body, headers=sent)


@each_row("provider", PROVIDERS)
def test_a_push_of_main_runs_what_follows_it_and_explains_the_rest(client: FlaskClient, queue: Kept, provider: str) -> None:
    queue.jobs.clear()
    response = send(client, PUSHES[provider])
    assert response.status_code == 202
    assert response.get_json() == {
        "matched": [{"target": "shop", "reason": "it follows refs/heads/main", "run": "r1"}],
        "ignored": [
            {"target": "shop-versions", "reason": "it follows the highest tag in >=1 <2, and refs/heads/main was pushed"},
            {"target": "shop-paused", "reason": "suspended in the configuration"},
        ],
        "run": "r1",
    }
    (job,) = queue.jobs
    (delivery,) = job.deliveries
    assert (job.target, job.trigger, job.hint) == ("shop", "push", COMMIT)
    assert (delivery.provider, delivery.ref, delivery.hint) == (provider, "refs/heads/main", COMMIT)


@each_row("sample", ONE_OF_EACH)
def test_a_delivery_that_asks_for_nothing_is_answered_200(client: FlaskClient, queue: Kept, sample: Sample) -> None:
    """Hosts switch off hooks that fail, so everything that is merely irrelevant is answered with 200."""
    queue.jobs.clear()
    response = send(client, sample)
    assert response.status_code == (202 if queue.jobs else 200)
    main = any(change.ref == "refs/heads/main" and not change.deleted for change in sample.changes)
    tag = any(change.ref.startswith("refs/tags/") for change in sample.changes)
    plan = [f"shop~{sample.number}"] * (sample.kind == "pull-request")
    assert [job.target for job in queue.jobs] == ["shop"] * main + ["shop-versions"] * tag + plan
    assert all(row["reason"] for row in response.get_json()["ignored"])


@pytest.mark.parametrize("name", ["cloud-push-several", "center-refs_changed-several"])
def test_each_target_gets_the_hint_of_its_own_ref(client: FlaskClient, queue: Kept, name: str) -> None:
    send(client, next(sample for sample in SAMPLES if sample.name == name))
    hints = {job.target: (job.hint, job.deliveries[0].ref) for job in queue.jobs}
    tag = COMMIT if name.startswith("cloud") else ""  # Data Center names the tag object, not its commit
    assert hints == {"shop": (COMMIT, "refs/heads/main"), "shop-versions": (tag, "refs/tags/v1.4.0")}


def test_gitlabs_signing_token_is_a_key_and_no_token(client: FlaskClient, queue: Kept) -> None:
    sample = PUSHES["gitlab"]
    assert send(client, sample, secret=KEYS["SIGNING"]).status_code == 202
    assert len(queue.jobs) == 1
    in_the_clear = {"Content-Type": "application/json", "X-Gitlab-Token": KEYS["SIGNING"]}
    assert client.post("/webhooks/gitlab", data=sample.body, headers=in_the_clear).status_code == 401
    twisted = host_webhooks.headers("gitlab", sample.body, "Push Hook", KEYS["SIGNING"]) | {"webhook-id": "another"}
    assert client.post("/webhooks/gitlab", data=sample.body, headers=twisted).get_json() == REFUSED


ODD_PROOFS = ("", "é", "sha256=é", "sha1=" + "a" * 40, "sha256=" + "A" * 64, "Basic é", "Basic !", "a" * 10240, "sha256=" + "a" * 10240)


@each_row("provider", PROVIDERS)
@each_row("proof", [*ODD_PROOFS, None])
def test_without_a_right_proof_the_answer_says_nothing_more(client: FlaskClient, queue: Kept, provider: str, proof: str | None) -> None:
    sample = PUSHES[provider]
    sent = host_webhooks.headers(provider, sample.body, sample.event)
    sent = {name: value for name, value in sent.items() if name != PROOF[provider]} | ({} if proof is None else {PROOF[provider]: proof})
    response = client.post(f"/webhooks/{provider}", data=sample.body, headers=sent)
    assert (response.status_code, response.get_json(), queue.jobs) == (401, REFUSED, [])


@each_row("provider", PROVIDERS)
def test_a_doubled_proof_is_refused(client: FlaskClient, provider: str) -> None:
    sample = PUSHES[provider]
    sent = host_webhooks.headers(provider, sample.body, sample.event)
    doubled = [*sent.items(), (PROOF[provider], sent[PROOF[provider]])]
    assert client.post(f"/webhooks/{provider}", data=sample.body, headers=doubled).status_code == 401


@each_row("sender", PROVIDERS)
@each_row("provider", PROVIDERS)
def test_another_providers_proof_opens_no_route(client: FlaskClient, queue: Kept, provider: str, sender: str) -> None:
    """Neither with the other's secret nor with this route's own: the path decides, whatever headers are sent."""
    queue.jobs.clear()
    sample = PUSHES[provider]
    for secret in ("", KEYS[provider.upper()]):
        sent = host_webhooks.headers(sender, sample.body, sample.event, secret)
        response = client.post(f"/webhooks/{provider}", data=sample.body, headers=sent)
        assert response.status_code == (202 if sender == provider else 401)
    assert bool(queue.jobs) is (sender == provider)


def renamed(sample: Sample, path: str) -> bytes:
    """Return a payload that speaks of another repository wherever it spelt the first."""
    return re.sub(r'"[^"]*git\.example\.com[^"]*/shop(\.git)?"', f'"https://git.example.com/{path}"', sample.body.decode()).encode()


@each_row("provider", PROVIDERS)
def test_a_repositorys_own_secret_speaks_for_it_alone_on_every_route(client: FlaskClient, queue: Kept, provider: str) -> None:
    queue.jobs.clear()
    sample = PUSHES[provider]
    response = send(client, sample, secret=KEYS["INFRA"])
    assert (response.status_code, response.get_json(), queue.jobs) == (401, REFUSED, [])
    own = renamed(sample, "acme/infra")
    assert send(client, sample, own).get_json() == REFUSED  # the provider's secret doesn't speak for it
    response = send(client, sample, own, KEYS["INFRA"])
    assert (response.status_code, [job.target for job in queue.jobs]) == (202, ["infra"])
    assert "shop" not in response.text


@each_row("provider", PROVIDERS)
def test_an_unknown_repository_learns_of_none_that_its_secret_may_not_speak_for(client: FlaskClient, provider: str) -> None:
    sample = PUSHES[provider]
    for secret, path, named in (("", "acme/infrared", False), (KEYS["INFRA"], "acme/infrared", True), (KEYS["INFRA"], "acme/shpo", True)):
        response = send(client, sample, renamed(sample, path), secret)
        assert response.status_code == 200
        (row,) = response.get_json()["ignored"]
        assert row["target"] is None
        assert row["reason"].startswith(f"no target follows the repository git.example.com/{path}")
        assert row["reason"].endswith("the nearest one is git.example.com/acme/infra") is named
        assert not (named and "shop" in row["reason"])


@each_row("provider", PROVIDERS)
@each_row("body", [b"{", b"[" * 50_000, b"\xff\xfe", b'{"a": 1e999}'])
def test_a_proven_body_that_is_no_payload_is_refused(client: FlaskClient, queue: Kept, provider: str, body: bytes) -> None:
    response = send(client, PUSHES[provider], body)
    assert (response.status_code, response.get_json()["code"], queue.jobs) == (400, "bad-payload", [])
    assert len(response.text) < 500


@each_row("provider", PROVIDERS)
def test_a_repository_of_another_type_is_answered_400(client: FlaskClient, queue: Kept, provider: str) -> None:
    sample = PUSHES[provider]
    body = json.dumps({**sample.document, "repository": ["x"], "project": ["x"], "resource": ["x"]}).encode()
    response = send(client, sample, body)
    assert (response.status_code, response.get_json()["code"], queue.jobs) == (400, "bad-payload", [])


@each_row("provider", PROVIDERS)
@each_row("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"])
def test_other_methods_are_refused(client: FlaskClient, provider: str, method: str) -> None:
    response = client.open(f"/webhooks/{provider}", method=method)
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")


@each_row("provider", PROVIDERS)
def test_no_answer_and_no_log_line_holds_a_secret(client: FlaskClient, caplog: pytest.LogCaptureFixture, provider: str) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    sample = PUSHES[provider]
    answers = [send(client, sample), send(client, sample, secret="another-secret-0123"), send(client, sample, b"{")]
    assert [answer.status_code for answer in answers] == [202, 401, 400]
    seen = "".join(answer.text + str(answer.headers) for answer in answers) + "".join(str(record.__dict__) for record in caplog.records)
    assert not any(secret in seen for secret in (*KEYS.values(), "another-secret-0123"))
    assert "delivery refused" in seen
