"""A target as a worker watches it, with what its record declares."""

from __future__ import annotations

from typing import Any

from handler.config.git_settings import Repository
from handler.config.settings import Impersonate, Target
from handler.engine.health.custom_health import CustomHealth, no_expressions
from handler.model.names import IDENTITY, PART_OF, Identity, applyset_id
from handler.plan.inventory import Membership, TargetMarks
from handler.state.record import State, TargetHealth
from handler.worker.health_watch.watched_target import WatchedTarget
from tests.unit.state.samples import blank, sha

API = Identity("apps", "Deployment", "shop", "api")
WEB = Identity("apps", "Deployment", "shop", "web")
CLOCK = 1_900_000_000.0


def target(name: str = "shop", account: str = "") -> Target:
    impersonate = Impersonate(account) if account else None
    return Target(name, Repository(f"https://git.example.com/{name}.git"), ("shop",), impersonate=impersonate)


def declaring(*identities: Identity, **parts: Any) -> State:
    """Return a record of these objects."""
    return blank(commit=sha(), declared=tuple(identities), health=TargetHealth("healthy", apart=()), **parts)


def watched(name: str = "shop", *identities: Identity, account: str = "", custom: CustomHealth | None = None) -> WatchedTarget:
    ours = Membership(TargetMarks(name, applyset_id(f"anneal-{name}", "anneal-system")))
    made = WatchedTarget(target(name, account), ours, lambda: CLOCK, custom or no_expressions())
    made.read(declaring(*identities), "1")
    return made


def live(
    of: WatchedTarget, *, ready: int, identity: Identity = API, uid: str = "u-1", generation: int = 1, version: str = "7"
) -> dict[str, Any]:
    """Return a Deployment of one replica as it lives."""
    metadata = {
        "name": identity.name,
        "namespace": identity.namespace,
        "uid": uid,
        "generation": generation,
        "resourceVersion": version,
        "labels": {PART_OF: of.ours.marks.applyset},
        "annotations": {IDENTITY: identity.mark(of.target.name)},
    }
    conditions = [{"type": "Available", "status": "True" if ready else "False"}]
    status = {
        "conditions": conditions,
        "observedGeneration": generation,
        "replicas": 1,
        "updatedReplicas": 1,
        "readyReplicas": ready,
        "availableReplicas": ready,
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": 1}, "status": status}
