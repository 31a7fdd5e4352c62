"""Trouble leaves the record true: no failure outlasts its cause, what is transient is tried again, what is done stays done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.config.settings import Settings
from handler.model.backoff import Backoff
from handler.model.event import Delivery, Job
from handler.model.result import Outcome
from handler.state.record_format import seconds_of, stamp
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, straight
from tests.fakes.engine import engine
from tests.unit.engine.in_memory_shop import RECORD, InMemoryShop, config_map

pytestmark = pytest.mark.slow

A = config_map("a")


def refusing(status: int, chosen: Callable[[Call], bool]) -> Callable[[Call, Callable[[], Reply]], Reply]:
    said = {"kind": "Status", "status": "Failure", "code": status, "message": "no"}
    return lambda call, do: (status, said, {}) if chosen(call) else do()


@pytest.fixture
def shop() -> InMemoryShop:
    return InMemoryShop.holding(A)


def test_a_failure_ends_when_the_branch_goes_back_to_what_is_applied(shop: InMemoryShop) -> None:
    good = shop.host.head
    shop.push(config_map("c", space="elsewhere"))
    assert shop.run().outcome is Outcome.FAILED
    assert shop.state().status.phase == "failed"
    shop.host.push(good)
    assert shop.run().outcome is Outcome.UNCHANGED
    status = shop.state().status
    assert (status.phase, status.failures, status.code) == ("applied", 0, "")


def test_a_hold_ends_when_the_branch_goes_back_to_what_is_applied() -> None:
    """Held is also what replaces every live member, however few those are: a wrong path looks so."""
    shop = InMemoryShop()
    good = shop.push(*(config_map(f"c{number}") for number in range(4)))
    shop.applied()
    shop.push(config_map("other"))
    result = shop.run()
    assert result.outcome is Outcome.HELD
    assert "all 4 live objects would be deleted" in result.message
    shop.host.push(good)
    assert shop.run().outcome is Outcome.UNCHANGED
    assert (shop.state().status.phase, shop.state().held) == ("applied", None)


def test_the_refused_run_of_another_installation_leaves_the_record_alone(shop: InMemoryShop) -> None:
    before = shop.server.store.get(RECORD)
    other = engine(shop.server, shop.host, Settings(targets=(shop.target,), installation="other"))
    result = other.run(Job("shop", "tick"))
    assert (result.outcome, result.code) == (Outcome.FAILED, "target-moved")
    assert shop.server.store.get(RECORD) == before


def test_a_lease_that_cant_be_renewed_after_the_write_doesnt_undo_the_record(shop: InMemoryShop) -> None:
    """Every PUT of the Lease is refused from the moment in which the object is written; until it ends there is time to record that."""
    met: list[str] = []

    def trouble(call: Call) -> bool:
        written = bool(shop.written)
        met.extend([call.asked.path] if written and "/leases/" in call.asked.path and call.asked.method == "PUT" else [])
        return written and "/leases/" in call.asked.path and call.asked.method == "PUT"

    shop.push(config_map("a", "2"))
    shop.meet = refusing(403, trouble)
    assert shop.run().outcome is Outcome.APPLIED
    assert met, "the release was refused"
    state = shop.state()
    assert (state.commit, state.status.phase, [run.outcome for run in state.history]) == (shop.host.head, "applied", ["applied"] * 2)


def test_a_drift_run_that_is_due_stays_due_until_it_was_made(shop: InMemoryShop) -> None:
    due = stamp(time.time() + 600)
    store = shop.handler.store(shop.target)
    store.update(lambda state: replace(state, drift_due=due))
    assert shop.run("tick").next_try == seconds_of(due), "nothing is new"
    shop.push(config_map("a", "2"))
    assert shop.applied().next_try == seconds_of(due), "a push that writes"
    shop.push(config_map("a", "2"))
    assert shop.run("replay", force=True).next_try == seconds_of(due), "a run that finds live equal to git"
    assert shop.state().drift_due == due
    store.update(lambda state: replace(state, drift_due=stamp(time.time() - 1)))
    shop.delete(A)
    result = shop.run("tick")
    assert (result.outcome, result.next_try, shop.state().drift_due) == (Outcome.APPLIED, 0.0, "")


def test_a_record_that_cannot_be_read_now_is_read_again_soon(shop: InMemoryShop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.push(config_map("a", "2"))
    shop.configure()
    monkeypatch.setattr(shop.handler.records(shop.target)._api, "_deadline", 0.1)
    monkeypatch.setattr("handler.cluster.api._PAUSES", Backoff(0.01, 0.02))
    shop.meet = refusing(503, lambda call: True)
    began = time.time()
    result = shop.run()
    assert (result.outcome, result.who) == (Outcome.FAILED, "nobody")
    assert result.next_try > began
    shop.meet = straight
    monkeypatch.undo()
    assert shop.run("retry").outcome is Outcome.APPLIED


def test_a_worker_told_to_stop_before_its_first_write_records_nothing(shop: InMemoryShop) -> None:
    shop.push(A, config_map("b"))
    before, stop = shop.state(), threading.Event()

    def tell(call: Call, do: Callable[[], Reply]) -> Reply:
        if "/leases/" in call.asked.path:
            stop.set()
        return do()

    shop.meet = tell
    result = shop.handler.run(Job("shop", "push"), stop)
    assert (result.outcome, result.code) == (Outcome.BUSY, "stopping")
    after = shop.state()
    assert (after.status, after.history, after.commit, shop.written) == (before.status, before.history, before.commit, [])
    shop.meet = straight
    shop.applied("tick")
    assert shop.live(config_map("b"))


def test_while_one_target_asks_for_the_cluster_uid_others_use_the_cached_one(shop: InMemoryShop) -> None:
    seen, asked = list[str](), list[Call]()
    shop.configure()
    uid = shop.handler.dependencies("shop").cluster_uid
    known = uid(False)

    def meanwhile(call: Call, do: Callable[[], Reply]) -> Reply:
        asked.append(call)
        seen.append(uid(False))
        return do()

    shop.meet = meanwhile
    assert uid(True) == known
    assert (seen, len(asked)) == ([known], 1)


def arrived(number: int) -> tuple[Delivery, ...]:
    return (Delivery(str(number), "github", "refs/heads/main", "a" * 40, "ada", "2026-03-01T12:00:00Z"),)


def test_a_delivery_alone_writes_no_record_and_is_kept_by_the_next_write(shop: InMemoryShop) -> None:
    shop.configure(drift="report")
    shop.push(config_map("a", "2"))
    shop.applied(deliveries=arrived(1))
    before = shop.server.store.get(RECORD)
    assert shop.run(force=True, deliveries=arrived(2)).outcome is Outcome.UNCHANGED
    assert shop.server.store.get(RECORD) == before, "nothing but a delivery was new"
    shop.patch(A, {"data": {"key": "3"}})
    assert shop.run("drift", deliveries=arrived(3)).outcome is Outcome.DRIFTED
    shop.push(config_map("a", space="elsewhere"))
    assert shop.run(deliveries=arrived(4)).outcome is Outcome.FAILED
    assert [delivery.id for delivery in shop.state().deliveries] == ["1", "3", "4"]


def test_a_recovery_holds_a_mass_deletion_and_leaves_requests_to_the_run_after_it() -> None:
    shop = InMemoryShop()
    many = [config_map(f"c{number}") for number in range(14)]
    shop.push(*many)
    shop.applied()
    shop.push(config_map("only"))
    shop.lose_record()
    first = shop.meeting("PATCH", "only", lambda: shop.another().lock(shop.target).request())
    assert (first.outcome, first.counts) == (Outcome.APPLIED, {"created": 1, "skipped": 14})
    assert shop.run("tick").outcome is Outcome.HELD
    assert all(map(shop.live, many))
