"""An operator made with kopf and Anneal's `reconcile`: each Shop gets a Deployment, a ConfigMap, and a Till, which is a custom resource.

docs/operators-python.md says how it is run; crds.yaml beside it has both kinds.
"""

from __future__ import annotations

from typing import Any

import kopf
from kubernetes import client as models

from handler.library import Client, Lister, ReconcileFailed, reconcile
from handler.library.operator_client import ObjectLister

GROUP = "example.com"
KINDS = ("apps/v1/Deployment", "v1/ConfigMap", f"{GROUP}/v1/Till")
"""What shops are made of: what one doesn't ask for any more is deleted, though nothing of its kind is left."""


@kopf.on.startup()
def start(memo: kopf.Memo, **_: Any) -> None:
    """Find the cluster as kubectl does; one WATCH a kind serves all shops."""
    memo.client = Client()
    memo.lister = Lister(memo.client)


@kopf.on.cleanup()
def stop(memo: kopf.Memo, **_: Any) -> None:
    """End the WATCHes."""
    memo.lister.close()


@kopf.on.resume(GROUP, "v1", "shops")
@kopf.on.create(GROUP, "v1", "shops")
@kopf.on.update(GROUP, "v1", "shops")
@kopf.timer(GROUP, "v1", "shops", interval=30.0)
def shop(name: str, namespace: str, spec: kopf.Spec, memo: kopf.Memo, logger: kopf.Logger, **_: Any) -> None:
    """Make a shop's objects as its spec says: when it changes, and against drift."""
    bring(expected(name, namespace, dict(spec)), name, namespace, memo, logger)


@kopf.on.delete(GROUP, "v1", "shops")
def closed(name: str, namespace: str, memo: kopf.Memo, logger: kopf.Logger, **_: Any) -> None:
    """Delete a shop's objects with it."""
    bring([], name, namespace, memo, logger)


def bring(objects: list[Any], name: str, namespace: str, memo: kopf.Memo, logger: kopf.Logger) -> None:
    """Reconcile; what fails is tried again by kopf."""
    lister: ObjectLister = memo.lister
    try:
        done = reconcile(memo.client, objects, namespace, {"shop": name}, KINDS, lister, field_manager="shop-operator")
    except ReconcileFailed as failed:
        raise kopf.TemporaryError(str(failed), delay=5) from failed
    if done.changed:
        logger.info("created %d, updated %d, deleted %d", len(done.created), len(done.updated), len(done.deleted))


def expected(name: str, namespace: str, spec: dict[str, Any]) -> list[Any]:
    """Return a shop's objects: dicts and models as they come."""
    labels = {"shop": name}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    page = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"greeting": str(spec.get("greeting", "Welcome"))}}
    tills = [
        {"apiVersion": f"{GROUP}/v1", "kind": "Till", "metadata": {**metadata, "name": f"{name}-{till}"}, "spec": {"currency": till}}
        for till in spec.get("tills", ())
    ]
    container = models.V1Container(name="web", image=spec.get("image", "nginx:1.29"), ports=[models.V1ContainerPort(container_port=80)])
    front = models.V1Deployment(
        metadata=models.V1ObjectMeta(name=name, namespace=namespace, labels=labels),
        spec=models.V1DeploymentSpec(
            replicas=spec.get("replicas", 1),
            selector=models.V1LabelSelector(match_labels=labels),
            template=models.V1PodTemplateSpec(metadata=models.V1ObjectMeta(labels=labels), spec=models.V1PodSpec(containers=[container])),
        ),
    )
    return [page, front, tills]
