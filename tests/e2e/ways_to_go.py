"""Every way in which a run has live objects go: two commits of a shop, what happens live between them, and what is gone then."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from handler.config.settings import RecreateSettings
from handler.model.rollout import ARGO_HOOK, HELM_HOOK
from handler.rollout.hook_annotations import ARGO_POLICY
from tests.e2e import rollouts
from tests.e2e.documents import Document, claim, config_map, definition, deployment, job, offer, owner, stateful_set
from tests.e2e.one_target import Shop
from tests.e2e.rollouts import group, step
from tests.patience import until

Made = Callable[[Shop], list[Document]]
REST = ("rest-1", "rest-2", "rest-3")
"""What stays in every way, so that no guard but the one that counts holds."""


@dataclass(frozen=True)
class Way:
    """`first`, `then`: what two commits declare beside REST; `between`: what happens live. `lost`: names of the objects that go, counted.

    `free`: those that go and aren't counted; `rollout`: the second commit's steps, by name of their objects; `kept`: prune off leaves the
    objects alone, where it refuses else; `foretold`: the comment on a pull request names them, too; `settings`: of the target.
    `beside`: what else is looked at, which a controller makes; `kinds`: what `prune.kinds` names.
    """

    first: Made
    then: Made
    lost: frozenset[str]
    between: Callable[[Shop], object] = lambda _: None
    free: frozenset[str] = frozenset()
    rollout: Mapping[str, str] = field(default_factory=dict)
    kept: bool = False
    foretold: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    beside: Made = lambda _: []
    kinds: tuple[str, ...] = ()

    def commit(self, shop: Shop, documents: list[Document], *, first: bool = False) -> str:
        """Commit these documents, with the Rollout of those that have a step; the first commit creates them."""
        stepped = [one for one in documents if one["metadata"]["name"] in self.rollout]
        steps = [step("CreateOrUpdate" if first else self.rollout[one["metadata"]["name"]], one) for one in stepped]
        if steps:
            shop.work.write(rollouts.ROLLOUT, json.dumps(rollouts.document(group("all", *steps)), indent=1))
        return shop.declare(*documents, *(config_map(shop.name, name) for name in REST))


def owned(kind: str, name: str, by: str, *, by_us: bool = False) -> Callable[[Shop], None]:
    """Let a live object be owned by a live ConfigMap, as an operator does; `by_us`: since git says so."""

    def done(shop: Shop) -> None:
        owners = [owner(shop.live(config_map(shop.name, by)))]
        if by_us:
            shop.push(config_map(shop.name, name, ownerReferences=owners), *(config_map(shop.name, each) for each in (by, *REST)))
            shop.applied()
            return
        patch = json.dumps({"metadata": {"ownerReferences": owners}})
        shop.kubectl.run("patch", kind, name, "-n", shop.name, "--field-manager", "operator", "-p", patch)

    return done


def ended(name: str) -> Callable[[Shop], object]:
    """Wait until a Job has ended."""
    return lambda shop: until(lambda: bool(((shop.live(job(shop.name, name)) or {}).get("status") or {}).get("completionTime")))


def immutable(shop: Shop, value: str, **metadata: Any) -> Document:
    return {**config_map(shop.name, "old", {"key": value}, **metadata), "immutable": True}


def selecting(shop: Shop, value: str) -> Document:
    """A Deployment whose selector, which can't be changed, says this."""
    made = deployment(shop.name, "old", annotations={"anneal.dev/recreate": "allow"})
    made["spec"]["selector"]["matchLabels"] = made["spec"]["template"]["metadata"]["labels"] = {"app": value}
    return made


def scoped(shop: Shop, scope: str) -> Document:
    """A kind of this scope, which can't be changed."""
    made = definition(shop.group)
    made["spec"]["scope"] = scope
    return made


def hooked(made: Document, phase: str, policy: str = "") -> Document:
    """The same object, which is a hook."""
    made["metadata"]["annotations"] = {ARGO_HOOK: phase} | ({ARGO_POLICY: policy} if policy else {})
    return made


def database(shop: Shop, replicas: int, **policy: str) -> Document:
    """A StatefulSet with a claim a replica."""
    made = stateful_set(shop.name, "db")
    claims = [{"metadata": {"name": "data"}, "spec": claim(shop.name, "data")["spec"] | {"storageClassName": "none"}}]
    made["spec"] |= {"replicas": replicas, "podManagementPolicy": "Parallel", "volumeClaimTemplates": claims}
    made["spec"]["persistentVolumeClaimRetentionPolicy"] = policy
    return made


def scaler(shop: Shop, most: int) -> Document:
    """A HorizontalPodAutoscaler of the StatefulSet."""
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}, "maxReplicas": most}
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    return kind | {"metadata": {"name": "scaler", "namespace": shop.name}, "spec": spec}


def claims(count: int) -> Made:
    return lambda shop: [claim(shop.name, f"data-db-{number}") for number in range(count)]


def claimed(count: int, *, owned: bool) -> Callable[[Shop], None]:
    """Wait until the claims are there, and go with the StatefulSet where its policy says so."""

    def done(shop: Shop) -> None:
        def live() -> list[Document]:
            found = [shop.live(each) for each in claims(count)(shop)]
            return [each for each in found if each and bool(each["metadata"].get("ownerReferences")) is owned]

        until(lambda: len(live()) == count)

    return done


def orphaned(count: int) -> Callable[[Shop], None]:
    """Delete the StatefulSet alone, as people do who give its claims another size."""

    def done(shop: Shop) -> None:
        claimed(count, owned=False)(shop)
        shop.kubectl.run("delete", "statefulset", "db", "-n", shop.name, "--cascade=orphan")

    return done


