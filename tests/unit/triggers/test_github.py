"""GitHub deliveries: verified first, then read."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest

from handler.model.errors import BadPayload, BadSignature
from handler.model.event import Event, RefChange
from tests.fakes.host_webhooks import KEYS, headers, read
from tests.fakes.signed_webhooks import SHA, SHOP, ZEROS, github_push
from tests.unit.rows import each_row


def event(body: bytes, name: str = "push") -> Event:
    return read("github", body, event=name)


def test_a_signed_push_becomes_an_event() -> None:
    assert event(github_push()) == Event("github", "push", "0f6b4a8e-9a11", (SHOP,), (RefChange("refs/heads/main", SHA),), actor="ada")


def test_even_a_right_sha1_signature_is_refused() -> None:
    body = github_push()
    digest = hmac.new(KEYS["GITHUB"].encode(), body, hashlib.sha1).hexdigest()
    sent = headers("github", body, "push")
    del sent["X-Hub-Signature-256"]
    for name in ("X-Hub-Signature", "X-Hub-Signature-256"):
        for value in (f"sha1={digest}", f"sha256={digest}"):
            with pytest.raises(BadSignature):
                read("github", body, sent | {name: value})


def test_a_deleted_branch_is_a_push_without_a_commit() -> None:
    assert event(github_push(after=ZEROS, deleted=False)).changes == (RefChange("refs/heads/main", deleted=True),)


def test_a_missing_after_is_unknown_and_not_a_deletion() -> None:
    document = json.loads(github_push())
    del document["after"], document["deleted"]
    assert event(json.dumps(document).encode()).changes == (RefChange("refs/heads/main"),)


def test_an_annotated_tag_hints_at_its_commit() -> None:
    commit = "f" * 40
    assert event(github_push(ref="refs/tags/v1", head_commit={"id": commit})).changes[0].after == commit
    assert event(github_push(ref="refs/tags/v1", head_commit=None)).changes[0].after == SHA


def test_the_pusher_is_the_actor_when_there_is_no_sender() -> None:
    assert event(github_push(sender=None, pusher={"name": "bob"})).actor == "bob"


def test_a_ping_may_name_no_repository() -> None:
    assert event(b'{"zen": "x", "hook_id": 1}', "ping") == Event("github", "ping", "0f6b4a8e-9a11")


def test_another_event_is_ignored_with_its_name() -> None:
    assert event(b'{"action": "opened"}', "issues").note == "issues events ask for nothing"


@each_row(
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
    assert (found.kind, found.actor) == (kind, "Codertocat")
    assert [(change.ref, change.deleted) for change in found.changes] == ([(ref, deleted)] if ref else [])
    assert kind == "other" or any(url.endswith("/Hello-World.git") for url in found.urls)
