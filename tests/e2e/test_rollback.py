"""A rollout that fails goes back by itself, a person's rollback by hand; and neither is tried again by anything but what mends it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from handler.config.settings import Rollback, Wait
from handler.model.result import Outcome
from tests.e2e import rollouts
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map
from tests.e2e.killed_runs import AT_ONCE, Wire, is_recorded, kill_after
from tests.e2e.one_target import DONE, Shop, told
from tests.e2e.rollback_commits import deployed, good, hanging
from tests.e2e.rollouts import group, step

WAIT = Wait(timeout=120.0)
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


def test_a_failed_first_deployment_has_no_rollback(open_shop: Open) -> None:
    shop = open_shop(**BACK | {"wait": Wait(timeout=1.0)})
    shop.create_namespace()
    shop.push(*bad(shop))
    result = shop.run()
    assert result.outcome is Outcome.FAILED, told(result)
    assert "nothing to roll back to" in "\n".join(map(str, result.problems))
    state = shop.state()
    assert state.attempt
    assert state.pin is None


def test_a_rollback_to_a_commit_that_isnt_on_the_branch_fails_by_name_and_pins_nothing(open_shop: Open) -> None:
    shop = open_shop(**BACK)
    deployed(shop)
    gone = "0123456789" * 4
    shop.handler.store(shop.target).update(lambda state: replace(state, commit=gone))
    new = shop.push(*bad(shop))
    result = shop.run("tick")
    assert result.outcome is Outcome.FAILED, told(result)
    assert f"the rollback to {gone[:12]} fails" in str(result.problems[0])
    assert shop.run("tick").outcome is Outcome.FAILED
    state = shop.state()
    assert (state.attempt and state.attempt.commit, state.pin) == (new, None)
    assert f"the rollback to {gone[:12]} fails" in state.status.message


@pytest.mark.slow
def test_a_rollback_killed_after_any_write_is_finished_by_the_next_run(open_shop: Open, wired: Wire) -> None:
    def begun() -> tuple[Shop, str, str]:
        shop = open_shop(**BACK)
        return shop, deployed(shop), shop.push(*bad(shop))

    shop, old, new = begun()
    wire = wired()
    result = shop.handler_at(wire.kubeconfig).run(shop.job())
    assert result.outcome is Outcome.ROLLED_BACK, told(result)
    assert_is_back(shop, old, new)
    total = sum(is_recorded(*request) for request in wire.seen)
    assert total > 8

    def crash(number: int) -> bool:
        shop, old, new = begun()
        killed = kill_after(shop, wired, number, is_recorded)
        tries = 0
        while (shop.state().commit, shop.state().attempt, shop.state().pin is None) != (old, None, False):
            tries += 1
            assert tries < 20, told(shop.run("tick"))
            shop.run("tick")
        assert_is_back(shop, old, new)
        return killed

    with ThreadPoolExecutor(AT_ONCE) as pool:
        numbers = range(4, total + 1)  # the first three are as those of any other run
        assert sum(pool.map(crash, numbers)) > len(numbers) // 2, "who had fewer writes had ended before the last ones"


def test_rollback_by_hand_restores_the_newest_other_deployment_until_unpin(open_shop: Open) -> None:
    shop = open_shop()
    old = deployed(shop)
    first = shop.documents
    new = shop.push(*good(shop), config_map(shop.name, "two"))
    shop.applied()
    planned = shop.run("oneoff", rollback=True, dry_run=True)
    assert planned.plan
    assert (planned.commit, len(planned.plan.prunes)) == (old, 1)
    result = shop.run("oneoff", rollback=True, actor="ann")
    assert (result.outcome, result.commit) == (Outcome.APPLIED, old), told(result)
    newer, shop.documents = shop.documents, first
    shop.assert_converged(old)
    pin = shop.state().pin
    assert pin
    assert (pin.by, pin.automatic) == ("ann", False)
    assert shop.run("tick").commit == old
    shop.documents = newer
    shop.applied("oneoff", unpin=True)
    shop.assert_converged(new)


def test_rollback_by_hand_leaves_an_open_attempt_for_the_recorded_commit(open_shop: Open) -> None:
    shop = open_shop(wait=WAIT)
    old = deployed(shop)
    first = shop.documents
    shop.push(*bad(shop))
    assert shop.run().outcome is Outcome.FAILED
    result = shop.run("replay", rollback=True, actor="ann")
    assert result.outcome in DONE, told(result)
    shop.documents = first
    shop.assert_converged(old)


def test_with_nothing_before_it_a_rollback_by_hand_is_refused(shop: Shop) -> None:
    shop.push(config_map(shop.name, "one"))
    shop.applied()
    result = shop.run("oneoff", rollback=True)
    assert (result.outcome, result.code) == (Outcome.REFUSED, "request-refused")
    assert shop.state().status.phase == "applied"
    assert "--to SHA" in result.problems[0].fix


def test_the_commit_that_brings_the_first_rollout_is_rolled_back_to_one_without(open_shop: Open) -> None:
    shop = open_shop(rollback=Rollback(on_failure=True))
    old = deployed(shop)
    shop.configure(rollout=rollouts.ROLLOUT)
    added = config_map(shop.name, "added", {"key": "1"})
    expected = [{"name": "never", "path": "{.data.key}", "value": {"static": "another"}}]
    never = [{"fieldComparisons": {"expectedValues": expected, "timeout": "1s", "pollInterval": "1s"}}]
    new = rollouts.push(shop, [*good(shop), added], group("all", step("CreateOrUpdate", added, success=never)))
    result = shop.run()
    assert (result.outcome, result.commit) == (Outcome.ROLLED_BACK, old), told(result)
    assert result.plan
    assert f"commit {old[:12]} has no {rollouts.ROLLOUT}: it goes without a Rollout" in result.plan.notes
    assert_is_back(shop, old, new)
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    shop.work.git("reset", "-q", "--hard", old)  # a head has no such leave: its author has lost the file
    shop.work.git("push", "-q", "--force", "origin", "HEAD")
    assert "isn't in commit" in shop.run().message


def test_rollback_runs_its_own_steps_and_a_changed_rollout_alone_ends_the_pin(open_shop: Open) -> None:
    shop = open_shop(rollout=rollouts.ROLLOUT, rollback=Rollback(on_failure=True))
    shop.create_namespace()
    migration, before, after = (config_map(shop.name, name, {"key": key}) for name, key in (("m", "1"), ("s", "1"), ("s", "2")))
    old = rollouts.push(shop, [migration, before], group("all", step("Recreate", migration), step("CreateOrUpdate", before)))
    shop.applied()
    uid = shop.versions([migration])
    added = config_map(shop.name, "added")
    expected = [{"name": "never", "path": "{.data.key}", "value": {"static": "another"}}]
    never = [{"fieldComparisons": {"expectedValues": expected, "timeout": "1s", "pollInterval": "1s"}}]
    rollouts.push(shop, [migration, after, added], group("all", step("CreateOrUpdate", after, success=never)))
    result = shop.run()
    assert (result.outcome, result.commit) == (Outcome.ROLLED_BACK, old), told(result)
    assert shop.versions([migration]) != uid
    assert (rollouts.progress(shop).commit, rollouts.outcomes(shop)) == (old, {"m": "done", "s": "done"})
    shop.documents = (migration, before)
    shop.assert_converged(old)
    mended = rollouts.push(shop, [migration, after, added], group("all", step("CreateOrUpdate", after)))
    assert shop.applied("tick").commit == mended
    shop.assert_converged(mended)
    assert shop.state().pin is None
