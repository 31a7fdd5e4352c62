"""The load: mixed objects as teams have them, the same for every tool. Deterministic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

Body = dict[str, Any]


def mixed(count: int, namespace: str) -> list[Body]:
    """Return `count` objects of twelve kinds in one namespace, most of them small, a fifth of them workloads."""
    return [_MIX[index % len(_MIX)](index, namespace) for index in range(count)]


def as_files(bodies: list[Body]) -> dict[str, str]:
    """Return each object as a YAML file of its own, by name: what `kubectl apply -f DIR` reads, too."""
    return {f"{body['kind'].lower()}-{body['metadata']['name']}.yaml": yaml.safe_dump(body, sort_keys=False) for body in bodies}


def _object(api: str, kind: str, index: int, namespace: str, **parts: Any) -> Body:
    metadata = {"name": f"{kind.lower()}-{index}", "namespace": namespace, "labels": {"app": f"app-{index}", "tier": "bench"}}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **parts}


def _config_map(index: int, namespace: str) -> Body:
    data = {f"key-{number}": f"value {number} of {index}, as long as settings usually are" for number in range(12)}
    return _object("v1", "ConfigMap", index, namespace, data=data)


def _secret(index: int, namespace: str) -> Body:
    return _object("v1", "Secret", index, namespace, type="Opaque", data={"password": "aHVudGVyMg==", "token": "dG9rZW4="})


def _account(index: int, namespace: str) -> Body:
    return _object("v1", "ServiceAccount", index, namespace)


def _service(index: int, namespace: str) -> Body:
    ports = [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "metrics", "port": 9090}]
    return _object("v1", "Service", index, namespace, spec={"selector": {"app": f"app-{index}"}, "ports": ports})


def _pod(index: int) -> Body:
    container = {
        "name": "app",
        "image": f"registry.example.com/app:{index}",
        "ports": [{"containerPort": 8080, "name": "http"}],
        "env": [{"name": f"SETTING_{number}", "value": str(number)} for number in range(6)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
    }
    return {"metadata": {"labels": {"app": f"app-{index}"}}, "spec": {"containers": [container]}}


def deployment(index: int, namespace: str) -> Body:
    """Return one Deployment without pods, of some forty lines."""
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": f"app-{index}"}}, "template": _pod(index)}
    return _object("apps/v1", "Deployment", index, namespace, spec=spec)


def _role(index: int, namespace: str) -> Body:
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    return _object("rbac.authorization.k8s.io/v1", "Role", index, namespace, rules=rules)


def _network_policy(index: int, namespace: str) -> Body:
    spec = {"podSelector": {"matchLabels": {"app": f"app-{index}"}}, "policyTypes": ["Ingress"], "ingress": [{"ports": [{"port": 8080}]}]}
    return _object("networking.k8s.io/v1", "NetworkPolicy", index, namespace, spec=spec)


def _budget(index: int, namespace: str) -> Body:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": f"app-{index}"}}}
    return _object("policy/v1", "PodDisruptionBudget", index, namespace, spec=spec)


_MIX: tuple[Callable[[int, str], Body], ...] = (
    _config_map,
    deployment,
    _service,
    _secret,
    _account,
    _config_map,
    _role,
    deployment,
    _service,
    _network_policy,
    _config_map,
    _budget,
)
