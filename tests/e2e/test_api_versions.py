"""One kind in several API versions: each object rests in the version that git writes, and a move to another one is one write."""

from __future__ import annotations

import json
from typing import Any

from handler.model.result import Outcome
from tests.e2e.documents import Document, config_map, definition, deployment, offer
from tests.e2e.shop import Shop, told
from tests.e2e.test_drift import assert_rests


def scaler(shop: Shop, name: str, version: str, percent: int = 50) -> Document:
    """A HorizontalPodAutoscaler as each of its versions writes it."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    spec: Document = {"minReplicas": 1, "maxReplicas": 5, "scaleTargetRef": target}
    resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}
    spec |= {"targetCPUUtilizationPercentage": percent} if version == "v1" else {"metrics": [{"type": "Resource", "resource": resource}]}
    meta = {"name": name, "namespace": shop.name}
    return {"apiVersion": f"autoscaling/{version}", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": spec}


def versioned(shop: Shop, *names: str, **properties: dict[str, Any]) -> Document:
    """The definition of Offers in several versions, the last one stored; `properties` are the last one's own."""
    crd = definition(shop.group)
    first = crd["spec"]["versions"][0]
    crd["spec"]["versions"] = [json.loads(json.dumps({**first, "name": name, "storage": name == names[-1]})) for name in names]
    crd["spec"]["versions"][-1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] |= properties
    return crd


def offered(shop: Shop, name: str, version: str, **spec: Any) -> Document:
    return {**offer(shop.group, shop.name, name), "apiVersion": f"{shop.group}/{version}", "spec": {"price": 1, **spec}}


def ours(shop: Shop, document: Document) -> list[str]:
    """Return in which API versions our fields of a live object are recorded."""
    live = shop.live(document)
    assert live
    return [entry["apiVersion"] for entry in live["metadata"]["managedFields"] if entry["manager"] == "anneal"]


def test_two_versions_of_one_kind_rest_and_are_pruned(shop: Shop) -> None:
    old, new = scaler(shop, "old", "v1"), scaler(shop, "new", "v2")
    shop.push(old, new, config_map(shop.name, "a"))
    shop.applied()
    assert (ours(shop, old), ours(shop, new)) == (["autoscaling/v1"], ["autoscaling/v2"])
    assert_rests(shop)
    shop.kubectl.run("patch", "hpa", "old", "-n", shop.name, "-p", '{"spec":{"maxReplicas":9}}')
    plan = shop.applied("drift").plan
    assert plan
    assert [str(change.identity) for change in plan.writes] == [f"HorizontalPodAutoscaler/{shop.name}/old"]
    shop.push(old, config_map(shop.name, "a"))
    plan = shop.applied().plan
    assert plan
    assert [str(change.identity) for change in plan.prunes] == [f"HorizontalPodAutoscaler/{shop.name}/new"]
    assert shop.live(new) is None
    assert_rests(shop)


def test_a_move_to_another_version_is_one_write(shop: Shop) -> None:
    for version in ("v1", "v2", "v1"):
        moved = scaler(shop, "web", version)
        shop.push(deployment(shop.name, "web"), moved)
        shop.applied()
        assert ours(shop, moved) == [f"autoscaling/{version}"]
        assert_rests(shop)


def test_custom_resources_of_two_versions_rest_and_move(shop: Shop) -> None:
    crd = versioned(shop, "v1", "v2")
    shop.push(crd, offered(shop, "old", "v1"), offered(shop, "new", "v2"))
    shop.applied()
    assert_rests(shop)
    shop.push(crd, offered(shop, "old", "v2"), offered(shop, "new", "v2"))
    plan = shop.applied().plan
    assert plan
    assert [(str(change.identity), change.reason) for change in plan.writes] == [
        (f"Offer/{shop.name}/old", f"was applied in {shop.group}/v1")
    ]
    assert_rests(shop)


def test_a_new_version_with_defaults_takes_over_what_an_older_one_wrote(shop: Shop) -> None:
    shop.push(versioned(shop, "v1"), offered(shop, "tea", "v1", price=1))
    shop.applied()
    crd = versioned(shop, "v1", "v2", currency={"type": "string", "default": "EUR"})
    shop.push(crd, offered(shop, "tea", "v2", price=2))
    result = shop.run()
    assert result.outcome is Outcome.APPLIED, told(result)
    assert_rests(shop)
