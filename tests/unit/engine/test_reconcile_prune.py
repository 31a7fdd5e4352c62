"""What runs delete, and what they leave: neighbours with copied marks, namespaces out of the whitelist, claims of StatefulSets."""

from __future__ import annotations

import pytest

from handler.config.settings import HoldAbove, Prune
from handler.model.names import IDENTITY, PART_OF
from handler.model.result import Outcome
from handler.model.rollout import ARGO_HOOK
from tests.unit.engine.in_memory_shop import Body, InMemoryShop, body, config_map

pytestmark = pytest.mark.slow

CLAIMS = Prune(kinds=("PersistentVolumeClaim",), hold_above=HoldAbove(1000, 1.0))
KEEP = config_map("keep")


def test_objects_with_a_copied_inventory_label_arent_pruned(shop: InMemoryShop) -> None:
    gone = config_map("gone")
    shop.push(KEEP, gone)
    shop.applied()
    marks = (shop.live(gone) or {})["metadata"]
    ours = {PART_OF: marks["labels"][PART_OF]}
    neighbours = [
        config_map("unmarked"),
        config_map("labelled", labels=ours),
        config_map("copy", labels=marks["labels"], annotations=marks["annotations"]),
        config_map("stranger", labels=ours, annotations={IDENTITY: "other:/ConfigMap:shop/stranger"}),
    ]
    before = [shop.create(each)["metadata"]["resourceVersion"] for each in neighbours]
    shop.push(KEEP)
    shop.applied()
    shop.applied("drift")
    assert shop.live(gone) is None
    assert [(shop.live(each) or {})["metadata"]["resourceVersion"] for each in neighbours] == before


def test_a_namespace_dropped_from_the_whitelist_keeps_its_objects_tracked_and_shown(shop: InMemoryShop) -> None:
    there, here = config_map("there", space="jobs"), config_map("here")
    shop.configure(namespaces=("shop", "jobs"))
    shop.push(there, here)
    shop.applied()
    before = shop.live(there)
    shop.configure(namespaces=("shop",))
    shop.push(here)
    result = shop.run()
    assert result.plan
    assert [identity.namespace for identity in result.plan.outside] == ["jobs"]
    assert shop.live(there) == before
    assert [orphan.identity.name for orphan in shop.state().orphans] == ["there"]
    shop.configure(namespaces=("shop", "jobs"))
    shop.applied("drift")
    assert shop.live(there) is None


# --- claims
def stateful(replicas: int, **policy: str) -> Body:
    spec = {"replicas": replicas, "volumeClaimTemplates": [{"metadata": {"name": "data"}}], "persistentVolumeClaimRetentionPolicy": policy}
    return body("db", "StatefulSet", "apps/v1", spec=spec)


def claimed(shop: InMemoryShop, replicas: int, *, owned: bool = False, **policy: str) -> list[Body]:
    """Have a StatefulSet applied; return its claims, as its controller makes them."""
    shop.push(stateful(replicas, **policy), KEEP)
    shop.applied()
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": shop.uid(stateful(1))}
    metadata = {"ownerReferences": [owner]} if owned else {}
    return [shop.create(body(f"data-db-{number}", "PersistentVolumeClaim", metadata=metadata)) for number in range(replicas)]


def test_a_protected_claim_keeps_all_claims_of_its_statefulset(shop: InMemoryShop) -> None:
    claims = claimed(shop, 2, owned=True, whenDeleted="Delete")
    shop.configure(prune=CLAIMS)
    shop.annotate(claims[0], **{"anneal.dev/prune": "disabled"})
    shop.push(KEEP)
    plan = shop.run(dry_run=True).plan
    assert plan
    assert {gone.identity.kind for gone in plan.gone} == {"StatefulSet"}


def test_a_scale_down_by_a_hook_is_refused(shop: InMemoryShop) -> None:
    claims = claimed(shop, 3, whenScaled="Delete")
    shop.push(stateful(1, whenScaled="Delete") | {"metadata": config_map("db", annotations={ARGO_HOOK: "PostSync"})["metadata"]}, KEEP)
    refused = shop.run()
    assert refused.code == "plan-refused"
    assert "once this hook has written it, PersistentVolumeClaim/shop/data-db-1 goes, too" in refused.message
    assert all(map(shop.live, claims))


def test_a_scale_down_waits_for_a_person_goes_where_prune_names_claims_and_is_refused_where_prune_is_off(shop: InMemoryShop) -> None:
    claimed(shop, 2, whenScaled="Delete")
    shop.push(stateful(1, whenScaled="Delete"), KEEP)
    assert shop.run().outcome is Outcome.HELD
    shop.configure(prune=Prune(enabled=False))
    refused = shop.run()
    assert (refused.outcome, [each.subject for each in refused.problems]) == (Outcome.FAILED, ["PersistentVolumeClaim/shop/data-db-1"])
    shop.configure(prune=CLAIMS)
    result = shop.applied()
    assert result.plan
    assert {gone.identity.name for gone in result.plan.gone} == {"data-db-1"}
