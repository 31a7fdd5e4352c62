"""What a person asked is done once, whichever worker runs then: approvals, explicit commits, runs that must not prune, dry runs."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from handler.engine.run import transitions
from handler.model.names import run_id, state_name
from handler.model.result import Outcome
from handler.state.record import Attempt
from tests.e2e.api_proxy import is_object_write
from tests.e2e.documents import Document, config_map
from tests.e2e.killed_runs import Wire
from tests.e2e.one_target import DONE, STATES, Shop, told
from tests.rooms.cluster.faulty_proxy import Handler


def maps(shop: Shop, count: int = 14) -> list[Document]:
    """Thirteen deletions of fourteen are held."""
    return [config_map(shop.name, f"c{number}") for number in range(count)]


def held(shop: Shop) -> str:
    found = shop.state().held
    assert found
    assert shop.state().status.phase == "held"
    return found.id


def pinned(shop: Shop) -> str:
    pin = shop.state().pin
    return pin.commit if pin else ""


def test_what_is_held_while_an_attempt_is_open_is_written_down_and_can_be_approved(shop: Shop) -> None:
    shop.push(*maps(shop))
    shop.applied()
    shop.configure(validate="none")
    shop.push(*maps(shop), config_map(shop.name, "bad", {"NO KEY/": "x"}))
    assert shop.run().outcome is Outcome.FAILED
    assert shop.state().attempt, "the run broke off between its writes"
    shop.push(*maps(shop, 1))
    assert shop.run().outcome is Outcome.HELD
    first = held(shop)
    assert shop.run("tick").outcome is Outcome.HELD
    assert held(shop) == first
    shop.applied("replay", approve=first, actor="ann")
    shop.assert_converged()


@pytest.fixture
def grown(shop: Shop) -> str:
    """A shop of fourteen; return the commit at which it had one."""
    small = shop.push(*maps(shop, 1))
    shop.applied()
    shop.push(*maps(shop))
    shop.applied()
    return small


def assert_back_at(shop: Shop, commit: str) -> None:
    assert pinned(shop) == commit
    shop.documents = tuple(maps(shop, 1))
    shop.assert_converged(commit)


def test_an_approved_rollback_is_applied_and_stays(shop: Shop, grown: str) -> None:
    assert shop.run("replay", commit=grown, actor="ann").outcome is Outcome.HELD
    shop.applied("replay", approve=held(shop), actor="ben")
    assert_back_at(shop, grown)
    assert (shop.state().held, shop.state().approval) == (None, None)
    for trigger in ("tick", "drift"):
        assert shop.run(trigger).outcome is Outcome.UNCHANGED
    assert_back_at(shop, grown)


@pytest.mark.parametrize("attempt", [True, False], ids=["attempt open", "Lease held"])
def test_a_requested_commit_left_on_the_lease_is_not_lost(shop: Shop, attempt: bool) -> None:
    small = shop.push(*maps(shop, 1))
    shop.applied()
    shop.push(*maps(shop, 3))
    shop.applied()
    store, lease = shop.handler.store(shop.target), shop.handler.lock(shop.target).acquire()
    if attempt:
        stored = store.read()
        opened = Attempt(shop.head, "a" * 64, "b" * 64, lease.token, "2026-03-01T12:00:00Z")
        store.swap(stored, replace(shop.state(), attempt=opened), lease.token)
    impatient = threading.Event()
    impatient.set()
    asking = shop.handler_at(shop.kubectl.kubeconfig)
    assert asking.run(shop.job("replay", commit=small, actor="ann"), impatient).outcome is Outcome.BUSY
    assert pinned(shop) == small
    lease.hand_over()
    assert shop.run("tick").outcome in DONE
    assert_back_at(shop, small)


@pytest.mark.parametrize("why", ["a recovery", "a request"])
def test_a_run_without_prune_prunes_in_no_round(shop: Shop, wired: Wire, why: str) -> None:
    keep, gone = config_map(shop.name, "keep"), config_map(shop.name, "gone")
    shop.push(keep, gone)
    shop.applied()
    shop.push(config_map(shop.name, "keep", {"key": "2"}))
    wire = wired()

    def request(_: Handler) -> bool:
        assert shop.handler.lock(shop.target).request()
        return True

    if why == "a recovery":
        shop.kubectl.run("delete", "cm", state_name(shop.name), "-n", STATES)
    else:
        wire.meet(1, request, is_object_write)
    result = shop.handler_at(wire.kubeconfig).run(shop.job("oneoff", prune=False))
    assert result.outcome in DONE, told(result)
    assert shop.live(gone)
    assert [orphan.identity.name for orphan in shop.state().orphans] == ["gone"]
    shop.run("drift")
    shop.assert_converged()


def test_each_commit_of_a_run_has_an_entry_in_the_history_and_the_run_is_all_of_them(shop: Shop, wired: Wire) -> None:
    older = shop.push(config_map(shop.name, "a"))
    wire = wired()

    def push_and_ask(_: Handler) -> bool:
        shop.push(config_map(shop.name, "a"), config_map(shop.name, "b"))
        assert shop.handler.lock(shop.target).request()
        return True

    wire.meet(1, push_and_ask, is_object_write)
    announced = run_id(shop.name)
    result = shop.handler_at(wire.kubeconfig).run(shop.job("push", actor="ann", run=announced))
    assert (result.outcome, result.run, result.counts) == (Outcome.APPLIED, announced, {"created": 2}), told(result)
    assert sorted(change.identity.name for change in result.written) == ["a", "b"]
    shop.assert_converged()
    second, first = shop.state().history
    assert [(run.commit, run.subject) for run in (first, second)] == [(older, "1 documents"), (shop.head, "2 documents")]
    assert [run.counts.get("created") for run in (first, second)] == [1, 1]
    assert first.id == announced != second.id


def test_a_second_round_without_changes_reports_what_the_first_round_applied(shop: Shop, wired: Wire) -> None:
    shop.push(*maps(shop, 3))
    wire = wired()

    def ask(_: Handler) -> bool:
        assert shop.handler.lock(shop.target).request()
        return True

    wire.meet(1, ask, is_object_write)
    result = shop.handler_at(wire.kubeconfig).run(shop.job("push", run=run_id(shop.name)))
    assert (result.outcome, result.counts, result.message) == (Outcome.APPLIED, {"created": 3}, "3 objects written"), told(result)
    assert len(shop.labelled()) == 3
    (entry,) = shop.state().history
    assert (entry.id, entry.outcome, entry.counts) == (result.run, "applied", {"created": 3})


def test_a_hold_after_a_round_that_wrote_tells_both(shop: Shop, wired: Wire) -> None:
    """Another commit, which deletes nearly all, is pushed while the first one is written."""
    shop.push(*maps(shop))
    wire = wired()

    def push_and_ask(_: Handler) -> bool:
        shop.push(*maps(shop, 1))
        assert shop.handler.lock(shop.target).request()
        return True

    wire.meet(1, push_and_ask, is_object_write)
    result = shop.handler_at(wire.kubeconfig).run(shop.job("push"))
    many = len(shop.labelled())
    assert (result.outcome, result.counts["created"], result.counts["to prune"]) == (Outcome.HELD, many, many - 1), told(result)
    assert f"; before that, {many} objects written" in result.message
    assert (len(result.written), len(result.left)) == (many, many - 1)


def test_a_failure_after_a_round_that_wrote_counts_that_and_stays_one(shop: Shop, wired: Wire) -> None:
    shop.push(*maps(shop, 2))
    wire = wired()

    def push_and_ask(_: Handler) -> bool:
        shop.push(*maps(shop, 2), config_map(shop.name, "bad", {"NO KEY/": "x"}))
        assert shop.handler.lock(shop.target).request()
        return True

    wire.meet(1, push_and_ask, is_object_write)
    result = shop.handler_at(wire.kubeconfig).run(shop.job("push"))
    assert (result.outcome, result.code, result.counts) == (Outcome.FAILED, "plan-refused", {"created": 2}), told(result)
    newest, older = shop.state().history
    assert [(run.outcome, run.counts) for run in (newest, older)] == [("failed", {}), ("applied", {"created": 2})]


def test_a_recovery_killed_after_its_first_write_still_prunes_nothing(shop: Shop) -> None:
    """The record that the killed run left has no commit: it is still a recovery."""
    shop.push(config_map(shop.name, "a"), *maps(shop, 2))
    shop.applied()
    shop.kubectl.run("delete", "cm", state_name(shop.name), "-n", STATES)
    shop.push(config_map(shop.name, "a", {"key": "2"}), config_map(shop.name, "bad", {"NO KEY/": "x"}))
    shop.configure(validate="none")
    assert shop.run().outcome is Outcome.FAILED
    assert (shop.state().commit, bool(shop.state().attempt)) == ("", True)
    shop.push(config_map(shop.name, "a", {"key": "2"}))
    first = shop.run("tick")
    assert (first.counts.get("skipped"), len(shop.labelled())) == (2, 3)
    assert "pruned" not in first.counts
    assert shop.applied("tick").counts["pruned"] == 2
    shop.assert_converged()


def test_an_approval_ends_when_what_was_approved_is_no_longer_what_is_rendered(shop: Shop) -> None:
    shop.push(*maps(shop))
    shop.applied()
    before = shop.versions()
    shop.push(*maps(shop, 2))
    assert shop.run().outcome is Outcome.HELD
    approved = held(shop)
    shop.handler.store(shop.target).update(lambda state: transitions.approve(state, "ann", 1_772_366_400.0))
    shop.push(*maps(shop, 1))
    assert shop.run().outcome is Outcome.HELD
    assert held(shop) != approved
    assert shop.state().approval is None
    assert shop.versions() == before


def test_a_dry_run_takes_no_approval_and_no_unpin(shop: Shop) -> None:
    shop.push(*maps(shop))
    shop.applied()
    shop.push(*maps(shop, 1))
    assert shop.run().outcome is Outcome.HELD
    before, objects = shop.recorded(), shop.versions()
    result = shop.run("oneoff", dry_run=True, approve=held(shop), unpin=True)
    assert result.outcome is Outcome.PLANNED, told(result)
    assert (shop.recorded(), shop.versions()) == (before, objects)
