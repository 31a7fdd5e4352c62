"""A Deployment in memory, and a commit whose canary is held beside it; each run looks once, and waits for nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from handler.app.build import Handler
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.state.record import State, StepRecord
from tests.fakes.apiserver.kinds import WORKLOADS
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import ONE, cluster, state_of
from tests.unit.engine.in_memory_cluster import ROLLED, InMemoryCluster

PLACE = "/apis/apps/v1/namespaces/shop/deployments"
WELL = {"observedGeneration": 1, "conditions": [{"type": "Available", "status": "True"}]}
MERGE = "application/merge-patch+json"


def deployment(image: str) -> dict[str, Any]:
    pod = {"metadata": {"labels": {"app": "api"}}, "spec": {"containers": [{"name": "api", "image": image}]}}
    spec = {"replicas": 4, "selector": {"matchLabels": {"app": "api"}}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api", "namespace": "shop"}, "spec": spec}


@dataclass
class CanaryScenario:
    """A Deployment that runs, a commit whose canary is held beside it for an hour; no run waits for it."""

    fake: InMemoryCluster
    old: str = ""
    new: str = ""

    @classmethod
    def held(cls) -> CanaryScenario:
        trial = cls(InMemoryCluster(cluster(served=WORKLOADS)))
        trial.old = trial.push("shop:1", canary=False)
        assert trial.fake.handler(ONE).run(Job("shop", "push")).outcome is Outcome.APPLIED
        trial.settle("api")
        trial.new = trial.push("shop:2")
        trial.holds()
        return trial

    def holds(self) -> None:
        """Let the canary come to its share, and be held there."""
        assert self.run("push").outcome is Outcome.WAITING
        assert self.mark.startswith("scale 0")
        self.settle("api-canary")
        assert self.run("tick").outcome is Outcome.WAITING
        assert self.mark.startswith("hold 0")

    # --- git
    def push(self, image: str, *, canary: bool = True, more: str = "") -> str:
        """Push the Deployment with this image; `more`: another document."""
        files = {"shop/api.yaml": json.dumps(deployment(image)), **({"shop/more.yaml": more} if more else {})}
        if canary:
            steps = [{"name": "api", "object": "api.yaml", "action": "Canary", "steps": [{"weight": 25, "for": "1h"}]}]
            head = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"}}
            files["rollout.yaml"] = json.dumps({**head, "spec": {"groups": [{"name": "main", "steps": steps}]}})
        sha = self.fake.host.commit(files)
        self.fake.host.push(sha)
        return sha

    def broken(self) -> str:
        return self.push("shop:3", more="kind: [Broken")

    # --- runs
    @property
    def handler(self) -> Handler:
        handler = self.fake.handler(ROLLED)
        deps = replace(handler.dependencies("shop"), patience=0.0)
        handler.dependencies = lambda name: {"shop": deps}[name]  # type: ignore[method-assign]  # the seam
        return handler

    def run(self, trigger: str = "tick", **about: Any) -> Result:
        return self.handler.run(Job("shop", trigger, **about))

    # --- what is there
    def live(self, name: str) -> dict[str, Any] | None:
        status, body = self.fake.server.answer(Asked("GET", f"{PLACE}/{name}", {}, None, "", ""))
        return body if status == 200 else None

    def change(self, name: str, change: dict[str, Any]) -> None:
        self.fake.server.must(Asked("PATCH", f"{PLACE}/{name}", {"fieldManager": "jo"}, change, MERGE, ""))

    def settle(self, name: str) -> None:
        """Its controller has done what it asks for."""
        live = self.live(name)
        assert live
        count = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), live["spec"]["replicas"])
        self.change(name, {"status": {**WELL, **count}})

    @property
    def state(self) -> State:
        return state_of(self.handler)

    @property
    def step(self) -> StepRecord:
        assert self.state.rollout
        return self.state.rollout.steps[0]

    @property
    def mark(self) -> str:
        return self.step.mark

    @property
    def image(self) -> str:
        live = self.live("api")
        return str(live["spec"]["template"]["spec"]["containers"][0]["image"]) if live else ""
