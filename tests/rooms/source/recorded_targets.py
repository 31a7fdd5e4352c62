"""Many recorded targets without having run them: their states are written as a run would leave them, by the state room itself."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from handler.app.build import Handler
from handler.config.git_settings import Repository, Revision, SecretRef
from handler.config.secrets import Secrets
from handler.config.settings import Cluster, Settings, Target
from handler.config.settings_digest import settings_digest
from handler.model.event import Job
from handler.model.result import Result
from handler.state.record import RunStatus, State
from handler.state.record_format import stamp
from infra.githost import Host, Work
from tests.fakes.apiserver import ApiServer, Call, FakeConnection
from tests.fakes.clock import NEVER
from tests.fakes.sandbox import InProcess
from tests.patience import PATIENCE

PATH = "deploy"
_APPLIED = RunStatus("applied", "2026-03-01T12:00:00Z")
MANIFEST = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}, "data": {"key": "value"}}'


@dataclass
class Place:
    """A cluster in memory, and what it was asked for. `hold`: called before each answer; it may wait, and raise."""

    server: ApiServer = field(default_factory=lambda: ApiServer(time.time))
    calls: list[Call] = field(default_factory=list)
    hold: Callable[[], None] | None = None

    def connection(self) -> FakeConnection:
        return FakeConnection(self.server, self._way)

    def _way(self, call: Call, do: Callable[[], Any]) -> Any:
        self.calls.append(call)
        if self.hold:
            self.hold()
        return do()

    def asked(self) -> Counter[str]:
        """Count LISTs, and reads of single states."""
        paths = [call.asked.path for call in self.calls if call.asked.method == "GET"]
        states = [path for path in paths if "/configmaps" in path]
        return Counter("list" if path.endswith("/configmaps") else "state" for path in states)


@dataclass
class Recorded:
    """Targets that are all recorded at their heads. `places`: by cluster; `commits`: by repository."""

    host: Host
    settings: Settings
    places: dict[str, Place]
    works: dict[str, Work]
    commits: dict[str, str]
    _connections: dict[str, FakeConnection] = field(default_factory=dict)

    def handler(self) -> Handler:
        """Return a handler that has seen nothing yet."""
        handler = Handler(self.settings, Secrets(), InProcess(), {})  # type: ignore[arg-type]  # its one method that is called
        handler._connection = self._connection  # type: ignore[method-assign]  # the seam
        return handler

    def _connection(self, target: Target) -> FakeConnection:
        assert target.cluster.kubeconfig is not None
        name = target.cluster.kubeconfig.file
        if name not in self._connections:
            self._connections[name] = self.places[name].connection()
        return self._connections[name]

    def target(self, name: str) -> Target:
        found = self.settings.target(name)
        assert found is not None
        return found

    def state(self, target: Target) -> State:
        """Return what a run would have recorded at the head."""
        blank = self.handler().store(target).blank(self.handler().cluster_uid(target))
        url = target.repository.url
        applied = replace(blank, repository=url, commit=self.commits[url], reads="d" * 64, status=_APPLIED)
        return replace(applied, settings=settings_digest(target))

    def change(self, name: str, **parts: Any) -> None:
        """Write other parts into a target's record, as a run or a person does."""
        self.handler().store(self.target(name)).update(lambda state: replace(state, **parts))

    def forget(self) -> None:
        """Begin to count."""
        self.host.requests.clear()
        for place in self.places.values():
            place.calls.clear()

    def looks(self) -> int:
        """Return how often the git host was asked for refs."""
        return sum(b"command=ls-refs" in request.body for request in self.host.requests if request.method == "POST")

    def ticks(self) -> list[Job]:
        now = time.monotonic()
        return [Job(target.name, "tick", asked=now) for target in self.settings.targets]


def recorded(host: Host, count: int, repositories: int, clusters: Sequence[str], **settings: Any) -> Recorded:
    """Make targets t0, t1, …, dealt out to repositories and clusters in turn, and record each at its head."""
    works = {host.url_of(f"repo-{number}"): Work.of(host, f"repo-{number}") for number in range(repositories)}
    commits = {}
    for url, work in works.items():
        work.write(f"{PATH}/made.json", MANIFEST)
        commits[url] = work.commit("First")
        work.push()
    urls = sorted(works)
    targets = tuple(
        Target(
            f"t{number}",
            Repository(urls[number % repositories]),
            ("default",),
            path=PATH,
            namespace="default",
            revision=Revision(branch="main"),
            cluster=Cluster(kubeconfig=SecretRef(file=clusters[number % len(clusters)])),
        )
        for number in range(count)
    )
    found = Recorded(host, Settings(targets, drift_interval=NEVER, **settings), {name: Place() for name in clusters}, works, commits)
    handler = found.handler()
    for target in targets:
        handler.store(target).create(found.state(target))
    found.forget()
    return found


@dataclass
class Told:
    """What a survey reports, awaited."""

    results: dict[str, Result | None] = field(default_factory=dict)
    mute: dict[str, str] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self, job: Job, result: Result | None, mute: str) -> None:
        with self._changed:
            assert job.target not in self.results, "told twice"
            self.results[job.target], self.mute[job.target] = result, mute
            self._changed.notify_all()

    def wait(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.results) >= count, PATIENCE), len(self.results)

    @property
    def quiet(self) -> set[str]:
        return {name for name, result in self.results.items() if result}

    @property
    def runs(self) -> set[str]:
        return {name for name, result in self.results.items() if result is None}


def soon(seconds: float) -> str:
    return stamp(time.time() + seconds)
