"""A shop whose one Deployment goes by canary, and the questions that tests ask about it."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import Any

from handler.model.event import Job
from handler.model.result import Result
from handler.state.record import StepRecord
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, deployment, service
from tests.e2e.one_target import Shop
from tests.e2e.rollouts import ROLLOUT, group, key_of
from tests.patience import PATIENCE, until

SEEN = "seen"
"""A label of the canary: by it a test lets go on what is held."""
LET_GO = {"fieldComparisons": {"expectedValues": [{"path": f"{{.metadata.labels.{SEEN}}}", "value": {"static": "yes"}}]}}

OLD, NEW, NEWER = "shop:1", "shop:2", "shop:3"


@dataclass
class Trial:
    """`pushed`: the newest commit."""

    shop: Shop
    pushed: str = ""

    @classmethod
    def of(cls, open_shop: Open, **settings: Any) -> Trial:
        """Open a shop whose Deployment runs four old pods; nothing is tried for it, since nothing ran before."""
        shop = open_shop(rollout=ROLLOUT, **settings)
        shop.create_namespace()
        trial = cls(shop)
        trial.push(OLD)
        shop.applied()
        assert (trial.canary, [(step.mark, step.outcome) for step in trial.steps()]) == (None, [("", "done")])
        return trial

    @property
    def key(self) -> str:
        return key_of(deployment(self.shop.name, "api"))

    def documents(self, image: str, replicas: int = 4) -> list[Document]:
        return [service(self.shop.name, "api"), deployment(self.shop.name, "api", image, replicas)]

    def push(self, image: str, steps: list[dict[str, Any]] | None = None, action: str = "Canary", **checks: Any) -> str:
        """Push the Deployment with this image and a Rollout whose step does this."""
        own = {"steps": steps or [{"weight": 25, "for": "0s"}]} if action == "Canary" else {}
        step = {"name": "api", "object": self.key, "action": action, **own, **checks}
        self.rollout(step)
        self.pushed = self.shop.push(*self.documents(image))
        return self.pushed

    def rollout(self, *steps: Document) -> None:
        """Write a Rollout whose steps run at once; the next push has it."""
        head = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "shop"}}
        body = {**head, "spec": {"groups": [group("main", *steps, parallel=len(steps) > 1)]}}
        self.shop.work.write(ROLLOUT, json.dumps(body, indent=1))

    # --- what lives
    def named(self, name: str) -> Document | None:
        return self.shop.live(deployment(self.shop.name, name))

    @property
    def stable(self) -> Document:
        found = self.named("api")
        assert found
        return found

    @property
    def canary(self) -> Document | None:
        return self.named("api-canary")

    def image(self, live: Document | None) -> str:
        return str(live["spec"]["template"]["spec"]["containers"][0]["image"]) if live else ""

    def pods(self) -> list[Document]:
        """Return the pods that run and aren't ending."""
        found = self.shop.kubectl("get", "pods", "-n", self.shop.name)["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") == "Running"]

    def behind_the_service(self) -> dict[str, int]:
        """Return how many ready addresses the Service has, by the image of their pods."""
        images = {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in self.pods()}
        slices = self.shop.kubectl("get", "endpointslices", "-n", self.shop.name, "-l", "kubernetes.io/service-name=api")["items"]
        ready = [each["targetRef"]["name"] for item in slices for each in item["endpoints"] or [] if each["conditions"].get("ready")]
        found: dict[str, int] = {}
        for name in ready:
            found[images.get(name, "?")] = found.get(images.get(name, "?"), 0) + 1
        return found

    def steps(self) -> list[StepRecord]:
        rollout = self.shop.state().rollout
        return list(rollout.steps) if rollout else []

    def mark(self) -> str:
        """Return what is remembered of the newest commit's canary."""
        rollout = self.shop.state().rollout
        return rollout.steps[0].mark if rollout and rollout.commit == self.pushed and rollout.steps else ""

    def holds(self, mark: str) -> None:
        """Wait until the canary stands so: `hold 0`."""
        until(lambda: self.mark().startswith(mark), lambda: str(self.shop.state().rollout))

    def let_go(self) -> None:
        """Let what is held go on."""
        self.shop.kubectl.run("label", "deployment", "api-canary", "-n", self.shop.name, "--overwrite", f"{SEEN}=yes")

    def assert_promoted(self, image: str) -> None:
        """The Deployment has its new pods, and nothing is left of the canary."""
        assert self.canary is None
        assert self.image(self.stable) == image
        self.shop.assert_converged()


@dataclass
class Running:
    """A run on a thread of its own."""

    thread: threading.Thread
    found: list[Result]

    @classmethod
    def of(cls, shop: Shop, job: Job | None = None) -> Running:
        found: list[Result] = []
        thread = threading.Thread(target=lambda: found.append(shop.handler.run(job or shop.job())), daemon=True)
        thread.start()
        return cls(thread, found)

    def result(self) -> Result:
        self.thread.join(PATIENCE)
        assert self.found, "the run hasn't ended"
        return self.found[0]


def owners(kind: str, shop: Shop) -> dict[str, str]:
    """Return, for each image, what kind and name controls the objects of a kind that have it."""
    found = {}
    for item in shop.kubectl("get", kind, "-n", shop.name)["items"]:
        spec = item["spec"]["template"]["spec"] if "template" in item["spec"] else item["spec"]
        (owner,) = item["metadata"]["ownerReferences"]
        found[str(spec["containers"][0]["image"])] = f"{owner['kind']}/{owner['name']}"
    return found
