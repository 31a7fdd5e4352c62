"""A release whose pods never get ready goes back by itself, and isn't tried again by anything but what mends it."""

from __future__ import annotations

from handler.config.settings import Rollback, Wait
from handler.model.result import Outcome
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map
from tests.e2e.one_target import Shop, told
from tests.e2e.rollback_commits import deployed, good, hanging
from tests.patience import PATIENCE

WAIT = Wait(timeout=PATIENCE)
"""What works has time on any machine; what doesn't says so itself (`bad`)."""
BACK = {"wait": WAIT, "rollback": Rollback(on_failure=True)}


def bad(shop: Shop) -> list[Document]:
    """The same, but it fails by its own deadline."""
    stuck, *others = hanging(shop)
    stuck["spec"]["progressDeadlineSeconds"] = 2
    return [stuck, *others]


def assert_is_back(shop: Shop, old: str, new: str) -> None:
    """Live is what the old commit declares, and the record says why."""
    shop.documents = tuple(good(shop))
    shop.assert_converged(old)
    state = shop.state()
    assert state.pin
    assert (state.pin.commit, state.pin.automatic) == (old, True)
    assert new[:12] in state.pin.reason
    entries = [(run.outcome, run.commit) for run in state.history]
    assert entries[:2] == [("rolled-back", old), ("failed", new)]
    assert state.history[0].trigger == "rollback"


def test_a_release_that_never_becomes_ready_is_rolled_back_and_not_tried_again(open_shop: Open) -> None:
    shop = open_shop(**BACK)
    old = deployed(shop)
    new = shop.push(*bad(shop))
    result = shop.run()
    assert (result.outcome, result.commit, result.who) == (Outcome.ROLLED_BACK, old, "author"), told(result)
    assert "web" in str(result.problems[0])
    assert f": {shop.state().history[1].message}; rolled back to {old[:12]}" in str(result.problems[0])
    assert_is_back(shop, old, new)
    before = shop.versions()
    for trigger in ("tick", "push", "drift"):
        again = shop.run(trigger, hint=new if trigger == "push" else "")
        assert (again.outcome, again.commit) == (Outcome.UNCHANGED, old), told(again)
    shop.work.write("elsewhere.txt", "of no concern")
    shop.work.commit("unrelated")
    shop.work.push()
    assert shop.run().commit == old
    shop.configure(namespaces=(*shop.target.namespaces, f"{shop.name}-more"))  # other settings, as after a rotation
    assert shop.run("tick").commit == old
    assert shop.versions() == before
    mended = shop.push(*good(shop), config_map(shop.name, "three"))
    shop.applied()
    shop.assert_converged(mended)
    assert shop.state().pin is None
