"""A real git host that takes only tokens which a GitHub API on loopback gave out for a well signed request."""

from __future__ import annotations

import base64
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from handler.config.git import GitHubAppAuth, Repository, RepositoryAuth, SecretRef
from handler.config.masking import Mask
from handler.model.errors import AccessDenied, AnnealError, ConfigInvalid, GitUnavailable
from handler.source import GitHost, Limits
from handler.source.github_app import GitHubApp, repository_name
from handler.source.signin import from_environment
from infra.githost import Host, Work
from tests.rooms.source.githubapi import APP, INSTALLATION, GitHubApi
from tests.rooms.source.opening import QUICK

MAIN = "refs/heads/main"


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Hub:
    """GitHub: its API, its git host with one repository that is private, and our app."""

    api: GitHubApi
    git: Host
    sha: str
    url: str

    def auth(self, **changes: object) -> GitHubAppAuth:
        auth = GitHubAppAuth(APP, INSTALLATION, SecretRef(file=str(self.api.key)), self.api.url)
        return replace(auth, **changes)  # type: ignore[arg-type]  # fields by name

    def opened(self, changes: Mapping[str, object] | None = None, limits: Limits = QUICK) -> closing[GitHost]:
        return closing(GitHost(Repository(self.url, auth=RepositoryAuth(github_app=self.auth(**changes or {}))), limits=limits))

    def app(self, clock: Clock) -> GitHubApp:
        return GitHubApp(self.auth(), self.url, from_environment, "", QUICK, clock)


@pytest.fixture
def hub(host: Host, tmp_path: Path) -> Iterator[Hub]:
    work = Work.of(host, "acme/shop")
    work.write("app.yaml", "kind: ConfigMap\n")
    sha = work.commit("First")
    work.push()
    host.accounts = {"x-access-token": "none yet"}
    with GitHubApi(tmp_path) as api:
        api.issued = lambda token: host.accounts.update({"x-access-token": token})
        yield Hub(api, host, sha, host.url_of("acme/shop"))


def test_one_token_for_one_repository_and_reading_alone_opens_it(hub: Hub) -> None:
    with hub.opened() as git:
        assert git.fetch(git.resolve(MAIN)).commit.sha == hub.sha
        assert git.resolve(MAIN) == hub.sha
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
def test_the_url_tells_the_repositorys_name_or_the_token_is_for_all(url: str, name: str) -> None:
    assert repository_name(url) == name


def test_threads_share_one_request(hub: Hub) -> None:
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
    clock.now += 3295
    assert app.authorization() == first
    clock.now += 10
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
        git.resolve(MAIN)
        hub.git.accounts["x-access-token"] = "revoked"
        assert git.resolve(MAIN) == hub.sha
    assert len(hub.api.gave) == 2


def test_a_host_that_refuses_every_token_ends_it(hub: Hub) -> None:
    hub.api.issued = lambda _: None
    with hub.opened() as git, pytest.raises(AccessDenied, match="401 to our credentials"):
        git.resolve(MAIN)
    assert len(hub.api.gave) == 1


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
            r"401 \(A JSON web token could not be decoded\); check that .*privateKey \(file .*other.pem\) is a key of app",
        ),
        (wrong_app, r"401 \(Integration not found\); check that .* is a key of app Iv23other"),
        (wrong_installation, r"404 \(Not Found\); check auth.githubApp.installationId and apiUrl"),
        (wrong_api, r"404 \(Not Found\); check auth.githubApp.installationId and apiUrl"),
        (not_selected, r"422 \(There is at least one .*\); let the installation read the contents of the repository shop"),
        (suspended, r"403 \(This installation has been suspended\); check that the installation isn't suspended"),
    ],
)
def test_a_refusal_says_what_to_check(hub: Hub, change: Callable[[Hub], dict[str, object]], words: str) -> None:
    with hub.opened(change(hub)) as git, pytest.raises(AccessDenied, match=words) as caught:
        git.resolve(MAIN)
    assert str(caught.value).startswith("GitHub App ")
    assert hub.git.requests == [], "without a token the git host isn't asked"


