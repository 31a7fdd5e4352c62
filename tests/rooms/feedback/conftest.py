"""Git hosts made up by their published schemas; each must be left without a request that its schema refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.git_hosts.azuredevops import AzureDevOps
from tests.fakes.git_hosts.bitbucket import Bitbucket
from tests.fakes.git_hosts.bitbucketserver import BitbucketServer
from tests.fakes.git_hosts.github import GitHub
from tests.fakes.git_hosts.gitlab import GitLab
from tests.rooms.source.github_api import GitHubApi


@pytest.fixture
def github() -> Iterator[GitHub]:
    with GitHub() as host:
        yield host


@pytest.fixture
def app(tmp_path: Path) -> GitHubApi:
    """The endpoint of a GitHub App's tokens, for `GitHub.app`; it listens nowhere itself."""
    made = GitHubApi(tmp_path)
    made.key = made.new_key("app")
    return made


@pytest.fixture
def gitlab() -> Iterator[GitLab]:
    with GitLab() as host:
        yield host


@pytest.fixture
def bitbucket() -> Iterator[Bitbucket]:
    with Bitbucket() as host:
        yield host


@pytest.fixture
def bitbucketserver() -> Iterator[BitbucketServer]:
    with BitbucketServer() as host:
        yield host


@pytest.fixture
def azuredevops() -> Iterator[AzureDevOps]:
    with AzureDevOps() as host:
        yield host
