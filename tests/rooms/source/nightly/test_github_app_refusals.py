"""When GitHub gives no token: what it means, who must act, and that no odd answer harms."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handler.config.git_settings import SecretRef
from handler.model.errors import AccessDenied, GitUnavailable
from tests.rooms.source.github_host import Hub
from tests.rooms.source.open_repository import following
from tests.rooms.source.test_github_app_refusals import MAIN


def wrong_key(hub: Hub) -> dict[str, object]:
    return {"private_key": SecretRef(file=str(hub.api.new_key("other")))}


def wrong_app(_: Hub) -> dict[str, object]:
    return {"app_id": "Iv23other"}


def wrong_installation(_: Hub) -> dict[str, object]:
    return {"installation_id": 1}


def wrong_api(hub: Hub) -> dict[str, object]:
    return {"api_url": hub.api.url.removesuffix("/api/v3")}


def not_selected(hub: Hub) -> dict[str, object]:
    hub.api.repositories = ()
    return {}


def suspended(hub: Hub) -> dict[str, object]:
    hub.api.answer = 403, b'{"message": "This installation has been suspended"}'
    return {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            wrong_key,
            r"401; check that .*privateKey \(file .*other.pem\) is a key of app",
        ),
        (wrong_app, r"401; check that .* is a key of app Iv23other"),
        (wrong_installation, r"404; check auth.githubApp.installationId and apiUrl"),
        (wrong_api, r"404; check auth.githubApp.installationId and apiUrl"),
        (not_selected, r"422; let the installation have contents: read for the repository shop"),
        (suspended, r"403; check that the installation isn't suspended"),
    ],
)
def test_a_refusal_says_what_to_check(hub: Hub, change: Callable[[Hub], dict[str, object]], words: str) -> None:
    with hub.opened(change(hub)) as git, pytest.raises(AccessDenied, match=words) as caught:
        git.head(following(MAIN))
    assert str(caught.value).startswith("GitHub App ")
    assert hub.git.requests == [], "without a token the git host isn't asked"


FUTURE = '"expires_at": "2999-01-01T00:00:00Z"'


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (201, b"", "has no token"),
        (201, b"[]", "has no token"),
        (201, b'{"token": "ghs_x"}', "has no token, or no time"),
        (201, b"[" * 60_000, "has no token"),
        (201, f'{{"token": 7, {FUTURE}}}'.encode(), "can't be one"),
        (201, f'{{"token": "", {FUTURE}}}'.encode(), "can't be one"),
        (201, f'{{"token": "ghs_x\\nX-Evil: 1", {FUTURE}}}'.encode(), "can't be one"),
        (201, f'{{"token": "ghs_\\ud800", {FUTURE}}}'.encode(), "can't be one"),
        (201, f'{{"token": "{"x" * 5000}", {FUTURE}}}'.encode(), "can't be one"),
        (201, b'{"token": "ghs_x", "expires_at": "2999-01-01T00:00:00"}', "can't be one"),
        (201, b'{"token": "ghs_x", "expires_at": 12}', "has no token, or no time"),
        (201, b'{"token": "ghs_x", "expires_at": "2001-01-01T00:00:00Z"}', "has ended already"),
        (201, b" " * 10_000_000, "more than 65536 bytes"),
        (200, f'{{"token": "ghs_x", {FUTURE}}}'.encode(), "answered 200"),
        (403, b'{"message": "You have exceeded a secondary rate limit"}', "answered 403: a rate limit is passed"),
        (429, b"", "answered 429"),
        (500, b"<html>", "answered 500$"),
        (503, b'{"message": "\\u001b[31m"}', r"answered 503$"),
    ],
)
def test_odd_answers_are_transient_and_told_plainly(hub: Hub, status: int, body: bytes, words: str) -> None:
    hub.api.answer = status, body
    with hub.opened() as git, pytest.raises(GitUnavailable, match=words) as caught:
        git.head(following(MAIN))
    assert str(caught.value).isprintable()
    hub.api.answer = None
    with hub.opened() as git:
        assert git.head(following(MAIN)).commit == hub.sha
