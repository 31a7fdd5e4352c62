"""Two targets of one repository on a cluster and a git host in memory; everything between is the real engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from handler.app.build import Handler
from handler.config.settings import Settings, Target
from handler.model.event import Job
from handler.model.names import IDENTITY, PART_OF, Identity, applyset_id, state_name
from handler.model.plan import Change
from handler.model.result import Outcome, Result
from tests.fakes.apiserver import ApiServer
from tests.fakes.apiserver.connection import Call, Reply
from tests.fakes.engine import SHOP, cluster, engine
from tests.fakes.git_host import GitHost

X = Identity("", "ConfigMap", "shop", "x")
A = Target("a", SHOP, ("shop",), path="a")
B = Target("b", SHOP, ("shop",), path="b")


def document(name: str, value: str = "1", annotations: Mapping[str, str] | None = None, **more: Any) -> str:
    metadata = {"name": name, "namespace": "shop", **({"annotations": dict(annotations)} if annotations else {})}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": value}, **more})


@dataclass
class Bench:
    """Two targets that each declare an object of their own always. `deleted`: what was asked to go."""

    targets: tuple[Target, ...] = (A, B)
    server: ApiServer = field(default_factory=cluster)
    host: GitHost = field(default_factory=GitHost)
    sent: list[tuple[str, str]] = field(default_factory=list)
    before: Callable[[Call], None] = lambda call: None
    handler: Handler = field(init=False)

    def __post_init__(self) -> None:
        self.configure()

    def configure(self, **changes: dict[str, Any]) -> None:
        """Change settings of targets, by name."""
        self.targets = tuple(replace(each, **changes.get(each.name, {})) for each in self.targets)
        self.handler = engine(self.server, self.host, Settings(targets=self.targets), way=self._way)

    def _way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        self.before(call)
        self.sent.append((call.asked.method, call.asked.path))
        return do()

    def push(self, extra: Mapping[str, str] = {}, **declared: dict[str, str]) -> str:
        """Push a commit; `a={"x": document("x")}` declares x in the path of a. `extra`: other files."""
        own = {f"{target.path}/own.json": document(f"own-{target.name}") for target in self.targets}
        files = {f"{path}/{name}.json": text for path, found in declared.items() for name, text in found.items()}
        sha = self.host.commit({**own, **files, **extra})
        self.host.push(sha)
        return sha

    def run(self, name: str, trigger: str = "push", **fields: Any) -> Result:
        return self.handler.run(Job(name, trigger, **fields))

    def applied(self, *names: str, trigger: str = "push") -> None:
        for name in names:
            result = self.run(name, trigger)
            assert result.outcome in (Outcome.APPLIED, Outcome.UNCHANGED), result

    def live(self, identity: Identity = X) -> dict[str, Any] | None:
        stored = self.server.store.get(identity)
        return stored.body if stored else None

    def uid(self) -> str:
        live = self.live()
        assert live
        return str(live["metadata"]["uid"])

    def owner(self) -> str:
        live = self.live()
        assert live
        name = str(live["metadata"]["annotations"][IDENTITY]).partition(":")[0]
        assert live["metadata"]["labels"][PART_OF] == applyset_id(state_name(name), "anneal-system")
        return name

    def later(self, name: str, seconds: float = 400.0) -> Handler:
        """Let the clock of a target's runs be late."""
        deps = self.handler.dependencies(name)
        now = deps.clock() + seconds
        self.handler._made["dependencies", name] = replace(deps, clock=lambda: now)
        return self.handler


def change_of(result: Result, identity: Identity = X) -> Change:
    assert result.plan, result
    return next(change for change in result.plan.changes if change.identity == identity)
