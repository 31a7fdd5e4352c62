"""Git hosts made up by their published schemas; each must be left without a request that its schema refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.giteahost import GiteaHost
from tests.rooms.feedback.tried_gitea import TriedGitea
from tests.rooms.feedback.tried_hosts import MADE_UP, MadeUp, TriedHost, made_up
from tests.rooms.source.github_api import GitHubApi

TRIED = "tried"
GITEA = "gitea"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let a test of the real Gitea ask for it by name, so that it is built before the test's time begins."""
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and item.callspec.params.get(TRIED) == GITEA:
            item.fixturenames.insert(0, GITEA)


@pytest.fixture(scope="module")
def tried_gitea(gitea: GiteaHost, tmp_path_factory: pytest.TempPathFactory) -> TriedGitea:
    """A repository of the module's own on the real Gitea; its tests add to it."""
    return TriedGitea(gitea, tmp_path_factory.mktemp("gitea"))


@pytest.fixture(params=[*MADE_UP, GITEA])
def tried(request: pytest.FixtureRequest) -> Iterator[TriedHost]:
    """Each host in turn; a made-up one is the test's own."""
    if request.param == GITEA:
        yield request.getfixturevalue("tried_gitea")
    else:
        yield from made_up(request.param)


@pytest.fixture(params=MADE_UP)
def made(request: pytest.FixtureRequest) -> Iterator[MadeUp]:
    """Each made-up host in turn: those can be turned bad."""
    yield from made_up(request.param)


@pytest.fixture
def app(tmp_path: Path) -> GitHubApi:
    """The endpoint of a GitHub App's tokens, for `GitHub.app`; it listens nowhere itself."""
    made = GitHubApi(tmp_path)
    made.key = made.new_key("app")
    return made
