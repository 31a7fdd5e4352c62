"""A git password that is rotated while the worker runs: the host and the file change at different moments."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from handler.config.git_settings import BasicAuth, Repository, RepositoryAuth, Revision, SecretRef
from handler.config.remote_secrets import SecretClocks
from handler.config.secret_rotation import Rotation
from handler.config.settings import Settings, Target
from handler.model.errors import AccessDenied
from handler.source.git_host import GitHost
from infra.githost import Host, Work

MAIN = Revision(branch="main")
OLD, NEW = "CANARY-old-password", "CANARY-new-password"


@pytest.mark.usefixtures("waited_for")
def test_a_password_of_a_store_is_asked_for_again_when_the_host_refuses_it(host: Host) -> None:
    work = Work.of(host, "shop")
    work.write("app.yaml", "")
    work.commit("First")
    work.push()
    now, stored = [0.0], [OLD]
    host.accounts = {"deployer": OLD}
    repository = Repository(host.url_of("shop"), auth=RepositoryAuth(BasicAuth("deployer", SecretRef(aws_parameter="/git"))))
    settings = Settings((Target("shop", repository, ("shop",)),))
    rotation = Rotation(settings, {}, needs={"git"}, fetch=lambda _: stored[0], clocks=SecretClocks(lambda: now[0], lambda: now[0]))
    with closing(GitHost(repository, rotation.read, again=rotation.again)) as git:
        before = git.head(MAIN).commit
        host.accounts, stored[0] = {"deployer": NEW}, NEW
        now[0] = settings.secrets_interval / 2
        assert git.head(MAIN).commit == before


def test_the_present_password_is_used(host: Host, tmp_path: Path) -> None:
    work = Work.of(host, "shop")
    work.write("app.yaml", "")
    sha = work.commit("First")
    work.push()
    file = tmp_path / "password"
    file.write_text(OLD)
    host.accounts = {"deployer": OLD}
    repository = Repository(host.url_of("shop"), auth=RepositoryAuth(BasicAuth("deployer", SecretRef(file=str(file)))))
    rotation = Rotation(Settings((Target("shop", repository, ("shop",)),)), {}, needs={"git"})
    with closing(GitHost(repository, rotation.read)) as git:
        assert git.head(MAIN).commit == sha
        host.accounts = {"deployer": NEW}
        with pytest.raises(AccessDenied, match="401") as caught:
            git.head(MAIN)
        assert "CANARY" not in str(caught.value)
        file.write_text(NEW)
        assert git.head(MAIN).commit == sha
        file.unlink()
        assert git.head(MAIN).commit == sha, "a file that is gone for a moment takes nothing away"
