"""Credentials that rotate while we run: read anew with each request, and once more when the host refuses them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from handler.config.git_settings import BasicAuth, Repository, RepositoryAuth, SecretRef
from handler.config.remote_secrets import SecretClocks
from handler.config.secret_rotation import Rotation
from handler.config.settings import Settings, Target
from handler.model.errors import AccessDenied, SecretUnavailable
from handler.source.git_host import GitHost
from infra.githost import Host, Work
from tests.rooms.source.open_repository import PATIENT, Secret, following

MAIN = "refs/heads/main"
OLD, NEW = "CANARY-old-password", "CANARY-new-password"


def private(host: Host, password: str) -> str:
    work = Work.of(host, "shop")
    work.write("app.yaml", "kind: ConfigMap\n")
    sha = work.commit("First")
    work.push()
    host.accounts = {"deployer": password}
    return sha


def repository(host: Host, file: Path) -> Repository:
    return Repository(host.url_of("shop"), auth=RepositoryAuth(basic=BasicAuth("deployer", SecretRef(file=str(file)))))


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


@pytest.mark.usefixtures("waited_for")
def test_a_password_of_a_store_is_asked_for_again_when_the_host_refuses_it(host: Host) -> None:
    private(host, OLD)
    now, stored = [0.0], [OLD]
    mine = Repository(host.url_of("shop"), auth=RepositoryAuth(BasicAuth("deployer", SecretRef(aws_parameter="/git"))))
    settings = Settings((Target("shop", mine, ("shop",)),))
    rotation = Rotation(settings, {}, needs={"git"}, fetch=lambda _: stored[0], clocks=SecretClocks(lambda: now[0], lambda: now[0]))
    with closing(GitHost(mine, rotation.read, again=rotation.again)) as git:
        before = git.head(following(MAIN)).commit
        host.accounts, stored[0] = {"deployer": NEW}, NEW
        now[0] = settings.secrets_interval / 2
        assert git.head(following(MAIN)).commit == before


def test_the_present_password_is_used(host: Host, tmp_path: Path) -> None:
    sha, file = private(host, OLD), tmp_path / "password"
    file.write_text(OLD)
    mine = repository(host, file)
    rotation = Rotation(Settings((Target("shop", mine, ("shop",)),)), {}, needs={"git"})
    with closing(GitHost(mine, rotation.read)) as git:
        assert git.head(following(MAIN)).commit == sha
        host.accounts = {"deployer": NEW}
        with pytest.raises(AccessDenied, match="401") as caught:
            git.head(following(MAIN))
        assert "CANARY" not in str(caught.value)
        file.write_text(NEW)
        assert git.head(following(MAIN)).commit == sha
        file.unlink()
        assert git.head(following(MAIN)).commit == sha, "a file that is gone for a moment takes nothing away"
