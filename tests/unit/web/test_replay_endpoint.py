"""`POST /replay/<target>`: who may ask for what."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from handler.model.event import Job
from handler.web.app import create_app
from tests.fakes.signed_webhooks import SECRETS, SHA, Kept, door_secrets, door_settings
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow


@pytest.fixture
def queue() -> Kept:
    return Kept()


@pytest.fixture
def client(queue: Kept) -> FlaskClient:
    return create_app(door_settings(), door_secrets(), queue, lambda: True).test_client()


def replay(client: FlaskClient, target: str, asked: Any = None, token: str = "OPS") -> TestResponse:
    body = b"" if asked is None else json.dumps(asked).encode()
    headers = {"Authorization": f"Bearer {SECRETS[token]}", "Content-Type": "application/json"}
    return client.post(f"/replay/{target}", data=body, headers=headers)


def test_an_empty_body_asks_for_a_plain_run(client: FlaskClient, queue: Kept) -> None:
    response = replay(client, "shop-prod", token="CI")
    assert response.status_code == 202
    assert response.get_json() == {
        "matched": [{"target": "shop-prod", "reason": "asked for by ci", "run": "r1"}],
        "ignored": [],
        "run": "r1",
    }
    assert queue.jobs == [Job("shop-prod", "replay", actor="ci")]


@pytest.mark.parametrize(
    ("asked", "job"),
    [
        ({}, Job("infra", "replay", actor="ops")),
        ({"commit": SHA}, Job("infra", "replay", commit=SHA, actor="ops")),
        ({"force": True, "dryRun": True}, Job("infra", "replay", force=True, dry_run=True, actor="ops")),
        ({"approve": "h-1a2b"}, Job("infra", "replay", approve="h-1a2b", actor="ops")),
        ({"unpin": True}, Job("infra", "replay", unpin=True, actor="ops")),
        ({"rollback": True}, Job("infra", "replay", rollback=True, actor="ops")),
    ],
)
def test_the_replay_body_becomes_the_job(client: FlaskClient, queue: Kept, asked: dict[str, object], job: Job) -> None:
    assert replay(client, "infra", asked).status_code == 202
    assert queue.jobs == [job]


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong-token-wrong-token",
        "Basic Y2k6eA==",
        f"Token {SECRETS['OPS']}",
        f"Bearer {SECRETS['OPS']} ",
        "Bearer é",
        "Bearer " + "a" * 10240,
        f"Bearer {SECRETS['GITHUB']}",
    ],
)
def test_without_a_token_replay_answers_401_alike_for_every_target(client: FlaskClient, queue: Kept, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    answers = {client.post(f"/replay/{target}", headers=headers).get_data() for target in ("shop-prod", "nobody")}
    assert len(answers) == 1
    assert client.post("/replay/shop-prod", headers=headers).status_code == 401
    assert queue.jobs == []


class Unread(io.BytesIO):
    """A body that must not be read."""

    def read(self, _size: int | None = -1) -> bytes:
        raise AssertionError("it was read")


@pytest.mark.parametrize(
    ("target", "token", "status"), [("shop-prod", "GITHUB", 401), ("infra", "CI", 403), ("nobody", "CI", 403), ("shop-nowhere", "CI", 404)]
)
@pytest.mark.parametrize("length", ["2", str(10**9)])
@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_no_body_is_read_for_who_may_not_touch_the_target(
    client: FlaskClient, target: str, token: str, status: int, length: str, kind: str
) -> None:
    sent = {"wsgi.input": Unread(), "CONTENT_LENGTH": length, "CONTENT_TYPE": kind}
    response = client.post(f"/replay/{target}", headers={"Authorization": f"Bearer {SECRETS[token]}"}, environ_overrides=sent)
    assert response.status_code == status


@pytest.mark.parametrize("asked", [{"commit": SHA}, {"unpin": True}, {"rollback": True}, {"approve": "h1"}])
def test_a_token_does_only_what_it_may(client: FlaskClient, queue: Kept, asked: dict[str, object]) -> None:
    assert replay(client, "shop-prod", asked, "CI").status_code == 403
    assert queue.jobs == []


@each_row(
    "asked",
    [
        [],
        "x",
        {"Commit": SHA},
        {"commit": "main"},
        {"commit": SHA[:7]},
        {"commit": "0" * 40},
        {"commit": ""},
        {"commit": None},
        {"commit": None, "force": True},
        {"commit": 1},
        {"force": "true"},
        {"force": 1},
        {"force": None},
        {"dryRun": []},
        {"approve": ""},
        {"approve": None},
        {"approve": None, "dryRun": True},
        {"approve": ["h1"]},
        {"approve": "a b"},
        {"approve": "a" * 129},
        {"approve": True},
        {"unpin": {}},
        {"unpin": None},
        {"rollback": None},
        {"rollback": ""},
        {"dryRun": None},
        {"dryRun": ""},
        {"commit": SHA, "unpin": True},
        {"commit": SHA, "rollback": True},
        {"unpin": True, "rollback": True},
        {"force": True, "rollback": True},
        {"rollback": "yes"},
        {"commit": SHA, "force": True},
        {"prune": False},
        {"\n" * 500: 1},
    ],
)
def test_an_invalid_replay_body_is_answered_400(client: FlaskClient, queue: Kept, asked: Any) -> None:
    response = replay(client, "infra", asked)
    assert response.status_code == 400
    assert len(response.get_data()) < 500
    assert queue.jobs == []


def test_a_form_body_is_answered_415(client: FlaskClient) -> None:
    response = client.post("/replay/infra", data={"force": "1"}, headers={"Authorization": f"Bearer {SECRETS['OPS']}"})
    assert response.status_code == 415
