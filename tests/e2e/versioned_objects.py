"""Objects of one kind in several API versions."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.documents import Document, definition, offer
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
    assert live["spec"] == spec, live["spec"]


def unconverted(group: str) -> Document:
    """The definition of Offers in two versions that nothing converts: each object of v2 has a field that v1 doesn't know."""
    crd = definition(group)
    (first,) = crd["spec"]["versions"]
    alike: Document = {"price": {"type": "integer"}, "note": {"type": "string"}}
    schemas: dict[str, Document] = {"v1": alike, "v2": {**alike, "size": {"type": "integer", "default": 2}}}
    crd["spec"]["versions"] = [
        {**first, "name": name, "storage": name == "v1", "schema": {"openAPIV3Schema": _schema(spec)}} for name, spec in schemas.items()
    ]
    return crd


def written_by_terraform(shop: Shop) -> tuple[Document, Document]:
    """Have Terraform apply an Offer in v1 that nothing converts to v2; return the definition, and the Offer as git declares it in v2."""
    crd = unconverted(shop.group)
    shop.push(crd)
    shop.applied()
    old = json.dumps(offered(shop, "tea", "v1", note="keep me"))
    shop.kubectl.run("apply", "--server-side", "--field-manager=terraform", "-f", "-", given=old)
    return crd, offered(shop, "tea", "v2")


def _schema(spec: Document) -> Document:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
