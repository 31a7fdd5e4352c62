"""GitHub deliveries: verified first, then read."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest

from handler.config.secrets import Secret
from handler.model.errors import BadPayload, BadSignature
from handler.model.event import Event
from handler.triggers import TRIGGERS
from handler.triggers.github import parse
from tests.fakes.door import SECRETS, SHA, SHOP, ZEROS, github_headers, github_push, known

SECRET = known("GITHUB")
OLD = known("GITHUB_OLD")


def event(body: bytes, name: str = "push") -> Event:
    return parse(github_headers(body, event=name), body, [SECRET])


def test_a_signed_push_becomes_an_event() -> None:
    assert event(github_push()) == Event(
        "github", "push", "72d3162e-cc78-11e3-81ab-4c9367dc0958", (SHOP,), "refs/heads/main", SHA, actor="ada"
    )


@pytest.mark.parametrize("secret", [SECRET, OLD])
def test_each_of_several_secrets_is_accepted_for_rotation(secret: Secret) -> None:
    body = github_push()
    assert parse(github_headers(body, secret.reveal()), body, [SECRET, OLD]).after == SHA


def test_a_signature_is_over_the_raw_bytes() -> None:
    body = github_push()
    with pytest.raises(BadSignature):
        parse(github_headers(body), body + b" ", [SECRET])


def test_a_secret_of_nobody_is_refused_and_so_is_everything_when_none_is_configured() -> None:
    body = github_push()
    for secrets in ([OLD], []):
        with pytest.raises(BadSignature) as raised:
            parse(github_headers(body), body, secrets)
        assert SECRETS["GITHUB"] not in str(raised.value)


DIGEST = hmac.new(SECRET.reveal().encode(), github_push(), hashlib.sha256).hexdigest()
SHA1 = hmac.new(SECRET.reveal().encode(), github_push(), hashlib.sha1).hexdigest()


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "sha256=",
        f"sha256={DIGEST.upper()}",
        f"SHA256={DIGEST}",
        f"sha256={DIGEST} ",
        f" sha256={DIGEST}",
        f"sha256={DIGEST}\n",
        f"sha256={DIGEST},sha256={DIGEST}",
        f"sha256={DIGEST[:-1]}",
        f"sha256={DIGEST}0",
        f"sha1={SHA1}",
        f"sha256={SHA1}",
        "sha256=é",
        "sha256=" + "٣" * 64,
        "sha256=" + "a" * 10240,
        "\ud800",
        DIGEST,
    ],
)
def test_any_other_spelling_of_a_signature_is_refused(signature: str) -> None:
    headers = github_headers(github_push()) | {"X-Hub-Signature-256": signature}
    with pytest.raises(BadSignature):
        parse(headers, github_push(), [SECRET])


def test_without_the_header_even_a_right_sha1_signature_is_refused() -> None:
    headers = github_headers(github_push()) | {"X-Hub-Signature": f"sha1={SHA1}"}
    del headers["X-Hub-Signature-256"]
    with pytest.raises(BadSignature):
        parse(headers, github_push(), [SECRET])


def test_a_doubled_header_in_another_case_is_refused() -> None:
    headers = github_headers(github_push())
    headers["x-hub-signature-256"] = headers["X-Hub-Signature-256"]
    with pytest.raises(BadSignature):
        parse(headers, github_push(), [SECRET])


def test_nothing_is_read_before_it_is_verified() -> None:
    with pytest.raises(BadSignature):
        parse(github_headers(b"{}"), b"\xff not json", [SECRET])


def test_a_deleted_branch_is_a_push_without_a_commit() -> None:
    found = event(github_push(after=ZEROS, deleted=False))
    assert (found.deleted, found.after) == (True, "")


def test_a_missing_after_is_unknown_and_not_a_deletion() -> None:
    document = json.loads(github_push())
    del document["after"], document["deleted"]
    found = event(json.dumps(document).encode())
    assert (found.deleted, found.after) == (False, "")


def test_an_annotated_tag_hints_at_its_commit() -> None:
    commit = "f" * 40
    assert event(github_push(ref="refs/tags/v1", head_commit={"id": commit})).after == commit
    assert event(github_push(ref="refs/tags/v1", head_commit=None)).after == SHA


def test_the_pusher_is_the_actor_when_there_is_no_sender() -> None:
    assert event(github_push(sender=None, pusher={"name": "bob"})).actor == "bob"


def test_a_ping_may_name_no_repository() -> None:
    assert event(b'{"zen": "x", "hook_id": 1}', "ping") == Event("github", "ping", "72d3162e-cc78-11e3-81ab-4c9367dc0958")


def test_another_event_is_ignored_with_its_name() -> None:
    assert event(b'{"action": "opened"}', "issues").note == "a issues event asks for nothing"


@pytest.mark.parametrize("name", ["", "PUSH", "push,push", "p" * 65, "push\n", "é"])
def test_an_event_header_that_is_no_event_name_is_refused(name: str) -> None:
    with pytest.raises(BadPayload):
        event(github_push(), name)


@pytest.mark.parametrize("name", ["", "x y", "a" * 65, "é", "a\nb"])
def test_a_delivery_id_that_is_none_is_dropped(name: str) -> None:
    body = github_push()
    assert parse(github_headers(body) | {"X-GitHub-Delivery": name}, body, [SECRET]).delivery == ""


@pytest.mark.parametrize(
    "odd",
    [
        {"ref": "main"},
        {"ref": "refs/heads/main\nlevel=ERROR"},
        {"ref": "refs/heads/\x1b[31m"},
        {"ref": "refs/heads/" + "a" * 2000},
        {"ref": None},
        {"ref": 7},
        {"after": "abc"},
        {"after": SHA.upper()},
        {"after": 0},
        {"repository": []},
        {"repository": {}},
        {"repository": {"clone_url": ["x"]}},
        {"repository": {"clone_url": "h" * 3000}},
        {"sender": "ada"},
        {"sender": {"login": {}}},
        {"deleted": "yes"},
        {"deleted": None},
    ],
)
def test_a_push_of_another_shape_is_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(BadPayload):
        event(github_push(**odd))


@pytest.mark.parametrize(
    ("name", "kind", "ref", "deleted"),
    [
        ("push", "push", "refs/tags/simple-tag", True),
        ("push-with-new-branch", "push", "refs/heads/master", False),
        ("push-with-organization", "push", "refs/tags/simple-tag", True),
        ("ping", "ping", "", False),
        ("delete", "other", "", False),
    ],
)
def test_real_payloads(shared_data: Path, name: str, kind: str, ref: str, deleted: bool) -> None:
    body = (shared_data / "webhooks/github" / f"{name}.json").read_bytes()
    found = event(body, name.partition("-")[0])
    assert (found.kind, found.ref, found.deleted, found.actor) == (kind, ref, deleted, "Codertocat")
    assert kind == "other" or any(url.endswith("/Hello-World.git") for url in found.urls)


def test_the_table_has_one_row_a_provider() -> None:
    assert list(TRIGGERS) == ["github", "gitlab"]