WAYS = {
    "prune": Way(lambda s: [config_map(s.name, "old")], lambda _: [], frozenset({"old"}), kept=True),
    "immutable": Way(
        lambda s: [immutable(s, "1", annotations={"anneal.dev/recreate": "allow"})],
        lambda s: [immutable(s, "2", annotations={"anneal.dev/recreate": "allow"})],
        frozenset({"old"}),
    ),
    "selector": Way(lambda s: [selecting(s, "1")], lambda s: [selecting(s, "2")], frozenset({"old"})),
    "recreate.kinds": Way(
        lambda s: [immutable(s, "1")],
        lambda s: [immutable(s, "2")],
        frozenset({"old"}),
        settings={"recreate": RecreateSettings(kinds=("ConfigMap",))},
    ),
    "finished Job": Way(
        lambda s: [job(s.name, "old")],
        lambda s: [job(s.name, "old", "migrate:2")],
        frozenset(),
        ended("old"),
        free=frozenset({"old"}),
    ),
    "DeleteIfExist": Way(
        lambda s: [config_map(s.name, "old")],
        lambda s: [config_map(s.name, "old")],
        frozenset({"old"}),
        rollout={"old": "DeleteIfExist"},
        settings={"rollout": rollouts.ROLLOUT},
    ),
    "Recreate": Way(
        lambda s: [config_map(s.name, "old")],
        lambda s: [config_map(s.name, "old", {"key": "2"})],
        frozenset({"old"}),
        rollout={"old": "Recreate"},
        settings={"rollout": rollouts.ROLLOUT},
    ),
    "becomes a hook that is deleted": Way(
        lambda s: [config_map(s.name, "old"), deployment(s.name, "web")],
        lambda s: [
            hooked(config_map(s.name, "old"), "PostSync", "HookSucceeded"),
            hooked(deployment(s.name, "web"), "PreSync", "BeforeHookCreation,HookSucceeded"),
        ],
        frozenset({"old", "web"}),
    ),
    "becomes a hook": Way(
        lambda s: [config_map(s.name, "old"), job(s.name, "act")],
        lambda s: [
            hooked(config_map(s.name, "old"), "Sync"),
            job(s.name, "act", annotations={HELM_HOOK: "pre-install,pre-upgrade"}),
        ],
        frozenset({"old", "act"}),
        ended("act"),
    ),
    "owned by what goes": Way(
        lambda s: [config_map(s.name, "old"), config_map(s.name, "below")],
        lambda _: [],
        frozenset({"old", "below"}),
        owned("configmap", "below", "old"),
        kept=True,
    ),
    "declared and owned by what goes": Way(
        lambda s: [config_map(s.name, "old"), config_map(s.name, "below")],
        lambda s: [config_map(s.name, "below")],
        frozenset({"old", "below"}),
        owned("configmap", "below", "old"),
        kept=True,
    ),
    "owned until git drops its owner": Way(
        lambda s: [config_map(s.name, "old"), config_map(s.name, "below")],
        lambda s: [config_map(s.name, "below", {"key": "2"})],
        frozenset({"old"}),
        owned("configmap", "below", "old", by_us=True),
        kept=True,
    ),
    "claims of what goes": Way(
        lambda s: [database(s, 2, whenDeleted="Delete")],
        lambda _: [],
        frozenset({"db", "data-db-0", "data-db-1"}),
        claimed(2, owned=True),
        kept=True,
        beside=claims(2),
        kinds=("PersistentVolumeClaim",),
    ),
    "claims of what is scaled down": Way(
        lambda s: [database(s, 3, whenScaled="Delete")],
        lambda s: [database(s, 1, whenScaled="Delete")],
        frozenset({"data-db-1", "data-db-2"}),
        claimed(3, owned=False),
        beside=claims(3),
        kinds=("PersistentVolumeClaim",),
    ),
    "claims of pods that a new one takes over": Way(
        lambda s: [database(s, 3, whenScaled="Delete")],
        lambda s: [database(s, 1, whenScaled="Delete")],
        frozenset({"data-db-1", "data-db-2"}),
        orphaned(3),
        foretold=False,
        beside=claims(3),
        kinds=("PersistentVolumeClaim",),
    ),
    "claims above an autoscaler's maximum": Way(
        lambda s: [database(s, 3, whenScaled="Delete"), scaler(s, 3)],
        lambda s: [database(s, 3, whenScaled="Delete"), scaler(s, 1)],
        frozenset({"data-db-1", "data-db-2"}),
        claimed(3, owned=False),
        foretold=False,
        beside=claims(3),
        kinds=("PersistentVolumeClaim",),
    ),
    "definition made anew": Way(
        lambda s: [scoped(s, "Namespaced"), offer(s.group, s.name, "one")],
        lambda s: [scoped(s, "Cluster")],
        frozenset({"offers", "one"}),
        foretold=False,
        settings={"recreate": RecreateSettings(kinds=("CustomResourceDefinition.apiextensions.k8s.io",))},
    ),
}


def uids(shop: Shop, documents: list[Document]) -> dict[str, str]:
    """Return the uid of each object that lives, by its name, as kubectl sees it."""
    found = {document["metadata"]["name"].partition(".")[0]: _live(shop, document) for document in documents}
    return {name: live["metadata"]["uid"] for name, live in found.items() if live and "deletionTimestamp" not in live["metadata"]}


def _live(shop: Shop, document: Document) -> Document | None:
    with contextlib.suppress(AssertionError):  # its kind is served no longer
        return shop.live(document)
    return None
