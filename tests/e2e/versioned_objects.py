"""Objects of one kind in several API versions."""

from __future__ import annotations

from typing import Any

from tests.e2e.documents import Document, offer
from tests.e2e.one_target import Shop


def scaler(shop: Shop, name: str, version: str, percent: int = 50) -> Document:
    """A HorizontalPodAutoscaler as each of its versions writes it."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec: Document = {"minReplicas": 1, "maxReplicas": 5, "scaleTargetRef": target}
    resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}
    spec |= {"targetCPUUtilizationPercentage": percent} if version == "v1" else {"metrics": [{"type": "Resource", "resource": resource}]}
    meta = {"name": name, "namespace": shop.name}
    return {"apiVersion": f"autoscaling/{version}", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": spec}


def offered(shop: Shop, name: str, version: str, **spec: Any) -> Document:
    return {**offer(shop.group, shop.name, name), "apiVersion": f"{shop.group}/{version}", "spec": {"price": 1, **spec}}


def assert_spec(shop: Shop, document: Document, spec: dict[str, Any]) -> None:
    live = shop.live(document)
    assert live
    assert live["spec"] == spec
