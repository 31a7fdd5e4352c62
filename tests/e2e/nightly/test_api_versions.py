"""One kind in several API versions: each object rests in the version that git writes, and a move to another one is one write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.conversion_webhook import converted
from tests.e2e.documents import Document, config_map, definition, deployment
from tests.e2e.drift import assert_rests
from tests.e2e.one_target import Shop
from tests.e2e.versioned_objects import assert_spec, offered, scaler


def versioned(shop: Shop, *names: str, **properties: dict[str, Any]) -> Document:
    """The definition of Offers in several versions, the last one stored; `properties` are the last one's own."""
    crd = definition(shop.group)
    first = crd["spec"]["versions"][0]
    crd["spec"]["versions"] = [json.loads(json.dumps({**first, "name": name, "storage": name == names[-1]})) for name in names]
    crd["spec"]["versions"][-1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] |= properties
    for version in crd["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["note"] = {"type": "string"}
    return crd


def ours(shop: Shop, document: Document) -> list[str]:
    """Return in which API versions our fields of a live object are recorded."""
    live = shop.live(document)
    assert live
    return [entry["apiVersion"] for entry in live["metadata"]["managedFields"] if entry["manager"] == "anneal"]


def test_two_api_versions_of_one_kind_have_no_drift_and_are_pruned(shop: Shop) -> None:
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


def test_custom_resources_of_two_api_versions_have_no_drift_and_move(shop: Shop) -> None:
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


def test_api_versions_converted_by_a_webhook_have_no_drift_and_move(shop: Shop, tmp_path: Path) -> None:
    old, new = offered(shop, "old", "v1", note="hot"), offered(shop, "new", "v2")
    new["spec"] = {"cost": {"amount": 7}}
    with converted(shop.group, tmp_path) as crd:
        shop.push(crd, old, new)
        shop.applied()
        assert_spec(shop, new, {"cost": {"amount": 7}})
        assert_rests(shop)
        shop.kubectl.run("patch", f"offers.v2.{shop.group}", "old", "-n", shop.name, "--type=merge", "-p", '{"spec":{"cost":{"amount":9}}}')
        plan = shop.applied("drift").plan
        assert plan
        assert [(str(change.identity), [item.path for item in change.fields]) for change in plan.writes] == [
            (f"Offer/{shop.name}/old", ["spec.price"])
        ]
        moved = {**offered(shop, "old", "v2"), "spec": {"cost": {"amount": 1}}}
        shop.push(crd, moved, new)
        plan = shop.applied().plan
        assert plan
        assert [(change.identity.name, [item.path for item in change.fields]) for change in plan.writes] == [("old", ["spec.note"])]
        assert_spec(shop, moved, {"cost": {"amount": 1}})
        assert_rests(shop)
        shop.push(crd, config_map(shop.name, "a"))
        shop.applied()
        assert shop.live(moved) is None


CURRENCY = {"type": "string", "default": "EUR"}


def test_a_new_version_and_its_new_field_in_one_commit(shop: Shop) -> None:
    """The server can't convert the new field into the version in which ours are recorded, and answers no apply by itself."""
    shop.push(versioned(shop, "v1"), offered(shop, "tea", "v1", note="hot"), config_map(shop.name, "a"))
    shop.applied()
    shop.push(
        versioned(shop, "v1", "v2", currency=CURRENCY), offered(shop, "tea", "v2", price=2, currency="USD"), config_map(shop.name, "a")
    )
    shop.applied()
    assert_spec(shop, offered(shop, "tea", "v2"), {"price": 2, "currency": "USD"})
    assert_rests(shop)


def test_a_new_field_of_a_new_version_is_shown_before_it_is_written(shop: Shop) -> None:
    crd = versioned(shop, "v1", "v2", currency=CURRENCY)
    shop.push(crd, offered(shop, "tea", "v1", note="hot"))
    shop.applied()
    written = {
        "apiVersion": f"{shop.group}/v1",
        "kind": "Offer",
        "metadata": {"name": "tea", "namespace": shop.name},
        "spec": {"note": "hot"},
    }
    shop.kubectl.run("apply", "--server-side", "--field-manager=vendor", "-f", "-", given=json.dumps(written))
    shop.push(crd, offered(shop, "tea", "v2", price=2, currency="USD"))
    before = shop.live(offered(shop, "tea", "v2"))
    plan = shop.run("oneoff", dry_run=True).plan
    assert plan
    (change,) = plan.writes
    assert {(item.path, item.live, item.declared) for item in change.fields} == {("spec.price", "1", "2"), ("spec.currency", "EUR", "USD")}
    assert shop.live(offered(shop, "tea", "v2")) == before, "a plan writes nothing"
    shop.applied()
    assert_spec(shop, offered(shop, "tea", "v2"), {"price": 2, "currency": "USD", "note": "hot"})
    assert ours(shop, offered(shop, "tea", "v2")) == [f"{shop.group}/v2"]
    assert_rests(shop)


def test_a_field_dropped_by_git_goes_though_its_managed_fields_version_is_gone(shop: Shop) -> None:
    """The server forgets entries of a version that the kind hasn't any more: what they name would stay for ever."""
    tea, rum = offered(shop, "tea", "v2"), offered(shop, "rum", "v2")
    shop.push(versioned(shop, "v1", "v2"), offered(shop, "tea", "v1", note="hot"), offered(shop, "rum", "v1", note="cold"))
    shop.applied()
    shop.push(versioned(shop, "v2"), tea, offered(shop, "rum", "v2", note="cold"))
    plan = shop.run("oneoff", dry_run=True).plan
    assert plan
    told = {(change.identity.name, item.path, item.live) for change in plan.writes for item in change.fields}
    assert ("tea", "spec.note", "hot") in told
    shop.applied()
    assert_spec(shop, tea, {"price": 1})
    assert_spec(shop, rum, {"price": 1, "note": "cold"})
    shop.push(versioned(shop, "v2"), tea, rum)
    shop.applied()
    assert_spec(shop, rum, {"price": 1})
    assert_rests(shop)


def test_a_field_dropped_by_git_goes_though_its_api_version_was_removed_before(shop: Shop) -> None:
    """As after an upgrade of the cluster, or of an operator that brings its CRDs itself."""
    tea = offered(shop, "tea", "v2")
    shop.kubectl.apply(versioned(shop, "v1", "v2"))
    shop.kubectl.run("wait", "--for=condition=Established", f"crd/offers.{shop.group}")
    shop.push(offered(shop, "tea", "v1", note="hot"), offered(shop, "rum", "v2"), config_map(shop.name, "a"))
    shop.applied()
    theirs = {**offered(shop, "rum", "v1"), "spec": {"note": "theirs"}}
    shop.kubectl.run("apply", "--server-side", "--field-manager=vendor", "-f", "-", given=json.dumps(theirs))
    shop.kubectl.apply(versioned(shop, "v2"))
    shop.configure()
    shop.push(tea, offered(shop, "rum", "v2", price=2), config_map(shop.name, "a"))
    shop.applied()
    assert_spec(shop, tea, {"price": 1})
    assert_spec(shop, offered(shop, "rum", "v2"), {"price": 2, "note": "theirs"})
    assert_rests(shop)
