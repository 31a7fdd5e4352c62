"""Moving from `kubectl apply`: the same objects, nothing deleted, and what git drops really goes."""

from __future__ import annotations

import pytest

from handler.model.result import Outcome
from tests.e2e.documents import Document, config_map, deployment, service
from tests.e2e.one_target import Shop

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def full(shop: Shop) -> list[Document]:
    web = deployment(shop.name, "web", annotations={"team": "shop"})
    web["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "MODE", "value": "old"}, {"name": "DEBUG", "value": "1"}]
    return [web, service(shop.name, "web"), config_map(shop.name, "a", {"key": "1", "dropped": "1"}, labels={"old": "label"})]


def slimmer(shop: Shop) -> list[Document]:
    """The same objects after a commit that drops fields: an annotation, a label, a key, a variable."""
    web = deployment(shop.name, "web")
    web["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "MODE", "value": "new"}]
    return [web, service(shop.name, "web"), config_map(shop.name, "a", {"key": "1"})]


@pytest.mark.parametrize("options", [(), ("--server-side",), ("--server-side", "--field-manager=kubectl-ci")], ids=str)
def test_objects_of_kubectl_apply_are_adopted_without_being_replaced(shop: Shop, options: tuple[str, ...]) -> None:
    shop.kubectl.apply(*full(shop), options=options)
    uids = {name: uid for name, (uid, _) in shop.versions(full(shop)).items()}
    shop.push(*slimmer(shop))
    result = shop.applied()
    assert result.plan
    assert all(change.adopted for change in result.plan.writes)
    live = {str(document["kind"]): shop.live(document) for document in slimmer(shop)}
    assert all(live.values())
    shop.assert_converged()
    assert {name: uid for name, (uid, _) in shop.versions().items()} == uids
    annotations = [(found or {})["metadata"].get("annotations") or {} for found in live.values()]
    assert not any(LAST_APPLIED in found or "team" in found for found in annotations)
    containers = (live["Deployment"] or {})["spec"]["template"]["spec"]["containers"]
    assert containers[0]["env"] == [{"name": "MODE", "value": "new"}]
    assert shop.run("drift").outcome is Outcome.UNCHANGED
