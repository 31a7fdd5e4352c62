"""Trouble leaves the record true: no failure outlasts its cause, what is transient is tried again, what is done stays done."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from handler.model.result import Outcome
from handler.state.record_format import seconds_of, stamp
from tests.e2e.api_proxy import is_object_write
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map, definition, offer
from tests.e2e.killed_runs import Wire
from tests.e2e.one_target import Shop, told
from tests.e2e.served_kinds import until_served
from tests.rooms.cluster.faulty_proxy import Handler, refuse


def test_the_commit_after_a_refused_one_is_applied_as_itself(shop: Shop) -> None:
    """The worker keeps what it rendered: of a refused commit it must keep nothing, also when its kind is served later."""
    good, never = config_map(shop.name, "a"), config_map(shop.name, "b")
    shop.push(good)
    shop.applied()
    shop.push(good, never, offer(shop.group, shop.name, "o"))
    assert shop.run().outcome is Outcome.FAILED
    shop.push(good)
    assert shop.run().outcome is Outcome.UNCHANGED
    shop.kubectl.apply(definition(shop.group))
    until_served(shop, "v1")
    shop.handler.discovery(shop.target).refresh()
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert shop.live(never) is None
    shop.assert_converged()
    assert shop.state().status.phase == "applied"


def test_a_failure_ends_when_the_branch_goes_back_to_what_is_applied(shop: Shop) -> None:
    good = shop.push(config_map(shop.name, "a"))
    shop.applied()
    shop.push(config_map("elsewhere", "c"))
    assert shop.run().outcome is Outcome.FAILED
    assert shop.state().status.phase == "failed"
    shop.work.git("reset", "-q", "--hard", good)
    shop.work.push(True)
    assert shop.run().outcome is Outcome.UNCHANGED
    status = shop.state().status
    assert (status.phase, status.failures, status.code) == ("applied", 0, "")


def test_a_hold_ends_when_the_branch_goes_back_to_what_is_applied(shop: Shop) -> None:
    """Held is also what replaces every live member, however few those are: a wrong path looks so."""
    good = shop.push(*(config_map(shop.name, f"c{number}") for number in range(4)))
    shop.applied()
    shop.push(config_map(shop.name, "other"))
    result = shop.run()
    assert result.outcome is Outcome.HELD, told(result)
    assert "all 4 live objects would be deleted" in result.message
    shop.work.git("reset", "-q", "--hard", good)
    shop.work.push(True)
    assert shop.run().outcome is Outcome.UNCHANGED
    state = shop.state()
    assert (state.status.phase, state.held) == ("applied", None)


def test_the_refused_run_of_another_installation_leaves_the_record_alone(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    before = shop.recorded()
    shop.settings = replace(shop.settings, installation="other")
    result = shop.handler_at(shop.kubectl.kubeconfig).run(shop.job("tick"))
    assert (result.outcome, result.code) == (Outcome.FAILED, "target-moved"), told(result)
    assert shop.recorded() == before


def test_a_lease_that_cant_be_renewed_after_the_write_doesnt_undo_the_record(open_shop: Open, wired: Wire) -> None:
    """Every PUT of the Lease is refused from the moment in which the object is written; until it ends there is time to record that."""
    shop = open_shop(lease=120.0)
    shop.create_namespace()
    shop.push(config_map(shop.name, "a"))
    wire = wired()
    written = threading.Event()

    def trouble(method: str, path: str) -> bool:
        if is_object_write(method, path):
            written.set()
        return written.is_set() and method == "PUT" and "/leases/" in path

    wire.wire.only = trouble
    wire.wire.tricks[:] = [refuse(403)] * 50
    result = shop.handler_at(wire.kubeconfig).run(shop.job())
    assert result.outcome is Outcome.APPLIED, told(result)
    assert len(wire.wire.tricks) < 50, "the release was refused"
    state = shop.state()
    assert (state.commit, state.status.phase, [run.outcome for run in state.history]) == (shop.head, "applied", ["applied"])


def test_a_drift_run_that_is_due_stays_due_until_it_was_made(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    due = stamp(time.time() + 600)
    store = shop.handler.store(shop.target)
    store.update(lambda state: replace(state, drift_due=due))
    assert shop.run("tick").next_try == seconds_of(due), "nothing is new"
    shop.push(config_map(shop.name, "a", {"key": "2"}))
    assert shop.applied().next_try == seconds_of(due), "a push that writes"
    shop.push(config_map(shop.name, "a", {"key": "2"}), force=True)
    assert shop.run("replay", force=True).next_try == seconds_of(due), "a run that finds live equal to git"
    assert shop.state().drift_due == due
    store.update(lambda state: replace(state, drift_due=stamp(time.time() - 1)))
    shop.kubectl.run("delete", "cm", "a", "-n", shop.name)
    assert shop.applied("tick").next_try == 0.0
    assert shop.state().drift_due == ""
    shop.assert_converged()


def test_a_record_that_cannot_be_read_now_is_read_again_soon(shop: Shop, wired: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.push(config_map(shop.name, "a"))
    wire = wired()
    worker = shop.handler_at(wire.kubeconfig)
    api = worker.objects(shop.target)._api
    monkeypatch.setattr(api, "_deadline", 0.2)
    wire.wire.only = lambda method, path: True
    wire.wire.tricks[:] = [refuse(503)] * 50
    began = time.time()
    result = worker.run(shop.job())
    assert (result.outcome, result.who) == (Outcome.FAILED, "nobody"), told(result)
    assert result.next_try > began
    wire.wire.tricks.clear()
    monkeypatch.setattr(api, "_deadline", 60.0)
    assert worker.run(shop.job("retry")).outcome is Outcome.APPLIED


def test_a_worker_told_to_stop_before_its_first_write_records_nothing(shop: Shop, wired: Wire) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "b"))
    before = shop.state()
    stop = threading.Event()
    wire = wired()

    def tell(_: Handler) -> bool:
        stop.set()
        return True

    wire.meet(1, tell, lambda method, path: "/leases/" in path)
    result = shop.handler_at(wire.kubeconfig).run(shop.job(), stop)
    assert (result.outcome, result.code) == (Outcome.BUSY, "stopping"), told(result)
    after = shop.state()
    assert (after.status, after.history, after.commit) == (before.status, before.history, before.commit)
    assert shop.live(config_map(shop.name, "b")) is None
    shop.applied("tick")
    shop.assert_converged()


def test_while_one_target_asks_for_the_cluster_uid_others_use_the_cached_one(shop: Shop, wired: Wire) -> None:
    wire = wired()
    uid = shop.handler_at(wire.kubeconfig).dependencies(shop.name).cluster_uid
    known = uid(False)
    seen: list[str] = []

    def ask_meanwhile(_: Handler) -> bool:
        seen.append(uid(False))
        return True

    wire.forget()
    wire.meet(1, ask_meanwhile, lambda method, path: True)
    assert uid(True) == known
    assert seen == [known]
    assert len(wire.seen) == 1
