"""How tests open a repository: settings, a secret that must never be seen, short limits."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from handler.config.git_settings import BasicAuth, Repository, RepositoryAuth, Revision, SecretRef, Tls
from handler.source.git_host import GitHost
from handler.source.host_limits import HostLimits
from tests.patience import PATIENCE

CANARY = "canary-5f2c9b-password"
PATIENT = HostLimits(connect=PATIENCE, read=PATIENCE, total=3600)
"""No busy machine ends a request by these: where time is to end one, its test says how soon."""


def following(ref: str) -> Revision:
    """Return what follows a branch or tag, by its full name."""
    _, kind, name = ref.split("/", 2)
    return Revision(tag=name) if kind == "tags" else Revision(branch=name)


@dataclass(frozen=True)
class Secret:
    """A password as the configuration room hands it over."""

    value: str = CANARY

    def reveal(self) -> str:
        return self.value


def opened(url: str, *, limits: HostLimits = PATIENT, secret: Secret | None = None, ca_file: str = "") -> closing[GitHost]:
    """Open a repository for a `with` statement."""
    auth = RepositoryAuth(basic=BasicAuth("deployer", SecretRef(env="GIT_TOKEN"))) if secret else RepositoryAuth()
    return closing(GitHost(Repository(url, auth=auth, tls=Tls(ca_file)), lambda _: secret or Secret(), limits))
