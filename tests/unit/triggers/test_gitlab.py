"""GitLab deliveries: a token instead of a signature."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handler.model.errors import BadPayload, BadSignature
from handler.model.event import Event
from handler.triggers.gitlab import parse
from tests.fakes.door import SHA, SHOP, ZEROS, gitlab_headers, gitlab_push, known

SECRET = known("GITLAB")


def event(body: bytes) -> Event:
    return parse(gitlab_headers(), body, [SECRET])


def changed(**more: object) -> bytes:
    return json.dumps(json.loads(gitlab_push()) | more).encode()


def test_a_push_with_the_token_becomes_an_event() -> None:
    assert event(gitlab_push()) == Event(
        "gitlab", "push", "13792a34-cac6-4fda-95a8-c58e00a3954e", (SHOP,), "refs/heads/main", SHA, actor="ada"
    )


@pytest.mark.parametrize(
    "token", ["", "x", SECRET.reveal() + " ", SECRET.reveal() + "," + SECRET.reveal(), "é" * 21, "a" * 10240, "\ud800"]
)
def test_any_other_token_is_refused(token: str) -> None:
    with pytest.raises(BadSignature):
        parse(gitlab_headers(token), gitlab_push(), [SECRET])


def test_a_missing_token_is_refused() -> None:
    with pytest.raises(BadSignature):
        parse({}, gitlab_push(), [SECRET])


def test_a_tag_push_hints_at_the_commit_and_not_at_the_tag_object() -> None:
    found = event(changed(object_kind="tag_push", ref="refs/tags/v1", checkout_sha="f" * 40))
    assert (found.kind, found.ref, found.after) == ("push", "refs/tags/v1", "f" * 40)


def test_a_system_hook_names_its_event_elsewhere() -> None:
    body = changed(object_kind=None, event_name="push")
    assert event(body).kind == "push"


def test_a_deleted_branch_has_no_commit() -> None:
    found = event(changed(after=ZEROS, checkout_sha=None))
    assert (found.deleted, found.after) == (True, "")


def test_the_name_stands_in_for_a_missing_user_name() -> None:
    assert event(changed(user_username=None, user_name="Ada")).actor == "Ada"


def test_another_event_is_ignored_with_its_name() -> None:
    assert event(b'{"object_kind": "issue"}').note == "a issue event asks for nothing"


@pytest.mark.parametrize(
    "odd", [{"object_kind": None}, {"object_kind": []}, {"project": 1}, {"project": {}}, {"ref": ""}, {"checkout_sha": "x"}]
)
def test_a_push_of_another_shape_is_refused(odd: dict[str, object]) -> None:
    with pytest.raises(BadPayload):
        event(changed(**odd))


def test_a_real_payload(shared_data: Path) -> None:
    found = event((shared_data / "webhooks/gitlab/push.json").read_bytes())
    assert found.urls[:2] == ("https://gitlab.com/group/name.git", "ssh://git@gitlab.com:2222/group/name.git")
    assert (found.ref, found.after, found.actor) == ("refs/heads/master", "bb0748feaa336d841c251017e4e374c22d0c8a98", "username")
