"""What git declares and is being deleted all the same: the plan says so, and it comes again soon once it is gone."""

from __future__ import annotations

import json

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
