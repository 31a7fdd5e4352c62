"""Credentials that rotate while we run: read anew with each request, and once more when the host refuses them."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from handler.config.git_settings import BasicAuth, Repository, RepositoryAuth, SecretRef
from handler.model.errors import AccessDenied, SecretUnavailable
from handler.source.git_host import GitHost
from infra.githost import Host, Work
from tests.rooms.source.open_repository import PATIENT, Secret, following

MAIN = "refs/heads/main"


def private(host: Host, password: str) -> str:
    work = Work.of(host, "shop")
    work.write("app.yaml", "kind: ConfigMap\n")
    sha = work.commit("First")
    work.push()
    host.accounts = {"deployer": password}
    return sha


def repository(host: Host, file: Path) -> Repository:
    return Repository(host.url_of("shop"), auth=RepositoryAuth(basic=BasicAuth("deployer", SecretRef(file=str(file)))))


def test_a_rotated_password_is_used_from_the_next_request_on(host: Host, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("former\n")
    sha = private(host, "former")
    with closing(GitHost(repository(host, file), limits=PATIENT)) as git:
        assert git.head(following(MAIN)).commit == sha
        host.accounts["deployer"] = "present"
        file.write_text("present\n")
        assert git.fetch(git.head(following(MAIN)).commit).commit.sha == sha
    assert 401 not in [request.status for request in host.requests]


def test_a_password_rotated_at_this_very_moment_is_tried_once(host: Host) -> None:
    sha = private(host, "present")
    values = iter(["former", "present", "present", "present"])
    with closing(GitHost(repository(host, Path("unread")), lambda _: Secret(next(values)), PATIENT)) as git:
        assert git.head(following(MAIN)).commit == sha
    assert [request.status for request in host.requests][:2] == [401, 200]


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(("rotating", "requests"), [(False, 1), (True, 2)])
def test_the_same_password_isnt_tried_twice_and_another_only_once(host: Host, status: int, rotating: bool, requests: int) -> None:
    private(host, "right")
    host.fail = status
    numbers = iter(range(100))
    git = GitHost(repository(host, Path("unread")), lambda _: Secret(f"wrong-{next(numbers) if rotating else 0}"), PATIENT)
    with closing(git), pytest.raises(AccessDenied, match=f"{status} to our credentials"):
        git.head(following(MAIN))
    assert len(host.requests) == requests


def test_a_password_that_cant_be_read_is_told_before_the_host_is_asked(host: Host, tmp_path: Path) -> None:
    private(host, "right")
    git = GitHost(repository(host, tmp_path / "none"), limits=PATIENT)
    with closing(git), pytest.raises(SecretUnavailable, match="doesn't exist"):
        git.head(following(MAIN))
    assert host.requests == []


def test_ssh_and_github_apps_are_loaded_only_where_they_are_configured() -> None:
    code = "import sys, handler.app.build; print(sorted({'paramiko', 'jwt', 'nacl', 'bcrypt'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
