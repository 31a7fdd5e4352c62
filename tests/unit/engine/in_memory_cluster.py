"""A cluster and a git host in memory, and a Rollout over ConfigMaps that has every plain action; each request may meet something."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from handler.app.build import Handler
from handler.config.settings import Settings
from handler.model.event import Job
from handler.model.result import Outcome, Result
from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.connection import Reply, Way, straight
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import ONE, cluster, engine, state_of
from tests.fakes.git_host import GitHost

ROLLED = replace(ONE, targets=(replace(ONE.targets[0], rollout="rollout.yaml"),))
MAPS = "/api/v1/namespaces/shop/configmaps"
DONE = (Outcome.APPLIED, Outcome.UNCHANGED)


def forbidden(why: str) -> Reply:
    """Return how the API server refuses a ConfigMap."""
    said = f'configmaps "x" is forbidden: {why}'
    return 403, {"kind": "Status", "code": 403, "status": "Failure", "reason": "Forbidden", "message": said}, {}


NO_ROOM = forbidden("exceeded quota: tight, requested: configmaps=1, used: configmaps=9, limited: configmaps=9")


@dataclass
class InMemoryCluster:
    """One cluster and one git host, and what was done on the cluster."""

    server: ApiServer = field(default_factory=cluster)
    host: GitHost = field(default_factory=GitHost)
    deleted: Counter[str] = field(default_factory=Counter)
    written: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    meet: Way = straight

    def way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        """Do one call; count what is deleted, by name and uid."""

        def done() -> Reply:
            reply = do()
            with self.lock:
                if call.writes and call.asked.path.startswith(f"{MAPS}/") and reply[0] < 300:
                    name = call.asked.path.rpartition("/")[2]
                    self.written.append(f"{call.asked.method} {name}")
                    if call.asked.method == "DELETE":
                        self.deleted[f"{name} {call.asked.body['preconditions']['uid']}"] += 1
            return reply

        return self.meet(call, done)

    def handler(self, settings: Settings = ROLLED) -> Handler:
        return engine(self.server, self.host, settings, way=self.way)

    def run(self, trigger: str = "push", **about: Any) -> Result:
        return self.handler().run(Job("shop", trigger, **about))

    # --- git
    def push(self, maps: Mapping[str, str], *groups: dict[str, Any]) -> str:
        """Push a commit with these ConfigMaps and these groups."""
        files = {f"shop/{name}.yaml": json.dumps(config_map(name, value)) for name, value in maps.items()}
        body = {
            "apiVersion": "workflow.kubernetes.io/v1alpha1",
            "kind": "Rollout",
            "metadata": {"name": "r"},
            "spec": {"groups": [*groups]},
        }
        sha = self.host.commit({**files, **({"rollout.yaml": json.dumps(body)} if groups else {})})
        self.host.push(sha)
        return sha

    # --- cluster
    def live(self, name: str) -> dict[str, Any] | None:
        status, body = self.server.answer(Asked("GET", f"{MAPS}/{name}", {}, None, "", ""))
        return body if status == 200 else None

    def data(self, *names: str) -> list[str | None]:
        found = [self.live(name) for name in names]
        return [body["data"]["key"] if body else None for body in found]

    def uid(self, name: str) -> str:
        body = self.live(name)
        return str(body["metadata"]["uid"]) if body else ""

    def free_lease(self) -> None:
        """The Lease of a killed holder runs out."""
        self.server.answer(Asked("DELETE", "/apis/coordination.k8s.io/v1/namespaces/anneal-system/leases/anneal-shop", {}, {}, "", ""))

    def outcomes(self) -> dict[str, str]:
        known = state_of(self.handler()).rollout
        assert known
        return {step.step: step.outcome for step in known.steps}


def config_map(name: str, value: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {"key": value}}


def step(action: str, name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "object": f"{name}.yaml", "action": action, **more}


def group(name: str, *steps: dict[str, Any], parallel: bool = False) -> dict[str, Any]:
    return {"name": name, "steps": list(steps), "parallel": parallel}


NAMES = ("free", "old", "anew", "kept", "changed", "same", "last")
GROUPS = (
    group("prepare", step("DeleteIfExist", "old"), step("Recreate", "anew")),
    group("at once", step("CreateIfNotExist", "kept"), step("CreateOrUpdate", "changed"), step("CreateOrUpdate", "same"), parallel=True),
    group("finish", step("CreateOrUpdate", "last")),
)


def planted() -> InMemoryCluster:
    """A cluster where everything lives, by an earlier commit without a Rollout."""
    fake = InMemoryCluster()
    fake.push(dict.fromkeys(NAMES, "1"))
    assert fake.handler(ONE).run(Job("shop", "push")).outcome in DONE
    fake.written.clear()
    return fake


def wanted(value: str = "2") -> dict[str, str]:
    return {**dict.fromkeys(NAMES, value), "same": "1"}


def assert_carried_out(fake: InMemoryCluster, before: Mapping[str, str]) -> None:
    assert fake.data(*NAMES) == ["2", None, "2", "1", "2", "1", "2"], (fake.data(*NAMES), fake.written)
    assert fake.uid("anew") != before["anew"], fake.written
    others = [name for name in NAMES if name not in ("old", "anew")]
    assert [(name, fake.uid(name)) for name in others] == [(name, before[name]) for name in others], (before, fake.written)
    assert set(fake.outcomes().values()) == {"done"}, (fake.outcomes(), fake.written)
    assert fake.deleted == {f"old {before['old']}": 1, f"anew {before['anew']}": 1}, fake.deleted


def refusing(chosen: Callable[[Asked], bool], status: int = 422, message: str = "spec: Invalid value") -> Way:
    def meet(call: Call, do: Callable[[], Reply]) -> Reply:
        if not chosen(call.asked):
            return do()
        return status, {"kind": "Status", "status": "Failure", "reason": "Invalid", "message": message, "code": status}, {}

    return meet


CANNOT = 'configmaps is forbidden: User "shop" cannot create resource "configmaps" in API group "" in the namespace "shop"'