@pytest.mark.parametrize(
    ("ahead", "words"), [(-3600, r"our clock is 3(600|599|601) s ahead of its"), (3600, r"our clock is 3\d+ s behind its")]
)
def test_clocks_that_differ_are_told(hub: Hub, ahead: float, words: str) -> None:
    hub.api.clock_ahead = ahead
    with hub.opened() as git, pytest.raises(ConfigInvalid, match=words):
        git.resolve(MAIN)


@pytest.mark.parametrize("text", ["canary", "-----BEGIN RSA PRIVATE KEY-----\ncanary\n-----END RSA PRIVATE KEY-----"])
def test_what_isnt_an_apps_key_is_told_without_a_word_of_it(hub: Hub, text: str, tmp_path: Path) -> None:
    file = tmp_path / "no-key"
    file.write_text(text)
    with (
        hub.opened(private_key=SecretRef(file=str(file))) as git,
        pytest.raises(ConfigInvalid, match=r"no-key: is not an unencr") as caught,
    ):
        git.resolve(MAIN)
    assert "canary" not in str(caught.value)


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
        (403, b'{"message": "You have exceeded a secondary rate limit"}', "answered 403 .*rate limit"),
        (429, b"", "answered 429"),
        (500, b"<html>", "answered 500$"),
        (503, b'{"message": "\\u001b[31m"}', r"answered 503 \(\\x1b\[31m\)"),
    ],
)
def test_odd_answers_are_transient_and_told_plainly(hub: Hub, status: int, body: bytes, words: str) -> None:
    hub.api.answer = status, body
    with hub.opened() as git, pytest.raises(GitUnavailable, match=words) as caught:
        git.resolve(MAIN)
    assert str(caught.value).isprintable()
    hub.api.answer = None
    with hub.opened() as git:
        assert git.resolve(MAIN) == hub.sha


def test_a_redirect_is_refused_and_its_target_never_asked(hub: Hub, tmp_path: Path) -> None:
    with GitHubApi(tmp_path) as other:
        hub.api.answer, hub.api.headers = (302, b""), {"Location": f"{other.url}/app/installations/{INSTALLATION}/access_tokens"}
        with hub.opened() as git, pytest.raises(ConfigInvalid, match="redirects are refused"):
            git.resolve(MAIN)
        assert other.asked == []


def test_an_api_that_doesnt_answer_is_transient(hub: Hub) -> None:
    hub.api.issued = lambda _: time.sleep(3)
    with hub.opened(limits=replace(QUICK, read=0.3)) as git, pytest.raises(GitUnavailable, match=r"GitHub App .*in time"):
        git.resolve(MAIN)
    with hub.opened(limits=replace(QUICK, total=0.5)) as git, pytest.raises(GitUnavailable, match=r"longer than 0\.5 s"):
        git.resolve(MAIN)
    with hub.opened({"api_url": "http://127.0.0.1:1"}) as git, pytest.raises(GitUnavailable, match=r"GitHub App .*refuses connections"):
        git.resolve(MAIN)


def test_token_and_key_are_in_no_error_log_or_representation(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen = []
    with hub.opened() as git:
        git.resolve(MAIN)
        for fail in (401, 403, 404, 429, 500):
            hub.git.fail = fail
            with pytest.raises(AnnealError) as caught:
                git.resolve(MAIN)
            assert caught.value.__cause__ is None
            seen.append(f"{caught.value} {caught.value!r} {git!r} {vars(git)!r} {vars(git._transport)!r} {vars(git._transport._sign_in)!r}")  # type: ignore[attr-defined]  # HTTP's
    lines = [line for line in hub.api.key.read_text().splitlines() if not line.startswith("-----")]
    pairs = [base64.b64encode(f"x-access-token:{token}".encode()).decode() for token in hub.api.gave]
    assert [secret for secret in (*lines, *hub.api.gave, *pairs) if any(secret in text for text in [*seen, caplog.text])] == []


def test_every_mask_of_the_process_knows_a_token_from_the_moment_it_is_made(hub: Hub) -> None:
    mask = Mask.of(["another-secret"])
    authorization = hub.app(Clock()).authorization()
    [token] = hub.api.gave
    for text in (token, authorization, json.dumps({"token": token}), f"https://x-access-token:{token}@github.com"):
        assert token not in mask(text)
        assert authorization.split()[1] not in mask(text)
    assert mask("another-secret and a plain word") == "*** and a plain word"
