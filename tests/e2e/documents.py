"""The documents that shops are made of: small, each of a real kind."""

from __future__ import annotations

import base64
from typing import Any

Document = dict[str, Any]


def config_map(namespace: str, name: str, data: dict[str, str] | None = None, **metadata: Any) -> Document:
    return _object("v1", "ConfigMap", namespace, name, metadata) | {"data": data if data is not None else {"key": "1"}}


def secret(namespace: str, name: str, value: str, **metadata: Any) -> Document:
    return _object("v1", "Secret", namespace, name, metadata) | {"data": {"value": base64.b64encode(value.encode()).decode()}}


def service(namespace: str, name: str, port: int = 80, **metadata: Any) -> Document:
    return _object("v1", "Service", namespace, name, metadata) | {"spec": {"selector": {"app": name}, "ports": [{"port": port}]}}


def deployment(namespace: str, name: str, image: str = "shop:1", replicas: int | None = 0, **metadata: Any) -> Document:
    labels = {"app": name}
    spec: Document = {"selector": {"matchLabels": labels}, "template": pods(labels, image)}
    if replicas is not None:
        spec["replicas"] = replicas
    return _object("apps/v1", "Deployment", namespace, name, metadata) | {"spec": spec}


def stateful_set(namespace: str, name: str, service_name: str = "db", **metadata: Any) -> Document:
    labels = {"app": name}
    spec = {"replicas": 0, "serviceName": service_name, "selector": {"matchLabels": labels}, "template": pods(labels, "db:1")}
    return _object("apps/v1", "StatefulSet", namespace, name, metadata) | {"spec": spec}


def daemon_set(namespace: str, name: str, nodes: dict[str, str], **metadata: Any) -> Document:
    """Pods on the Nodes with these labels."""
    labels = {"app": name}
    template = pods(labels, "agent:1")
    template["spec"]["nodeSelector"] = nodes
    return _object("apps/v1", "DaemonSet", namespace, name, metadata) | {
        "spec": {"selector": {"matchLabels": labels}, "template": template}
    }


def replication_controller(namespace: str, name: str, **metadata: Any) -> Document:
    labels = {"app": name}
    spec = {"replicas": 0, "selector": labels, "template": pods(labels, "oldest:1")}
    return _object("v1", "ReplicationController", namespace, name, metadata) | {"spec": spec}


def job(namespace: str, name: str, image: str = "migrate:1", **metadata: Any) -> Document:
    template = pods({"job": name}, image)
    template["spec"]["restartPolicy"] = "Never"
    return _object("batch/v1", "Job", namespace, name, metadata) | {"spec": {"template": template}}


def claim(namespace: str, name: str, **metadata: Any) -> Document:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return _object("v1", "PersistentVolumeClaim", namespace, name, metadata) | {"spec": spec}


def namespace(name: str, **metadata: Any) -> Document:
    return _object("v1", "Namespace", "", name, metadata)


def definition(group: str, **metadata: Any) -> Document:
    """A CustomResourceDefinition of `Offer` in a group of the test's own."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"price": {"type": "integer"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "offers", "singular": "offer", "kind": "Offer", "listKind": "OfferList"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    return _object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", f"offers.{group}", metadata) | {"spec": spec}


def offer(group: str, namespace: str, name: str, price: int = 1, **metadata: Any) -> Document:
    return _object(f"{group}/v1", "Offer", namespace, name, metadata) | {"spec": {"price": price}}


def admission(name: str, group: str, **webhook: Any) -> Document:
    """A ValidatingWebhookConfiguration whose backend doesn't run; it is asked about Offers of `group` only."""
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["offers"]}
    hook = {
        "name": f"offers.{group}",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:9/judge"},
        "rules": [rule],
        **webhook,
    }
    return _object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", name, {}) | {"webhooks": [hook]}


def any_definition(group: str, kind: str, *versions: str) -> Document:
    """A namespaced CRD whose objects may hold anything; the first version is stored."""
    plural = f"{kind.lower()}s".replace("rys", "ries")
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served = [{"name": name, "served": True, "storage": name == versions[0], "schema": schema} for name in versions]
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": served}
    metadata = {"name": f"{plural}.{group}"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec}


def owner(live: Document | None) -> Document:
    """Return the reference by which a live object owns others."""
    assert live
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], "name": live["metadata"]["name"], "uid": live["metadata"]["uid"]}


def pods(labels: dict[str, str], image: str) -> Document:
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}


def _object(api_version: str, kind: str, namespace: str, name: str, metadata: Document) -> Document:
    place = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": {**place, **metadata}}
