"""A real git host that takes only tokens which a GitHub API on loopback gave out for a well signed request."""

from __future__ import annotations

import base64
import logging
import threading

import pytest

from handler.config.git_settings import SecretRef
from handler.config.secrets import Secret
from handler.model.errors import AccessDenied, AnnealError
from handler.source.github_app import GitHubApp, repository_name
from handler.source.signin import basic, from_environment
from tests.rooms.source.github_host import Clock, Hub
from tests.rooms.source.open_repository import PATIENT, following

MAIN = "refs/heads/main"


def test_one_token_for_one_repository_and_reading_alone_opens_it(hub: Hub) -> None:
    with hub.opened() as git:
        assert git.fetch(git.head(following(MAIN)).commit).commit.sha == hub.sha
        assert git.head(following(MAIN)).commit == hub.sha
    assert hub.api.asked == [{"permissions": {"contents": "read"}, "repositories": ["shop"]}]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/acme/shop", "shop"),
        ("https://github.com/acme/shop.git", "shop"),
        ("https://github.com/acme/shop.git/", "shop"),
        ("https://github.com/acme/my.shop", "my.shop"),
        ("https://proxy.example.com/github/acme/shop.git", ""),
        ("https://github.com/shop", ""),
    ],
)
def test_the_installation_token_is_for_the_urls_repository_or_for_all(url: str, name: str) -> None:
    assert repository_name(url) == name


def test_concurrent_threads_share_one_installation_token_request(hub: Hub) -> None:
    app = hub.app(Clock())
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(app.authorization())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(found) == 8
    assert len(hub.api.gave) == 1


@pytest.mark.parametrize("ahead", [0.0, 20.0, -20.0])
def test_a_token_is_replaced_five_minutes_before_its_end_whatever_the_clocks_say(hub: Hub, ahead: float) -> None:
    hub.api.clock_ahead = ahead
    clock = Clock()
    app = hub.app(clock)
    first = app.authorization()
    clock.now += 3240
    assert app.authorization() == first
    clock.now += 120
    assert app.authorization() != first
    assert len(hub.api.gave) == 2


def test_a_short_lived_token_is_used_for_half_its_life(hub: Hub) -> None:
    hub.api.lifetime = 100
    clock = Clock()
    app = hub.app(clock)
    first = app.authorization()
    clock.now += 40
    assert app.authorization() == first
    clock.now += 20
    assert app.authorization() != first


def test_a_token_that_the_host_refuses_is_replaced_once_unless_it_is_new(hub: Hub) -> None:
    clock = Clock()
    app = hub.app(clock)
    first = app.authorization()
    assert not app.refused(first)
    clock.now += 60
    assert app.refused(first)
    second = app.authorization()
    assert second != first
    assert app.refused(first), "another thread's news is old: there is another token"
    assert app.authorization() == second


def test_a_revoked_token_is_replaced_in_the_middle_of_an_operation(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.source.github_app._YOUNG", 0.0)
    with hub.opened() as git:
        git.head(following(MAIN))
        hub.git.accounts["x-access-token"] = "revoked"
        assert git.head(following(MAIN)).commit == hub.sha
    assert len(hub.api.gave) == 2


def test_a_host_that_refuses_every_token_ends_it(hub: Hub) -> None:
    hub.api.issued = lambda _: None
    with hub.opened() as git, pytest.raises(AccessDenied, match="401 to our credentials"):
        git.head(following(MAIN))
    assert len(hub.api.gave) == 1


def test_token_and_key_are_in_no_error_log_or_representation(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen = []
    with hub.opened() as git:
        git.head(following(MAIN))
        for fail in (401, 403, 404, 429, 500):
            hub.git.fail = fail
            with pytest.raises(AnnealError) as caught:
                git.head(following(MAIN))
            assert caught.value.__cause__ is None
            seen.append(f"{caught.value} {caught.value!r} {git!r} {vars(git)!r} {vars(git._transport)!r} {vars(git._transport._sign_in)!r}")  # type: ignore[attr-defined]  # HTTP's
    lines = [line for line in hub.api.key.read_text().splitlines() if not line.startswith("-----")]
    pairs = [base64.b64encode(f"x-access-token:{token}".encode()).decode() for token in hub.api.gave]
    assert [secret for secret in (*lines, *hub.api.gave, *pairs) if any(secret in text for text in [*seen, caplog.text])] == []


def test_an_apps_key_that_was_rotated_since_it_was_asked_for_buys_a_token_at_once(hub: Hub) -> None:
    """A store's answer is kept for a while: a key that GitHub refuses is read anew before an error is reported."""
    older, asked = hub.api.new_key("older"), []

    def again(ref: SecretRef) -> Secret:
        asked.append(ref)
        return Secret(hub.api.key.read_text())

    key = SecretRef(file=str(older))
    app = GitHubApp(hub.auth(private_key=key), hub.url, from_environment, "", PATIENT, again=again)
    assert app.authorization() == basic("x-access-token", hub.api.gave[0])
    assert asked == [key]
    asked.clear()
    app = GitHubApp(hub.auth(private_key=key), hub.url, from_environment, "", PATIENT)
    with pytest.raises(AccessDenied, match="is a key of app"):
        app.authorization()
