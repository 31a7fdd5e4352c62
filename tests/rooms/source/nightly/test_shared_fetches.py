"""What fifty targets of one repository ask of its host: real git over HTTP, real worker queue, a cluster in memory."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pytest

from handler.app.build import Handler
from handler.config.git_settings import BasicAuth, Repository, RepositoryAuth, Revision, SecretRef, Tls, WebhookSecrets
from handler.config.secrets import Secrets
from handler.config.settings import Settings, Target
from handler.model.event import Delivery, Job
from handler.model.result import Outcome, Result
from handler.queues.pending import Work as Asked
from handler.source.git_host import GitHost, SharedConnections
from handler.worker.worker import Worker
from infra.githost import Host, Work
from tests.fakes.apiserver import ApiServer, FakeConnection
from tests.fakes.clock import NEVER
from tests.fakes.sandbox import InProcess
from tests.fakes.worker_parts import parts_of
from tests.patience import PATIENCE

COUNT = 50
T = TypeVar("T")


@dataclass
class Fleet:
    """Fifty targets of one monorepo, deployed, and the worker they wait in."""

    host: Host
    work: Work
    handler: Handler
    settings: Settings
    worker: Worker = field(init=False)
    ends: dict[str, list[Result]] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self.worker = Worker(self.settings, parts_of(self._run, self.settings))
        self.worker._queue.start()

    def _run(self, job: Job, stop: threading.Event, _meanwhile: object = None) -> Result:
        result = self.handler.run(job, stop)
        with self._changed:
            self.ends.setdefault(job.target, []).append(result)
            self._changed.notify_all()
        return result

    def all(self, trigger: str, hint: str = "") -> list[Result]:
        """Ask for a run of every target at once; return how they ended."""
        self.ends.clear()
        self.host.requests.clear()
        heard = (Delivery("1", "github", "refs/heads/main", hint, "ann", ""),) if hint else ()
        now = time.monotonic()
        for target in self.settings.targets:
            self.worker._accept(Asked.of(Job(target.name, trigger, hint=hint, deliveries=heard, asked=now)))
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.ends) == COUNT, PATIENCE)
        assert all(len(each) == 1 for each in self.ends.values())
        return [each[0] for each in self.ends.values()]

    def asked(self) -> dict[str, int]:
        """Count what the host was asked for since then."""
        bodies = [request.body for request in self.host.requests if request.method == "POST"]
        return {command: sum(f"command={command}".encode() in body for body in bodies) for command in ("ls-refs", "fetch")}

    def push(self, path: str, text: str) -> str:
        self.work.write(path, text)
        sha = self.work.commit(f"Change {path}")
        self.work.push()
        return sha


def config_map(name: str, value: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})


def told_apart(url: str, number: int) -> Repository:
    """Name one repository as its targets may: asked alike, with webhooks of their own."""
    alias = (f"https://git-{number % 3}.example.invalid/mono",) if number % 3 else ()
    return Repository(url, aliases=alias, webhook=WebhookSecrets((SecretRef(env=f"HOOK_{number % 4}"),) if number % 4 else ()))


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with Host(tmp_path / "git") as host:
        work = Work.of(host, "mono")
        for number in range(COUNT):
            work.write(f"apps/a{number}/app.yaml", config_map(f"a{number}", "first"))
        work.commit("First")
        work.push()
        url = host.url_of("mono")
        targets = tuple(
            Target(f"a{number}", told_apart(url, number), ("default",), path=f"apps/a{number}", namespace="default")
            for number in range(COUNT)
        )
        settings = Settings(targets, interval=3600.0, drift_interval=NEVER)
        handler = Handler(settings, Secrets(), InProcess(), {})  # type: ignore[arg-type]  # its one method that is called
        connection = FakeConnection(ApiServer(time.time))
        handler._connection = lambda target: connection  # type: ignore[method-assign]  # the seam
        fleet = Fleet(host, work, handler, settings)
        first = fleet.all("tick")
        assert {result.outcome for result in first} == {Outcome.APPLIED}, first[0]
        yield fleet
        fleet.worker._queue.stop(PATIENCE)


def test_one_tick_asks_the_host_once(fleet: Fleet) -> None:
    assert {result.outcome for result in fleet.all("tick")} == {Outcome.UNCHANGED}
    assert fleet.asked() == {"ls-refs": 1, "fetch": 0}


def test_one_push_asks_once_and_fetches_once(fleet: Fleet) -> None:
    sha = fleet.push("README", "nothing that anybody renders\n")
    ends = fleet.all("push", sha)
    assert {(result.outcome, result.commit) for result in ends} == {(Outcome.UNCHANGED, sha)}
    assert fleet.asked() == {"ls-refs": 1, "fetch": 1}
    assert {result.commit for result in fleet.all("tick")} == {sha}
    assert fleet.asked() == {"ls-refs": 1, "fetch": 0}


def test_a_run_that_writes_asks_for_the_head_again_under_the_lease(fleet: Fleet) -> None:
    sha = fleet.push("apps/a7/app.yaml", config_map("a7", "second"))
    ends = {result.target: result for result in fleet.all("push", sha)}
    assert {name for name, result in ends.items() if result.outcome is Outcome.APPLIED} == {"a7"}
    assert fleet.asked()["ls-refs"] == 2
    assert fleet.asked()["fetch"] == 2, "the commit's trees, and the one blob that changed"


def test_a_push_is_seen_although_a_tick_has_asked_a_moment_ago(fleet: Fleet) -> None:
    fleet.all("tick")
    sha = fleet.push("README", "pushed after the tick\n")
    assert {result.commit for result in fleet.all("push", sha)} == {sha}


def test_repositories_with_other_credentials_or_ca_share_no_fetch(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.touch()
    plain = Repository("https://git.example.invalid/mono")
    basic = RepositoryAuth(basic=BasicAuth("deployer", SecretRef(env="TOKEN")))
    repositories = (plain, replace(plain, auth=basic), replace(plain, tls=Tls(str(authority))), replace(plain, url=f"{plain.url}.git"))
    targets = tuple(Target(f"a{number}", each, ("default",)) for number, each in enumerate(repositories))
    handler = Handler(Settings(targets), Secrets(), InProcess(), {})  # type: ignore[arg-type]  # its one method that is called
    assert len({id(handler.source(target)) for target in targets}) == len(repositories)


def test_many_repositories_of_a_host_take_its_connections_in_turn(host: Host) -> None:
    """Each is asked and fetched by its own name; what one keeps open serves the next."""
    shared = SharedConnections()
    found = {}
    for number in range(12):
        work = Work.of(host, f"shop-{number}")
        work.write("app.yaml", f"# {number}\n")
        found[number] = work.commit("First")
        work.push()
    before = host.connections
    for number, sha in found.items():
        repository = GitHost(Repository(host.url_of(f"shop-{number}")), shared=shared)
        assert repository.head(Revision(branch="main")).commit == sha
        assert repository.fetch(sha).commit.sha == sha
    assert host.connections - before == 1


def test_repositories_with_another_ca_have_their_own_connections(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.touch()
    shared = SharedConnections()
    plain = shared.pools("https", "git.example.com", "")
    assert shared.pools("https", "GIT.example.com", "") is plain
    for others in (("https", "git.example.com", str(authority)), ("http", "git.example.com", ""), ("https", "git.example.com:8443", "")):
        assert shared.pools(*others) is not plain
