"""A shop's repository on a real sshd, and how a handler signs in there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from handler.config.git_settings import Repository, RepositoryAuth, SecretRef, SshAuth
from handler.source.git_host import GitHost
from handler.source.host_limits import HostLimits
from handler.source.signin import ReadSecret
from infra.gitwork import Work
from infra.sshhost import SshHost
from tests.rooms.source.open_repository import PATIENT


@dataclass
class Shop:
    """A host, a repository on it with one commit, and how a handler signs in. `known`: the text of the known_hosts file."""

    host: SshHost
    work: Work
    sha: str
    key: Path
    known: str

    def opened(
        self,
        *,
        url: str = "",
        key: Path | None = None,
        passphrase: str = "",
        limits: HostLimits = PATIENT,
        again: ReadSecret | None = None,
    ) -> closing[GitHost]:
        file = self.host.root / "known_hosts"
        file.write_text(self.known)
        secret = self.host.root / "passphrase"
        secret.write_text(passphrase)
        auth = SshAuth(SecretRef(file=str(key or self.key)), str(file), SecretRef(file=str(secret)) if passphrase else None)
        return closing(GitHost(Repository(url or self.host.url_of("shop"), auth=RepositoryAuth(ssh=auth)), limits=limits, again=again))


@contextmanager
def ssh_shop() -> Iterator[Shop]:
    """Run the host; afterwards nothing of an SSH connection may be left in this process."""
    with SshHost() as host:
        key = host.new_key("deployer")
        host.accept(key)
        work = Work.of(host, "shop")
        work.write("deploy/app.yaml", "kind: Deployment\n").write("other/app.yaml", "kind: Pod\n")
        sha = work.commit("First")
        work.push()
        yield Shop(host, work, sha, key, host.known_hosts())
    assert [thread for thread in threading.enumerate() if type(thread).__module__.startswith("paramiko")] == []
