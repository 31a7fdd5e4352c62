from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import pytest

from handler.model.errors import Busy, LeaseLost
from handler.state.lease import HeldLease
from handler.state.lease_record import LeaseRecord, new_lease, taken
from tests.fakes.clock import FakeClock, World
from tests.fakes.objects import FakeObjects
from tests.unit.state.lease_inspection import NAME, Make, body, lost


def test_a_free_lease_is_taken_and_released(lock: Make, objects: FakeObjects) -> None:
    held = lock().acquire()
    held.check()
    assert body(objects)["spec"]["holderIdentity"].startswith("one_")
    assert held.token == f"{body(objects)['metadata']['uid']}.1"
    assert held.release()
    assert "holderIdentity" not in body(objects)["spec"]
    assert lost(held)


def test_a_held_lease_is_busy_and_what_is_asked_is_left_on_it(lock: Make, objects: FakeObjects) -> None:
    first = lock().acquire()
    order: list[str] = []
    objects.before = lambda verb, sent: order.append(verb) if verb == "replace" else None
    with pytest.raises(Busy, match="one_"):
        lock("two").acquire(requested=lambda: order.append("state"))
    assert order == ["state", "replace"]
    assert "two" in body(objects)["metadata"]["annotations"]["anneal.dev/requested"]
    first.renew()
    assert "two" in body(objects)["metadata"]["annotations"]["anneal.dev/requested"]


def test_a_lease_is_removed_by_its_holder_whatever_is_asked_meanwhile(lock: Make, objects: FakeObjects) -> None:
    held = lock().acquire()
    lock("two").request()
    held.remove()
    assert objects.get("Lease", "anneal-system", NAME) is None
    assert lost(held)
    held.hand_over()
    assert objects.get("Lease", "anneal-system", NAME) is None


def test_a_lease_that_another_holds_by_now_is_not_removed(lock: Make, objects: FakeObjects) -> None:
    held = lock().acquire()
    found = objects.get("Lease", "anneal-system", NAME)
    assert found
    objects.replace({**found, "spec": {**found["spec"], "holderIdentity": "two", "leaseTransitions": 9}})
    with pytest.raises(LeaseLost):
        held.remove()
    assert objects.get("Lease", "anneal-system", NAME) is not None


def test_a_request_that_raced_with_a_renewal_is_tried_again(lock: Make, objects: FakeObjects) -> None:
    held = lock().acquire()

    def interfere(verb: str, sent: dict[str, Any]) -> None:
        if verb == "replace" and "annotations" in sent["metadata"]:
            objects.before = None
            held.renew()

    objects.before = interfere
    assert lock("two").request()
    assert not held.release()


def test_a_dead_holders_lease_is_taken_after_one_duration_of_watching(lock: Make, world: World) -> None:
    first = lock().acquire()
    began = world.now
    second = lock("two").acquire(wait=15)
    assert world.now - began <= 16.5
    assert lost(first)
    second.check()


@dataclass
class Renewing(FakeClock):
    """The clock of a worker that waits for a holder that renews."""

    held: HeldLease | None = None

    def wait(self, event: threading.Event, seconds: float) -> bool:
        if self.held and not threading.current_thread().name.startswith("renew "):
            self.held.renew()
        return super().wait(event, seconds)


def test_a_renewed_lease_is_not_taken_however_long_it_is_watched(lock: Make, world: World) -> None:
    first = lock().acquire()
    with pytest.raises(Busy):
        lock("two", Renewing(world, held=first)).acquire(wait=100)
    first.check()


def test_an_overdue_lease_is_taken_at_once_by_the_servers_clock(lock: Make, world: World) -> None:
    first = lock().acquire()
    world.advance(19)
    with pytest.raises(Busy):
        lock("two").acquire()
    world.advance(3)
    lock("two").acquire().check()
    assert lost(first)


def test_an_earlier_look_at_the_lease_counts_whatever_is_asked_since(lock: Make, world: World, objects: FakeObjects) -> None:
    lock().acquire()
    second = lock("two")
    with pytest.raises(Busy):
        second.acquire()
    changed = body(objects)
    changed["metadata"]["annotations"]["anneal.dev/requested"] = "again"
    objects.replace(changed)
    world.advance(15.5)
    second.acquire().check()


def test_a_stop_ends_the_watch(lock: Make) -> None:
    lock().acquire()
    stop = threading.Event()
    stop.set()
    with pytest.raises(Busy):
        lock("two").acquire(wait=1000, stop=stop)
    with pytest.raises(Busy):
        lock("two").force_unlock(stop)


def test_a_lost_answer_to_taking_the_lease_is_recognised(lock: Make, objects: FakeObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    lock().acquire().release()
    real = objects.replace

    def lossy(body: dict[str, Any]) -> dict[str, Any]:
        monkeypatch.undo()
        real(body)
        return real(body)

    monkeypatch.setattr(objects, "replace", lossy)  # the cluster room repeats a PUT whose answer was lost
    held = lock("two").acquire()
    assert held.token.endswith(".3")


def test_peek_tells_who_holds_it(lock: Make, world: World) -> None:
    assert lock().peek() is None
    held = lock().acquire()
    world.advance(7)
    lock("two").request()
    peek = lock("two").peek()
    assert peek
    assert (peek.holder.split("_")[0], peek.renewing, round(peek.age), peek.requested) == ("one", True, 7, True)
    world.advance(20)
    peek = lock("two").peek()
    assert peek
    assert not peek.renewing
    held.hand_over()
    assert lock("two").peek() is None


def test_unlock_refuses_while_the_holder_renews(lock: Make, world: World) -> None:
    held = lock().acquire()
    with pytest.raises(Busy, match="renews it"):
        lock("two", Renewing(world, held=held)).force_unlock()
    held.check()


def test_unlock_frees_a_dead_holders_lease_and_its_ghost_notices(lock: Make, world: World, objects: FakeObjects) -> None:
    held = lock().acquire()
    lock("two").request()
    assert lock("two").force_unlock().startswith("one_")
    assert "anneal.dev/requested" in body(objects)["metadata"]["annotations"]
    assert lost(held)
    assert lock("two").force_unlock() == ""


def test_a_foreign_lease_without_a_duration_is_watched_for_ours(lock: Make, objects: FakeObjects, world: World) -> None:
    objects.create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": NAME, "namespace": "anneal-system"},
            "spec": {"holderIdentity": "x", "renewTime": "rubbish"},
        }
    )
    with pytest.raises(Busy):
        lock().acquire()
    began = world.now
    lock().acquire(wait=15)
    assert world.now - began >= 15


@pytest.mark.parametrize(("transitions", "next_one"), [(2**31 - 1, 0), (-5, 1), ("7", 1), (None, 1)])
def test_a_lease_is_taken_whatever_its_count_of_transitions_is(transitions: object, next_one: int) -> None:
    next_body = taken({**new_lease("anneal-system", NAME), "spec": {"leaseTransitions": transitions}}, "one", 30.0, 1.0)
    assert next_body["spec"]["leaseTransitions"] == next_one
    of = LeaseRecord.of({"metadata": {"uid": "u"}, "spec": {"leaseTransitions": transitions, "renewTime": "9999-12-31T23:59:59.999999Z"}})
    assert (of.transitions >= 0, of.renewed) == (True, 0.0)
