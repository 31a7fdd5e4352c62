"""Incidents on the real control plane: how each comes about, what must be said of it, and what cures it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from handler.config.git_settings import Repository
from handler.config.settings import Target
from handler.render.sandbox import Sandbox
from infra.githost import Host, Work
from tests.e2e.documents import Document, claim, deployment, pods, service, stateful_set
from tests.e2e.one_target import PATH, Shop
from tests.e2e.workload_status import fated, made_ready
from tests.kubectl import Kubectl
from tests.patience import until

Act = Callable[[Shop], object]
Documents = Callable[[Shop], list[Document]]
_CLASS = "none-such"


def _nothing(_shop: Shop) -> None:
    return


@dataclass(frozen=True)
class Incident:
    """One row.

    `documents`: what git declares; `words`: all of them are said; `cure`: makes it well in the cluster. `prepare`: what is done to the
    cluster before; `first`: what git declares before that, and is well. `noted`: it is healthy, with a note.
    """

    name: str
    documents: Documents
    words: tuple[str, ...]
    cure: Act
    prepare: Act = _nothing
    first: Documents | None = None
    noted: bool = False


def _web(shop: Shop, **spec: Any) -> Document:
    """A Deployment of one pod, whose spec has these fields more."""
    made = deployment(shop.name, "web", replicas=1)
    made["spec"]["template"]["spec"] |= spec
    return made


def _faring(fate: str) -> Documents:
    return lambda shop: [fated(deployment(shop.name, "web", replicas=1), fate)]


def _ready(shop: Shop) -> None:
    made_ready(shop.kubectl, shop.name, "web")


def with_quota(shop: Shop, hard: str = "pods=0") -> None:
    """Make a quota, and wait until its controller has counted: till then the API server refuses with other words."""
    shop.kubectl.run("create", "quota", "none", "-n", shop.name, f"--hard={hard}")
    until(lambda: (shop.kubectl("get", "quota", "none", "-n", shop.name).get("status") or {}).get("hard"))


def _nudged(shop: Shop) -> None:
    """Have the controllers try again now, and not when their back-off is over."""
    shop.kubectl.run("annotate", "deployment", "web", "-n", shop.name, "tests.example.com/again=1")


def _without_quota(shop: Shop) -> None:
    shop.kubectl.run("delete", "quota", "none", "-n", shop.name)
    _nudged(shop)


def _with_account(shop: Shop) -> None:
    shop.kubectl.run("create", "serviceaccount", "clerk", "-n", shop.name)
    _nudged(shop)


def _with_node(shop: Shop) -> None:
    node = shop.kubectl("get", "nodes")["items"][0]["metadata"]["name"]
    shop.kubectl.run("label", "node", node, f"anneal.dev/{shop.name}=here")


def _claim(shop: Shop) -> Document:
    made = claim(shop.name, "data")
    made["spec"]["storageClassName"] = _CLASS
    return made


def _with_volume(shop: Shop) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": _CLASS,
        "hostPath": {"path": "/data"},
        "claimRef": {"namespace": shop.name, "name": "data"},
        "persistentVolumeReclaimPolicy": "Delete",
    }
    shop.kubectl.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": shop.name}, "spec": spec})


def _autoscaler(shop: Shop) -> Document:
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "elsewhere"}, "maxReplicas": 3}
    metadata = {"name": "web", "namespace": shop.name}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


def _with_target(shop: Shop) -> None:
    shop.kubectl.run("create", "deployment", "elsewhere", "-n", shop.name, "--image=shop:1")


def _on_delete(shop: Shop, image: str) -> Document:
    made = stateful_set(shop.name, "db")
    template = pods({"app": "db"}, image)
    made["spec"] |= {"replicas": 1, "updateStrategy": {"type": "OnDelete"}, "template": template}
    return made


def _without_old_pod(shop: Shop) -> None:
    shop.kubectl.run("delete", "pod", "db-0", "-n", shop.name)


def _balanced(shop: Shop) -> Document:
    made = service(shop.name, "outside")
    made["spec"]["type"] = "LoadBalancer"
    return made


def _with_address(shop: Shop) -> None:
    patch = json.dumps({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}})
    shop.kubectl.run("patch", "service", "outside", "-n", shop.name, "--subresource=status", "--type=merge", "-p", patch)


INCIDENTS: Sequence[Incident] = (
    Incident(
        "quota", lambda shop: [_web(shop)], ("Deployment/", "FailedCreate", "exceeded quota: none"), _without_quota, prepare=with_quota
    ),
    Incident("image", _faring("no-image"), ("pod web-", "ImagePullBackOff", "Warning Failed: “Failed to pull image: not found"), _ready),
    Incident("probe", _faring("never-ready"), ("pod web-", "Warning Unhealthy: “Readiness probe failed"), _ready),
    Incident(
        "scheduling",
        lambda shop: [_web(shop, nodeSelector={f"anneal.dev/{shop.name}": "here"})],
        ("pod web-", "Unschedulable: “0/1 nodes are available"),
        _with_node,
    ),
    Incident("crash", _faring("crash-loop"), ("pod web-", "container main", "CrashLoopBackOff", "ended with exit code 1"), _ready),
    Incident(
        "account",
        lambda shop: [_web(shop, serviceAccountName="clerk")],
        ("Deployment/", "FailedCreate", 'serviceaccount "clerk" not found'),
        _with_account,
    ),
    Incident(
        "claim",
        lambda shop: [_claim(shop)],
        ("PersistentVolumeClaim/", "is Pending", f'Warning ProvisioningFailed: “storageclass.storage.k8s.io "{_CLASS}" not found'),
        _with_volume,
        noted=True,
    ),
    Incident(
        "autoscaler",
        lambda shop: [_autoscaler(shop)],
        ("HorizontalPodAutoscaler", "FailedGetScale", 'deployments.apps "elsewhere" not found'),
        _with_target,
        noted=True,
    ),
    Incident(
        "on-delete",
        lambda shop: [_on_delete(shop, "db:2")],
        ("StatefulSet", "updates a pod only when that is deleted (OnDelete): 1 of 1 are older"),
        _without_old_pod,
        first=lambda shop: [_on_delete(shop, "db:1")],
        noted=True,
    ),
    Incident(
        "load balancer",
        lambda shop: [_balanced(shop)],
        ("Service/", "its load balancer has no address yet"),
        _with_address,
        noted=True,
    ),
)


def said(lines: Sequence[str], incident: Incident) -> bool:
    """Whether one line says all words of an incident."""
    return any(all(word in line for word in incident.words) for line in lines)


def shop_of(host: Host, sandbox: Sandbox, kubectl: Kubectl) -> Shop:
    """Make a shop of its own for an incident."""
    name = f"s-{secrets.token_hex(4)}"
    target = Target(name, Repository(url=host.url_of(name)), (name,), path=PATH)
    shop = Shop(name, Work.of(host, name), kubectl, sandbox, target)
    shop.create_namespace()
    return shop
