"""When GitHub gives no token: what it means, who must act, and that no odd answer harms."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from handler.config.git_settings import SecretRef
from handler.model.errors import AccessDenied, ConfigInvalid, GitUnavailable
from tests.patience import PATIENCE
from tests.rooms.source.github_api import INSTALLATION, GitHubApi
from tests.rooms.source.github_host import Hub
from tests.rooms.source.open_repository import PATIENT, following

MAIN = "refs/heads/main"


@pytest.mark.parametrize(
    ("ahead", "words"), [(-3600, r"our clock is 3(599|6\d\d) s ahead of its"), (3600, r"our clock is 3[56]\d\d s behind its")]
)
def test_a_401_by_clock_skew_is_named(hub: Hub, ahead: float, words: str) -> None:
    hub.api.clock_ahead = ahead
    with hub.opened() as git, pytest.raises(ConfigInvalid, match=words):
        git.head(following(MAIN))


@pytest.mark.parametrize("text", ["canary", "-----BEGIN RSA PRIVATE KEY-----\ncanary\n-----END RSA PRIVATE KEY-----"])
def test_a_file_that_is_no_github_app_key_is_refused_without_quoting_it(hub: Hub, text: str, tmp_path: Path) -> None:
    file = tmp_path / "no-key"
    file.write_text(text)
    with (
        hub.opened({"private_key": SecretRef(file=str(file))}) as git,
        pytest.raises(ConfigInvalid, match=r"no-key: is not an unencr") as caught,
    ):
        git.head(following(MAIN))
    assert "canary" not in str(caught.value)


def test_a_redirect_is_refused_and_its_target_never_asked(hub: Hub, tmp_path: Path) -> None:
    with GitHubApi(tmp_path) as other:
        hub.api.answer, hub.api.headers = (302, b""), {"Location": f"{other.url}/app/installations/{INSTALLATION}/access_tokens"}
        with hub.opened() as git, pytest.raises(ConfigInvalid, match="redirects are refused"):
            git.head(following(MAIN))
        assert other.asked == []


def test_an_api_that_repeats_what_was_sent_is_told_without_it(hub: Hub) -> None:
    hub.api.echo = True
    with hub.opened() as git, pytest.raises(AccessDenied, match=r"answered 401; check that"):
        git.head(following(MAIN))


def test_an_api_that_doesnt_answer_is_transient(hub: Hub) -> None:
    given_up = threading.Event()

    def issued(_token: str) -> None:
        given_up.wait(PATIENCE)

    hub.api.issued = issued
    with hub.opened(limits=replace(PATIENT, read=0.3)) as git, pytest.raises(GitUnavailable, match=r"GitHub App .*in time"):
        git.head(following(MAIN))
    with hub.opened(limits=replace(PATIENT, total=0.5)) as git, pytest.raises(GitUnavailable, match=r"longer than 0\.5 s"):
        git.head(following(MAIN))
    given_up.set()
    with hub.opened({"api_url": "http://127.0.0.1:1"}) as git, pytest.raises(GitUnavailable, match=r"GitHub App .*refuses connections"):
        git.head(following(MAIN))
