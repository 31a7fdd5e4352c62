"""What something else than git scales in the cluster: autoscalers are left alone."""

from __future__ import annotations

from handler.model.result import Outcome
from tests.e2e.documents import Document, definition, deployment, offer
from tests.e2e.one_target import Shop, told
from tests.patience import until


def replicas(shop: Shop, document: Document) -> int:
    live = shop.live(document)
    assert live
    return int(live["spec"]["replicas"])


def scale(shop: Shop, manager: str, number: int, path: str) -> None:
    """Write the subresource, as a controller does."""
    patch = f'{{"spec": {{"replicas": {number}}}}}'
    assert shop.kubectl.ask("PATCH", f"{path}/scale?fieldManager={manager}", patch, "application/merge-patch+json")


def test_an_autoscaler_that_git_doesnt_declare_keeps_what_it_has_scaled(shop: Shop) -> None:
    web = deployment(shop.name, "web", replicas=1)
    shop.push(web)
    shop.applied()
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "minReplicas": 2, "maxReplicas": 3}
    metadata = {"name": "web", "namespace": shop.name}
    shop.kubectl.apply({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec})
    until(lambda: replicas(shop, web) == 2)
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert replicas(shop, web) == 2


def test_a_custom_kind_is_scaled_where_its_definition_says(shop: Shop) -> None:
    kind = definition(shop.group)
    version = kind["spec"]["versions"][0]
    numbers = {"type": "object", "properties": {"size": {"type": "integer"}}}
    version["schema"]["openAPIV3Schema"]["properties"] = {"spec": numbers, "status": numbers}
    version["subresources"] = {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}}
    tea = offer(shop.group, shop.name, "tea")
    tea["spec"] = {"size": 1}
    shop.push(kind, tea)
    shop.applied()
    scale(shop, "keda-operator", 4, f"/apis/{shop.group}/v1/namespaces/{shop.name}/offers/tea")
    result = shop.run("drift")
    assert result.outcome is Outcome.UNCHANGED, told(result)
    live = shop.live(tea)
    assert live
    assert live["spec"]["size"] == 4
