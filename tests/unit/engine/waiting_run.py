"""A run that waits under an open attempt, on a cluster and a git host in memory."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from handler.app.build import Handler
from handler.engine.run import revision, transitions
from handler.engine.run.context import Round, RunContext
from handler.engine.run.plan_request import plan
from handler.model.event import Job
from tests.fakes.apiserver import ApiServer
from tests.fakes.git_host import GitHost, HostSource

HEAD = "head refs/heads/main"

NOON = "2026-03-01T12:00:00Z"


@dataclass
class Around:
    """A queue of the test's own."""

    jobs: tuple[Job, ...] = ()

    def asked(self) -> tuple[Job, ...]:
        return self.jobs

    def resting(self) -> AbstractContextManager[float]:
        return nullcontext(0.0)


@dataclass
class Scene:
    """A run that has opened its attempt for the head, and waits."""

    server: ApiServer
    host: GitHost
    handler: Handler
    asked: list[str] = field(default_factory=list)
    around: Around = field(default_factory=Around)
    stop: threading.Event = field(default_factory=threading.Event)
    commit: str = ""

    def wait(self, job: Job | None = None) -> RunContext:
        deps = self.handler.dependencies("shop")
        deps.preparer.source = HostSource(self.host, self.asked.append)
        run = RunContext(deps, job or Job("shop", "push"), self.stop, "shop.waits", Round(0.0), self.around)
        run.read()
        run.lease = deps.lock.acquire()
        revision.choose(run)
        inputs = run.inputs()
        state = transitions.opened(run.state, inputs, plan(run, inputs), run.lease.token, revision.pin_left(run), deps.clock())
        run.stored = deps.store.swap(run.stored, state, run.lease.token)
        self.asked.clear()
        return run
