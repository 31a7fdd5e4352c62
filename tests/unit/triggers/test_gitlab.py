"""GitLab deliveries: a token in the clear, or a signing token's signature over id, time and body."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from handler.config.secrets import Secret
from handler.model.errors import BadPayload, BadSignature
from handler.model.event import Event, RefChange
from handler.triggers import WEBHOOKS, gitlab
from tests.fakes.host_webhooks import KEYS, SAMPLES, SIGNING, accepted, signed_by_token
from tests.fakes.signed_webhooks import SHA, SHOP, ZEROS, gitlab_headers, gitlab_push
from tests.unit.rows import each_row

TOKEN = KEYS["GITLAB"]


def event(body: bytes) -> Event:
    return WEBHOOKS["gitlab"].verified(gitlab_headers(TOKEN), body, accepted(TOKEN))[0]


def changed(**more: object) -> bytes:
    return json.dumps(json.loads(gitlab_push()) | more).encode()


def test_a_push_with_the_token_becomes_an_event() -> None:
    assert event(gitlab_push()) == Event(
        "gitlab", "push", "13792a34-cac6-4fda-95a8-c58e00a3954e", (SHOP,), (RefChange("refs/heads/main", SHA),), actor="ada"
    )


def test_pushes_that_one_webhook_has_set_off_are_told_apart_by_the_key_of_each() -> None:
    known = [{"Idempotency-Key": f"908a6d9e-45fd-46c8-97e6-c4f350f219d{number}"} for number in range(2)]
    found = [WEBHOOKS["gitlab"].verified(gitlab_headers(TOKEN) | key, gitlab_push(), accepted(TOKEN))[0] for key in known]
    assert [each.delivery for each in found] == [key["Idempotency-Key"] for key in known]
    odd = WEBHOOKS["gitlab"].verified(gitlab_headers(TOKEN) | {"Idempotency-Key": "odd key\n"}, gitlab_push(), accepted(TOKEN))[0]
    assert odd.delivery == gitlab_headers()["X-Gitlab-Event-UUID"]


@pytest.mark.parametrize("token", ["", "x", TOKEN + " ", f"{TOKEN},{TOKEN}", "é" * 21, "a" * 10240, "\ud800"])
def test_any_other_token_is_refused(token: str) -> None:
    with pytest.raises(BadSignature):
        WEBHOOKS["gitlab"].verified(gitlab_headers(token), gitlab_push(), accepted(TOKEN))


def test_a_tag_push_hints_at_the_commit_and_not_at_the_tag_object() -> None:
    found = event(changed(object_kind="tag_push", ref="refs/tags/v1", checkout_sha="f" * 40))
    assert found.changes == (RefChange("refs/tags/v1", "f" * 40),)


def test_a_deleted_branch_has_no_commit() -> None:
    assert event(changed(after=ZEROS, checkout_sha=None)).changes == (RefChange("refs/heads/main", deleted=True),)


def test_the_name_stands_in_for_a_missing_user_name() -> None:
    assert event(changed(user_username=None, user_name="Ada")).actor == "Ada"


UPDATE = next(sample for sample in SAMPLES if sample.name == "system-repository_update")


@pytest.mark.parametrize("listed", [None, []])
def test_an_update_that_lists_no_ref_may_be_of_any(listed: object) -> None:
    found = event(json.dumps(UPDATE.document | {"changes": listed}).encode())
    assert (found.kind, found.changes, found.more, found.actor) == ("push", (), True, "Ada")


@pytest.mark.parametrize("odd", [{"changes": ["refs/heads/main"]}, {"changes": [{"ref": "main"}]}, {"project": {}}])
def test_an_update_of_another_shape_is_refused(odd: dict[str, object]) -> None:
    with pytest.raises(BadPayload):
        event(json.dumps(UPDATE.document | odd).encode())


def test_another_event_is_ignored_with_its_name() -> None:
    assert event(b'{"object_kind": "issue"}').note == "issue events ask for nothing"


@pytest.mark.parametrize(
    "odd", [{"object_kind": None}, {"object_kind": []}, {"project": 1}, {"project": {}}, {"ref": ""}, {"checkout_sha": "x"}]
)
def test_a_push_of_another_shape_is_refused(odd: dict[str, object]) -> None:
    with pytest.raises(BadPayload):
        event(changed(**odd))


def test_a_real_payload(shared_data: Path) -> None:
    found = event((shared_data / "webhooks/gitlab/push.json").read_bytes())
    assert found.urls[:2] == ("https://gitlab.com/group/name.git", "ssh://git@gitlab.com:2222/group/name.git")
    assert found.changes == (RefChange("refs/heads/master", "bb0748feaa336d841c251017e4e374c22d0c8a98"),)
    assert found.actor == "username"


def proves(headers: dict[str, str], body: bytes = b"{}", secret: str = SIGNING) -> bool:
    return gitlab.proves(headers, body, Secret(secret))


def test_a_signing_token_signs() -> None:
    right = signed_by_token(b"{}", SIGNING)
    assert proves(right)
    assert proves(right | {"webhook-signature": f"v1,{'A' * 43}= {right['webhook-signature']}"})  # a key is being replaced
    assert proves({key.title(): value for key, value in right.items()})
    assert proves(signed_by_token("é".encode(), SIGNING), "é".encode())


def test_a_signing_token_is_never_accepted_as_a_token() -> None:
    assert not proves({"X-Gitlab-Token": SIGNING})
    assert not proves({"X-Gitlab-Token": SIGNING.removeprefix("whsec_")})


def test_a_token_does_not_sign_and_a_key_of_another_does_not_either() -> None:
    assert not proves(signed_by_token(b"{}", SIGNING), secret=TOKEN)
    assert not proves(signed_by_token(b"{}", "whsec_" + base64.b64encode(b"another key, also of some length").decode()))


@pytest.mark.parametrize("minutes", [-6, 6, -60 * 24 * 365])
def test_a_signature_of_another_time_is_stale(minutes: int) -> None:
    at = datetime.now(UTC) + timedelta(minutes=minutes)
    assert not proves(signed_by_token(b"{}", SIGNING, at))


def test_a_signature_is_over_the_id_the_time_and_the_bytes() -> None:
    right = signed_by_token(b"{}", SIGNING)
    assert not proves(right, b"{} ")
    assert not proves(right | {"webhook-id": "7a1e"})
    assert not proves(right | {"webhook-timestamp": str(int(right["webhook-timestamp"]) - 1)})


@each_row("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
@each_row(
    "odd",
    [
        "",
        "é",
        "v1 é,",
        "v1",
        ",",
        "v1,",
        "v1,é",
        "v1,AAAA",
        "v2,AAAA",
        "v1,a,b",
        "nan",
        "1e400",
        "-1",
        "9" * 400,
        "٣",
        "\ud800",
        "a" * 10240,
        "x\n",
    ],
)
def test_a_malformed_signature_id_or_time_proves_nothing(name: str, odd: str) -> None:
    assert not proves(signed_by_token(b"{}", SIGNING) | {name: odd})


def test_a_doubled_signature_header_proves_nothing() -> None:
    right = signed_by_token(b"{}", SIGNING)
    assert not proves(right | {"Webhook-Signature": right["webhook-signature"]})


def test_a_body_that_is_no_text_and_a_key_that_is_no_key_prove_nothing() -> None:
    assert not proves(signed_by_token(b"\xff", SIGNING), b"\xff")
    for secret in ("whsec_", "whsec_not base64 at all, is it", "whsec_=", "whsec_A", "whsec_é"):
        assert not proves(signed_by_token(b"{}", SIGNING), secret=secret)
