"""What git declares and is being deleted all the same: the plan says so, and it comes again soon once it is gone."""

from __future__ import annotations

import json

import pytest

from handler.cli.reports import facts
from handler.engine.apply import wait_deleted
from handler.model.plan import Action
from handler.model.result import Outcome, Result
from tests.e2e.documents import Document, config_map
from tests.e2e.one_target import Shop, told
from tests.e2e.two_targets import Pair

HELD = "x.example.com/held"


def terminate(shop: Shop, document: Document) -> str:
    """Have it deleted while a finalizer holds it; return its uid."""
    name, namespace = document["metadata"]["name"], document["metadata"]["namespace"]
    finalize(shop, document, [HELD])
    shop.kubectl.run("delete", "cm", name, "-n", namespace, "--wait=false")
    live = shop.live(document)
    assert live
    return str(live["metadata"]["uid"])


def finalize(shop: Shop, document: Document, finalizers: list[str] | None) -> None:
    name, namespace = document["metadata"]["name"], document["metadata"]["namespace"]
    patch = json.dumps({"metadata": {"finalizers": finalizers}})
    shop.kubectl.run("patch", "cm", name, "-n", namespace, "--type=merge", "-p", patch, "--field-manager=their-operator")


def assert_told(shop: Shop, document: Document, shown: Result, ended: Result) -> None:
    """The plan and the end say that it goes, and a look is armed in the process and in the record."""
    name, namespace = document["metadata"]["name"], document["metadata"]["namespace"]
    said = f"ConfigMap/{namespace}/{name} is being deleted (finalizers: {HELD}): it is created again once it is gone"
    assert shown.plan, told(shown)
    assert said in shown.plan.notes
    assert said in ended.message
    assert (bool(ended.next_try), bool(shop.state().drift_due)) == (True, True)


def assert_comes_again(shop: Shop, document: Document, before: str) -> None:
    finalize(shop, document, None)
    assert shop.applied("drift").counts.get("created") == 1
    live = shop.live(document)
    assert live
    assert live["metadata"]["uid"] != before
    assert shop.run("drift").outcome is Outcome.UNCHANGED


def test_a_terminating_object_is_reported_and_created_again(shop: Shop) -> None:
    one = config_map(shop.name, "one")
    shop.kubectl.run("create", "-f", "-", given=json.dumps(one))
    before = terminate(shop, one)
    one["data"] = {"key": "2"}
    shop.push(one, config_map(shop.name, "two"))
    shown = shop.run(dry_run=True)
    assert_told(shop, one, shown, shop.applied())
    assert shown.plan
    assert {change.action for change in shown.plan.changes if change.identity.name == "one"} == {Action.UPDATE}
    again = shop.run("drift")
    assert again.outcome is Outcome.UNCHANGED, told(again)
    assert_told(shop, one, shop.run("drift", dry_run=True), again)
    assert_comes_again(shop, one, before)


def test_what_waits_for_its_finalizer_is_deleting_after_each_retry_and_never_pruned(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_deleted, "TIMEOUT", 1.0)
    one = {**config_map(shop.name, "one", annotations={"anneal.dev/recreate": "allow"}), "immutable": True}
    shop.push(one, config_map(shop.name, "two"))
    shop.applied()
    finalize(shop, one, [HELD])
    shop.push({**one, "data": {"key": "2"}}, config_map(shop.name, "two"))
    for tries in (1, 2):
        ended = shop.run("push" if tries == 1 else "tick")
        assert (ended.outcome, ended.code, ended.counts) == (Outcome.PRUNING, "still-deleting", {"deleting": 1}), told(ended)
        said = (
            f"ConfigMap/{shop.name}/one: is not gone yet; finalizers: {HELD} (the controller of x.example.com); kubectl get ConfigMap/one"
        )
        assert ended.message.startswith(said)
        assert [(each["object"], each["done"]) for each in facts(ended)["changes"]] == [(f"ConfigMap/{shop.name}/one", False)]
        (entry, *_), status = shop.state().history, shop.state().status
        assert (entry.outcome, entry.counts, entry.changed) == ("pruning", {"deleting": 1}, (f"ConfigMap/{shop.name}/one deleting",))
        assert (status.phase, status.counts, entry.times) == ("pruning", {"deleting": 1}, tries)
    finalize(shop, one, None)
    assert "pruned" not in shop.applied("tick").counts
    shop.assert_converged()


def test_an_object_terminating_at_its_hand_over_is_created_again_by_the_taker(pair: Pair) -> None:
    own, moved = config_map(pair.space, "own"), config_map(pair.space, "moved")
    pair.push(a=(own, moved))
    pair.applied(pair.a, pair.b)
    before = terminate(pair.a, moved)
    pair.push(a=(own,), b=(moved,))
    shown = pair.b.run(dry_run=True)
    ended = pair.b.run()
    assert ended.outcome is Outcome.APPLIED, told(ended)
    assert_told(pair.b, moved, shown, ended)
    pair.applied(pair.a)
    assert_comes_again(pair.b, moved, before)
