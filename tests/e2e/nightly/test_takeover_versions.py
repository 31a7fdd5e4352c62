"""What people wrote through another API version than git's: it goes as the server converts it, and nothing of it is lost unsaid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.conversion_webhook import converted
from tests.e2e.documents import Document, deployment
from tests.e2e.drift import assert_rests
from tests.e2e.one_target import Shop
from tests.e2e.takeover import carried_out, gone, planned
from tests.e2e.versioned_objects import assert_spec, offered, scaler, written_by_terraform


def entries(shop: Shop, document: Document) -> list[tuple[str, str]]:
    """Return (manager, API version) of each manager that has fields of an object, but for its status."""
    live = shop.live(document)
    assert live
    return [
        (each["manager"], each["apiVersion"]) for each in live["metadata"].get("managedFields", []) if each.get("subresource") != "status"
    ]


def patched(shop: Shop, document: Document, **spec: Any) -> None:
    """Have people change an object through the API version of a document."""
    group, _, version = document["apiVersion"].partition("/")
    kind = f"{document['kind']}.{version}.{group}"
    place = [kind, document["metadata"]["name"], "-n", shop.name, "--type=merge", "-p", json.dumps({"spec": spec})]
    shop.kubectl.run("patch", *place)


def test_takeover_leaves_a_field_that_another_api_version_spells_otherwise_until_git_writes_it(shop: Shop) -> None:
    """In v1 it is `targetCPUUtilizationPercentage`, in v2 one of the `metrics`."""
    old, new = scaler(shop, "web", "v1"), scaler(shop, "web", "v2")
    old["metadata"]["labels"] = {"by": "hand"}
    shop.kubectl.apply(old)
    patched(shop, new, behavior={"scaleDown": {"stabilizationWindowSeconds": 5}})
    shop.push(deployment(shop.name, "web"), new)
    changes, _ = carried_out(shop, [new])
    assert gone(changes["HorizontalPodAutoscaler"]) >= {"metadata.labels.by", "spec.behavior"}
    assert entries(shop, new) == [("anneal", "autoscaling/v2"), ("kubectl-client-side-apply", "autoscaling/v1")]
    named = {(field.path, field.manager) for field in planned(shop)["HorizontalPodAutoscaler"].undeclared}
    assert named == {("spec.targetCPUUtilizationPercentage (autoscaling/v1)", "kubectl-client-side-apply")}
    new = scaler(shop, "web", "v2", 60)
    shop.push(deployment(shop.name, "web"), new)
    carried_out(shop, [new])
    assert entries(shop, new) == [("anneal", "autoscaling/v2")]


def test_a_move_to_another_api_version_shows_each_field_of_ours_and_of_kubectl_that_goes(shop: Shop, tmp_path: Path) -> None:
    """Ours is recorded as v1's `price` and `size`; people wrote `note` through v2, and git moves to v2 with another price alone."""
    old, new = offered(shop, "tea", "v1", size=3), {**offered(shop, "tea", "v2"), "spec": {"cost": {"amount": 2}}}
    with converted(shop.group, tmp_path) as crd:
        shop.push(crd, old)
        shop.applied()
        patched(shop, new, note="hot")
        shop.push(crd, new)
        changes = planned(shop)
        assert gone(changes["Offer"]) == {"spec.size"}, "first the server moves what is ours"
        shop.applied()
        assert gone(planned(shop, "drift")["Offer"]) == {"spec.note"}, "then the plan shows what people wrote"
        shop.applied("drift")
        assert_spec(shop, new, new["spec"])
        assert_rests(shop)


def labelled(shop: Shop, version: str, label: str) -> None:
    """Have a person label the Offer through one of its versions."""
    shop.kubectl.run("label", f"offers.{version}.{shop.group}", "tea", label, "-n", shop.name)


def test_a_release_that_would_empty_managed_fields_is_not_written_and_the_plan_says_what_stays(shop: Shop) -> None:
    crd, new = written_by_terraform(shop)
    labelled(shop, "v1", "app=p")
    shop.push(crd, new)
    before = shop.versions([new])
    plan = shop.run(dry_run=True).plan
    assert plan
    (note,) = (each for each in plan.notes if "forget" in each)
    assert f"Offer/{shop.name}/tea: metadata.labels.app stays" in note
    assert f"recorded in {shop.group}/v1; declare the object in that version" in note
    assert shop.versions([new]) == before
    shop.applied()
    theirs = [("kubectl-label", f"{shop.group}/v1"), ("terraform", f"{shop.group}/v1")]
    assert sorted(entries(shop, new)) == [("anneal", f"{shop.group}/v2"), *theirs]
    assert_spec(shop, new, {"price": 1, "note": "keep me"})
    assert_rests(shop)
    shop.push(crd, offered(shop, "tea", "v1"))  # the way out that the note names
    changes, _ = carried_out(shop, [new])
    assert gone(changes["Offer"]) == {"metadata.labels.app"}
    assert sorted(entries(shop, new)) == [("anneal", f"{shop.group}/v1"), ("terraform", f"{shop.group}/v1")]


def test_nothing_goes_of_an_object_whose_managed_fields_a_person_has_emptied(shop: Shop) -> None:
    """As each `kubectl label` through v2 does it."""
    crd, new = written_by_terraform(shop)
    labelled(shop, "v2", "app=p")
    assert entries(shop, new) == []
    shop.push(crd, new)
    changes, _ = carried_out(shop, [new])
    assert gone(changes["Offer"]) == set()
    named = {(field.path, field.manager) for field in planned(shop, "drift")["Offer"].undeclared}
    assert named == {(path, "before-first-apply") for path in ("metadata.labels.app", "spec.note")}
    assert_rests(shop)
    assert_spec(shop, new, {"price": 1, "note": "keep me"})
    shop.push(crd, {**new, "metadata": {**new["metadata"], "labels": {"since": "then"}}, "spec": {}})
    changes, _ = carried_out(shop, [new])
    assert gone(changes["Offer"]) == {"spec.price"}
