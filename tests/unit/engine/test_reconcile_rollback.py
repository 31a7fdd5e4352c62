"""A rollout that fails goes back by itself, a person's rollback by hand; and neither is tried again by anything but what mends it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.config.settings import Rollback
from handler.model.result import Outcome
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, straight
from tests.unit.engine.in_memory_cluster import step
from tests.unit.engine.in_memory_shop import DONE, InMemoryShop, config_map
from tests.unit.engine.killed_runs import Death, Killed

pytestmark = pytest.mark.slow

INVALID = {"kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422, "message": "no such table"}
GOOD, BAD = (config_map("web"), config_map("one")), (config_map("web", "2"), config_map("bad"), config_map("two"))


def refused(call: Call, do: Callable[[], Reply]) -> Reply:
    """The server takes the dry-run of `bad`, and refuses its write."""
    return (422, INVALID, {}) if call.writes and call.asked.path.endswith("/bad") else do()


@pytest.fixture
def shop() -> InMemoryShop:
    """One that goes back, and has deployed what works."""
    made = InMemoryShop()
    made.configure(rollback=Rollback(on_failure=True))
    made.push(*GOOD)
    made.applied()
    made.meet = refused
    return made


def lives(shop: InMemoryShop) -> dict[str, str]:
    found = {name: shop.live(config_map(name)) for name in ("web", "one", "two", "bad", "m", "s", "added")}
    return {name: live["data"]["key"] for name, live in found.items() if live}


def assert_is_back(shop: InMemoryShop, old: str, new: str) -> None:
    """Live is what the old commit declares, and the record says why."""
    assert lives(shop) == {"web": "1", "one": "1"}
    state = shop.state()
    assert state.pin
    assert (state.commit, state.attempt, state.pin.commit, state.pin.automatic) == (old, None, old, True)
    assert new[:12] in state.pin.reason
    assert [(run.outcome, run.commit) for run in state.history[:2]] == [("rolled-back", old), ("failed", new)]
    assert state.history[0].trigger == "rollback"


def test_a_release_that_fails_is_rolled_back_and_not_tried_again(shop: InMemoryShop) -> None:
    old, new = shop.host.head, shop.push(*BAD)
    result = shop.run()
    assert (result.outcome, result.commit, result.who) == (Outcome.ROLLED_BACK, old, "author")
    assert f": {shop.state().history[1].message}; rolled back to {old[:12]}" in str(result.problems[0])
    assert_is_back(shop, old, new)
    shop.written.clear()
    for trigger in ("tick", "push", "drift"):
        again = shop.run(trigger, hint=new if trigger == "push" else "")
        assert (again.outcome, again.commit) == (Outcome.UNCHANGED, old)
    shop.host.push(shop.host.commit({**shop.host.commits[shop.host.head], "elsewhere.txt": "of no concern"}))
    assert shop.run().commit == old
    shop.configure(namespaces=("shop", "more"))  # other settings, as after a rotation
    assert shop.run("tick").commit == old
    assert shop.written == []
    mended = shop.push(*GOOD, config_map("two"))
    shop.applied()
    assert (shop.state().commit, shop.state().pin) == (mended, None)


def test_a_failed_first_deployment_has_no_rollback() -> None:
    shop = InMemoryShop()
    shop.configure(rollback=Rollback(on_failure=True))
    shop.meet = refused
    shop.push(*BAD)
    result = shop.run()
    assert result.outcome is Outcome.FAILED
    assert "nothing to roll back to" in "\n".join(map(str, result.problems))
    assert (bool(shop.state().attempt), shop.state().pin) == (True, None)


def test_a_rollback_to_a_commit_that_isnt_on_the_branch_fails_by_name_and_pins_nothing(shop: InMemoryShop) -> None:
    gone = "0123456789" * 4
    shop.handler.store(shop.target).update(lambda state: replace(state, commit=gone))
    new = shop.push(*BAD)
    for _ in range(2):
        result = shop.run("tick")
        assert result.outcome is Outcome.FAILED
    state = shop.state()
    assert (state.attempt and state.attempt.commit, state.pin) == (new, None)
    assert f"the rollback to {gone[:12]} fails" in state.status.message


def test_a_rollback_killed_at_any_write_is_finished_by_the_next_runs(shop: InMemoryShop) -> None:
    number, death = 0, Death(0, done=True)
    while not number or death.dead:
        number += 1
        fresh = InMemoryShop()
        fresh.configure(rollback=Rollback(on_failure=True))
        fresh.push(*GOOD)
        fresh.applied()
        old, new = fresh.host.head, fresh.push(*BAD)
        death = Death(number, done=True)
        fresh.meet = lambda call, do, death=death: death(call, lambda: refused(call, do))  # type: ignore[misc]  # bound now
        with contextlib.suppress(Killed):
            fresh.run()
        fresh.meet = refused
        if death.dead:
            with contextlib.suppress(AssertionError):  # it had given it back, or not taken it yet
                fresh.free_lease()
            fresh.configure()
        for _ in range(3):
            fresh.run("tick")
        assert_is_back(fresh, old, new)
    assert number > 8


# --- by hand
def test_rollback_by_hand_restores_the_newest_other_deployment_until_unpin(shop: InMemoryShop) -> None:
    old, new = shop.host.head, shop.push(*GOOD, config_map("two"))
    shop.applied()
    planned = shop.run("oneoff", rollback=True, dry_run=True)
    assert planned.plan
    assert (planned.commit, len(planned.plan.prunes)) == (old, 1)
    result = shop.run("oneoff", rollback=True, actor="ann")
    assert (result.outcome, result.commit, lives(shop)) == (Outcome.APPLIED, old, {"web": "1", "one": "1"})
    pin = shop.state().pin
    assert pin
    assert (pin.by, pin.automatic) == ("ann", False)
    assert shop.run("tick").commit == old
    shop.applied("oneoff", unpin=True)
    assert (shop.state().commit, "two" in lives(shop)) == (new, True)


def test_rollback_by_hand_leaves_an_open_attempt_for_the_recorded_commit(shop: InMemoryShop) -> None:
    shop.configure(rollback=Rollback())
    shop.applied()
    old = shop.host.head
    shop.push(*BAD)
    assert shop.run().outcome is Outcome.FAILED
    assert shop.state().attempt
    assert shop.run("replay", rollback=True, actor="ann").outcome in DONE
    assert (shop.state().commit, lives(shop)) == (old, {"web": "1", "one": "1"})


def test_with_nothing_before_it_a_rollback_by_hand_is_refused() -> None:
    shop = InMemoryShop()
    shop.push(config_map("one"))
    shop.applied()
    result = shop.run("oneoff", rollback=True)
    assert (result.outcome, result.code) == (Outcome.REFUSED, "request-refused")
    assert shop.state().status.phase == "applied"
    assert "--to SHA" in result.problems[0].fix


# --- with a Rollout
def test_the_commit_that_brings_the_first_rollout_is_rolled_back_to_one_without(shop: InMemoryShop) -> None:
    old = shop.host.head
    new = shop.roll((*GOOD, config_map("bad")), step("CreateOrUpdate", "bad"))
    result = shop.run()
    assert (result.outcome, result.commit) == (Outcome.ROLLED_BACK, old)
    assert result.plan
    assert f"commit {old[:12]} has no rollout.yaml: it goes without a Rollout" in result.plan.notes
    assert_is_back(shop, old, new)
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    shop.host.push(old)  # a head has no such leave: its author has lost the file
    assert "isn't in commit" in shop.run().message


def test_rollback_runs_its_own_steps_and_a_changed_rollout_alone_ends_the_pin() -> None:
    shop = InMemoryShop()
    shop.configure(rollout="rollout.yaml", rollback=Rollback(on_failure=True))
    before, after, added = (config_map("m"), config_map("s")), config_map("s", "2"), config_map("bad")
    old = shop.roll(before, step("Recreate", "m"), step("CreateOrUpdate", "s"))
    shop.applied()
    uid = shop.uid(before[0])
    shop.meet = refused
    shop.roll((before[0], after, added), step("CreateOrUpdate", "s"), step("CreateOrUpdate", "bad"))
    result = shop.run()
    assert (result.outcome, result.commit) == (Outcome.ROLLED_BACK, old)
    assert shop.uid(before[0]) != uid
    rollout = shop.state().rollout
    assert rollout
    assert (rollout.commit, [each.outcome for each in rollout.steps]) == (old, ["done", "done"])
    assert lives(shop) == {"m": "1", "s": "1"}
    shop.meet = straight
    mended = shop.roll((before[0], after, added), step("CreateOrUpdate", "s"))
    assert shop.applied("tick").commit == mended
    assert (lives(shop), shop.state().pin) == ({"m": "1", "s": "2", "bad": "1"}, None)
