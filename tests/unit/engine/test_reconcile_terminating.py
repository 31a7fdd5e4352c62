"""What git declares and is being deleted all the same: the plan says so, and it comes again soon once it is gone."""

from __future__ import annotations

import pytest

from handler.cli.reports import facts
from handler.engine.apply import wait_deleted
from handler.model.plan import Action
from handler.model.result import Outcome, Result
from tests.unit.engine.in_memory_shop import DONE, Body, InMemoryShop, config_map

pytestmark = pytest.mark.slow

HELD = "x.example.com/held"
SSA = {"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"}
ONE, TWO = config_map("one"), config_map("two")


def finalize(shop: InMemoryShop, document: Body, finalizers: list[str] | None) -> None:
    shop.patch(document, {"metadata": {"finalizers": finalizers}}, "their-operator")


def terminate(shop: InMemoryShop, document: Body) -> str:
    """Have it deleted while a finalizer holds it; return its uid."""
    finalize(shop, document, [HELD])
    shop.delete(document)
    return shop.uid(document)


def assert_told(shop: InMemoryShop, shown: Result, ended: Result) -> None:
    """The plan and the end say that it goes, and a look is armed in the process and in the record."""
    said = f"ConfigMap/shop/one is being deleted (finalizers: {HELD}): it is created again once it is gone"
    assert shown.plan
    assert said in shown.plan.notes
    assert said in ended.message
    assert (bool(ended.next_try), bool(shop.state().drift_due)) == (True, True)


@pytest.mark.parametrize(
    ("how", "action"),
    [
        ("adopted", Action.UPDATE),
        ("updated", Action.UPDATE),
        ("as declared", Action.UNCHANGED),
        ("only created where missing", Action.SKIP),
    ],
)
def test_a_terminating_object_is_reported_and_created_again(shop: InMemoryShop, how: str, action: Action) -> None:
    one = config_map("one", annotations=SSA) if how == "only created where missing" else ONE
    if how == "adopted":
        shop.create(one)
    else:
        shop.push(one)
        shop.applied()
    before = terminate(shop, one)
    one = {**one, "data": {"key": "2"}} if how in ("adopted", "updated") else one
    shop.push(one, TWO)
    shown = shop.run(dry_run=True)
    assert_told(shop, shown, shop.applied())
    assert shown.plan
    assert {change.action for change in shown.plan.changes if change.identity.name == "one"} == {action}
    again = shop.run("drift")
    assert again.outcome is Outcome.UNCHANGED
    assert_told(shop, shop.run("drift", dry_run=True), again)
    finalize(shop, one, None)
    assert shop.applied("drift").counts.get("created") == 1
    assert shop.uid(one) != before
    assert shop.run("drift").outcome is Outcome.UNCHANGED


def test_a_terminating_object_that_git_has_dropped_is_pruned(shop: InMemoryShop) -> None:
    shop.push(ONE, TWO)
    shop.applied()
    terminate(shop, ONE)
    shop.push(TWO)
    shown = shop.run(dry_run=True)
    assert shown.plan
    reason = f"is being deleted already; finalizers: {HELD}"
    assert [(change.action, change.reason) for change in shown.plan.prunes] == [(Action.PRUNE, reason)]
    assert not any("created again" in note for note in shown.plan.notes)
    finalize(shop, ONE, None)
    assert shop.run().outcome in DONE
    assert shop.live(ONE) is None


@pytest.mark.parametrize("way", ["prune", "recreate"])
def test_what_waits_for_its_finalizer_is_deleting_after_each_retry_and_never_pruned(
    shop: InMemoryShop, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(wait_deleted, "TIMEOUT", 0.1)
    one = {**config_map("one", annotations={"anneal.dev/recreate": "allow"}), "immutable": True}
    shop.push(one, TWO)
    shop.applied()
    finalize(shop, one, [HELD])
    shop.push(*([{**one, "data": {"key": "2"}}] if way == "recreate" else []), TWO)
    for tries in (1, 2):
        ended = shop.run("push" if tries == 1 else "tick")
        assert (ended.outcome, ended.code, ended.counts) == (Outcome.PRUNING, "still-deleting", {"deleting": 1})
        said = f"ConfigMap/shop/one: is not gone yet; finalizers: {HELD} (the controller of x.example.com); kubectl get ConfigMap/one"
        assert ended.message.startswith(said)
        assert [(each["object"], each["done"]) for each in facts(ended)["changes"]] == [("ConfigMap/shop/one", False)]
        (entry, *_), status = shop.state().history, shop.state().status
        assert (entry.outcome, entry.counts, entry.changed) == ("pruning", {"deleting": 1}, ("ConfigMap/shop/one deleting",))
        assert (status.phase, status.counts, entry.times) == ("pruning", {"deleting": 1}, tries)
    finalize(shop, one, None)
    assert "pruned" not in shop.applied("tick").counts
    assert (shop.live(one) or {}).get("data") == ({"key": "2"} if way == "recreate" else None)
