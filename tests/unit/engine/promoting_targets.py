"""Targets that follow each other, on a cluster and a git host in memory, by a clock that tests move."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from handler.app.build import Handler
from handler.config.git_settings import Promoted, Revision
from handler.config.settings import Settings, Target
from handler.model.event import Job
from handler.model.names import Identity
from handler.model.result import Outcome, Result
from handler.state.heartbeat import Heartbeat, Signs
from handler.state.record import State, TargetHealth
from handler.state.record_format import stamp
from tests.fakes.apiserver import ApiServer
from tests.fakes.apiserver.connection import Call, Reply
from tests.fakes.engine import SHOP, cluster, engine, state_of
from tests.fakes.git_host import GitHost

MINUTE = 60.0
SOAK = 30 * MINUTE


def following(name: str, *sources: str, soak: float = SOAK, **more: Any) -> Target:
    return Target(name, SHOP, (name,), path=name, revision=Revision(promoted=Promoted(sources, soak)), **more)


STAGING = Target("staging", SHOP, ("staging",), path="staging")
PROD = following("prod", "staging")


@dataclass
class Line:
    """Targets in a line; `now` is what their clocks show. `before` sees each request to the cluster."""

    targets: tuple[Target, ...] = (STAGING, PROD)
    now: float = field(default_factory=lambda: float(int(time.time())))
    server: ApiServer = field(init=False)
    host: GitHost = field(default_factory=GitHost)
    before: Callable[[Call], None] = lambda call: None
    handler: Handler = field(init=False)

    def __post_init__(self) -> None:
        self.server = cluster(*(target.name for target in self.targets))
        self.restart()

    def restart(self) -> None:
        """Begin with a fresh handler."""
        self.handler = engine(self.server, self.host, Settings(targets=self.targets), way=self._way, clock=lambda: self.now)

    def _way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        self.before(call)
        return do()

    def commit(self, value: str, paths: tuple[str, ...] = (), **extra: str) -> str:
        """Push a commit that changes what these targets read, all unless some are named; another file in any case."""
        before = dict(self.host.commits.get(self.host.head, {}))
        for target in self.targets:
            if not paths or target.path in paths:
                metadata = {"name": "own", "namespace": target.name}
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}
                before[f"{target.path}/own.json"] = json.dumps(body)
        sha = self.host.commit({**before, "elsewhere": value, **extra})
        self.host.push(sha)
        return sha

    def proven(self, value: str) -> str:
        """Push a commit that staging applies and keeps healthy for long enough."""
        sha = self.commit(value)
        self.done("staging")
        self.later(SOAK)
        return sha

    def later(self, seconds: float) -> None:
        self.now += seconds

    def run(self, name: str, trigger: str = "tick", **fields: Any) -> Result:
        return self.handler.run(Job(name, trigger, **fields))

    def done(self, name: str, trigger: str = "tick", **fields: Any) -> Result:
        """Run a target, which must end in sync."""
        result = self.run(name, trigger, **fields)
        assert result.outcome in (Outcome.APPLIED, Outcome.UNCHANGED), result
        return result

    def state(self, name: str) -> State:
        return state_of(self.handler, name)

    def on(self, name: str = "prod") -> str:
        """Return the commit that a target has once a tick has looked at it."""
        self.done(name)
        return self.state(name).commit

    def fell_ill(self, name: str, state: str = "degraded") -> None:
        """Record what a watch has seen."""
        health = TargetHealth(state, stamp(self.now), stamp(self.now), (f"{name}/web: is {state}",))
        self.handler.store(self.handler.target(name)).update(lambda known: replace(known, health=health))

    def beat(self, watched: float = 0.0, names: Sequence[str] | None = None, server: str = "server") -> None:
        """Renew the heartbeat of a server that looks after these targets, all unless some are named: it watched so many seconds ago."""
        objects = self.handler.records(self.targets[0])
        objects.server_time = lambda: self.now  # type: ignore[method-assign]  # the clock of the API server
        looks = {target.name: 0.0 for target in self.targets} if names is None else dict.fromkeys(names, 0.0)
        Heartbeat(objects, "anneal-system", "default").renew(Signs(server, "1", looks, (watched, 180.0)))

    def value(self, name: str) -> str:
        """Return what lives."""
        stored = self.server.store.get(Identity("", "ConfigMap", name, "own"))
        return str(stored.body["data"]["value"]) if stored else ""


def promoted_once() -> Line:
    """Return a line whose production is on the first commit, which staging has kept healthy for long enough."""
    made = Line()
    made.proven("1")
    made.done("prod")
    return made
