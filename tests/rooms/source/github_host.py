"""GitHub on loopback: its API, its git host with one private repository, and an app that may read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from handler.config.git_settings import GitHubAppAuth, Repository, RepositoryAuth, SecretRef
from handler.source.git_host import GitHost
from handler.source.github_app import GitHubApp
from handler.source.host_limits import HostLimits
from handler.source.signin import from_environment
from infra.githost import Host, Work
from tests.rooms.source.github_api import APP, INSTALLATION, GitHubApi
from tests.rooms.source.open_repository import PATIENT


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

    def opened(self, changes: Mapping[str, object] | None = None, limits: HostLimits = PATIENT) -> closing[GitHost]:
        return closing(GitHost(Repository(self.url, auth=RepositoryAuth(github_app=self.auth(**changes or {}))), limits=limits))

    def app(self, clock: Clock) -> GitHubApp:
        return GitHubApp(self.auth(), self.url, from_environment, "", PATIENT, clock)


@contextmanager
def hub_of(host: Host, directory: Path) -> Iterator[Hub]:
    """Make the repository and serve the API; the git host takes the newest token alone."""
    work = Work.of(host, "acme/shop")
    work.write("app.yaml", "kind: ConfigMap\n")
    sha = work.commit("First")
    work.push()
    host.accounts = {"x-access-token": "none yet"}
    with GitHubApi(directory) as api:
        api.issued = lambda token: host.accounts.update({"x-access-token": token})
        yield Hub(api, host, sha, host.url_of("acme/shop"))
