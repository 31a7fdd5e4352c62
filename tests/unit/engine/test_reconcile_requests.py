"""What a person asked is done once, whichever worker runs then: approvals, explicit commits, runs that must not prune, dry runs.

What one run does in several rounds is one result, and an entry of the history for each commit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.model.event import Job
from handler.model.names import run_id
from handler.model.result import Outcome, Result
from handler.state.record import Attempt
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, straight
from tests.unit.engine.in_memory_shop import DONE, Body, InMemoryShop, config_map

pytestmark = pytest.mark.slow

INVALID = {"kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422, "message": "data: Invalid value"}


def maps(count: int = 14) -> list[Body]:
    """Thirteen deletions of fourteen are held."""
    return [config_map(f"c{number}") for number in range(count)]


def living(shop: InMemoryShop) -> int:
    return sum(bool(shop.live(each)) for each in maps())


def refused(call: Call, do: Callable[[], Reply]) -> Reply:
    """The server refuses the ConfigMap `bad`."""
    return (422, INVALID, {}) if call.asked.path.endswith("/bad") and call.asked.method == "PATCH" else do()


def held(shop: InMemoryShop) -> str:
    found = shop.state().held
    assert found
    assert shop.state().status.phase == "held"
    return found.id


@pytest.fixture
def grown(shop: InMemoryShop) -> str:
    """A shop of fourteen; return the commit at which it had one."""
    small = shop.push(*maps(1))
    shop.applied()
    shop.push(*maps())
    shop.applied()
    return small


def assert_back_at(shop: InMemoryShop, commit: str) -> None:
    pin = shop.state().pin
    assert pin
    assert (pin.commit, shop.state().commit, living(shop)) == (commit, commit, 1)


def test_what_is_held_while_an_attempt_is_open_is_written_down_and_can_be_approved(shop: InMemoryShop) -> None:
    shop.push(*maps())
    shop.applied()
    shop.configure(validate="none")
    shop.meet = refused
    shop.push(*maps(), config_map("bad"))
    assert shop.run().outcome is Outcome.FAILED
    assert shop.state().attempt, "the run broke off between its writes"
    shop.push(*maps(1))
    assert shop.run().outcome is Outcome.HELD
    first = held(shop)
    assert shop.run("tick").outcome is Outcome.HELD
    assert held(shop) == first
    shop.applied("replay", approve=first, actor="ann")
    assert (living(shop), shop.state().attempt) == (1, None)


def test_an_approved_rollback_is_applied_and_stays(shop: InMemoryShop, grown: str) -> None:
    assert shop.run("replay", commit=grown, actor="ann").outcome is Outcome.HELD
    shop.applied("replay", approve=held(shop), actor="ben")
    assert_back_at(shop, grown)
    assert (shop.state().held, shop.state().approval) == (None, None)
    for trigger in ("tick", "drift"):
        assert shop.run(trigger).outcome is Outcome.UNCHANGED
    assert_back_at(shop, grown)


@pytest.mark.parametrize("attempt", [True, False], ids=["attempt open", "Lease held"])
def test_a_requested_commit_left_on_the_lease_is_not_lost(shop: InMemoryShop, attempt: bool) -> None:
    small = shop.push(*maps(1))
    shop.applied()
    shop.push(*maps(3))
    shop.applied()
    store, lease = shop.handler.store(shop.target), shop.handler.lock(shop.target).acquire()
    if attempt:
        opened = Attempt(shop.host.head, "a" * 64, "b" * 64, lease.token, "2026-03-01T12:00:00Z")
        store.swap(store.read(), replace(shop.state(), attempt=opened), lease.token)
    impatient = threading.Event()
    impatient.set()
    assert shop.another().run(Job("shop", "replay", commit=small, actor="ann"), impatient).outcome is Outcome.BUSY
    lease.hand_over()
    assert shop.run("tick").outcome in DONE
    assert_back_at(shop, small)


@pytest.mark.parametrize("why", ["a recovery", "a request"])
def test_a_run_without_prune_prunes_in_no_round(shop: InMemoryShop, why: str) -> None:
    keep, gone = config_map("keep"), config_map("gone")
    shop.push(keep, gone)
    shop.applied()
    shop.push(config_map("keep", "2"))
    if why == "a recovery":
        shop.lose_record()
        result = shop.run("oneoff", prune=False)
    else:
        result = shop.meeting("PATCH", "keep", lambda: ask(shop), trigger="oneoff", prune=False)
    assert result.outcome in DONE
    assert shop.live(gone)
    assert [orphan.identity.name for orphan in shop.state().orphans] == ["gone"]
    shop.applied("drift")
    assert shop.live(gone) is None


def ask(shop: InMemoryShop, *pushed: Body) -> None:
    """Push another commit, where one is given, and ask the holder of the Lease for one more round."""
    if pushed:
        shop.push(*pushed)
    assert shop.another().lock(shop.target).request()


def rounds(shop: InMemoryShop, *pushed: Body, run: str = "") -> Result:
    """Run; at its first write another round is asked for."""
    left = [True]

    def meet(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.writes and "/namespaces/shop/configmaps/" in call.asked.path and left:
            left.clear()
            ask(shop, *pushed)
        return refused(call, do)

    shop.meet = meet
    result = shop.run("push", actor="ann", run=run)
    shop.meet = straight
    assert not left
    return result


def test_each_commit_of_a_run_has_an_entry_in_the_history_and_the_run_is_all_of_them(shop: InMemoryShop) -> None:
    older, announced = shop.push(config_map("a")), run_id("shop")
    result = rounds(shop, config_map("a"), config_map("b"), run=announced)
    assert (result.outcome, result.run, result.counts) == (Outcome.APPLIED, announced, {"created": 2})
    assert sorted(change.identity.name for change in result.written) == ["a", "b"]
    second, first = shop.state().history
    assert [run.commit for run in (first, second)] == [older, shop.host.head]
    assert [run.counts.get("created") for run in (first, second)] == [1, 1]
    assert first.id == announced != second.id


def test_a_second_round_without_changes_reports_what_the_first_round_applied(shop: InMemoryShop) -> None:
    shop.push(*maps(3))
    result = rounds(shop, run=run_id("shop"))
    assert (result.outcome, result.counts, result.message) == (Outcome.APPLIED, {"created": 3}, "3 objects written")
    (entry,) = shop.state().history
    assert (entry.id, entry.outcome, entry.counts) == (result.run, "applied", {"created": 3})


def test_a_hold_after_a_round_that_wrote_tells_both(shop: InMemoryShop) -> None:
    """Another commit, which deletes nearly all, is pushed while the first one is written."""
    shop.push(*maps())
    result = rounds(shop, *maps(1))
    assert (result.outcome, result.counts["created"], result.counts["to prune"]) == (Outcome.HELD, 14, 13)
    assert "; before that, 14 objects written" in result.message
    assert (len(result.written), len(result.left)) == (14, 13)


def test_a_failure_after_a_round_that_wrote_counts_that_and_stays_one(shop: InMemoryShop) -> None:
    shop.push(*maps(2))
    result = rounds(shop, *maps(2), config_map("bad"))
    assert (result.outcome, result.code, result.counts) == (Outcome.FAILED, "plan-refused", {"created": 2})
    newest, older = shop.state().history
    assert [(run.outcome, run.counts) for run in (newest, older)] == [("failed", {}), ("applied", {"created": 2})]


def test_a_recovery_killed_after_its_first_write_still_prunes_nothing(shop: InMemoryShop) -> None:
    """The record that the killed run left has no commit: it is still a recovery."""
    shop.push(config_map("a"), *maps(2))
    shop.applied()
    shop.lose_record()
    shop.push(config_map("a", "2"), config_map("bad"))
    shop.configure(validate="none")
    shop.meet = refused
    assert shop.run().outcome is Outcome.FAILED
    assert (shop.state().commit, bool(shop.state().attempt)) == ("", True)
    shop.push(config_map("a", "2"))
    first = shop.run("tick")
    assert (first.counts.get("skipped"), "pruned" in first.counts, living(shop)) == (2, False, 2)
    assert shop.applied("tick").counts["pruned"] == 2


def test_a_dry_run_takes_no_approval_and_no_unpin(shop: InMemoryShop) -> None:
    shop.push(*maps())
    shop.applied()
    shop.push(*maps(1))
    assert shop.run().outcome is Outcome.HELD
    before = shop.server.store.revision
    assert shop.run("oneoff", dry_run=True, approve=held(shop), unpin=True).outcome is Outcome.PLANNED
    assert shop.server.store.revision == before
