from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from handler.model.errors import Busy, ClusterUnavailable, LeaseLost
from handler.state.held_lease import HeldLease
from handler.state.lease import LeaseLock
from tests.fakes.clock import FakeClock, World
from tests.fakes.objects import FakeObjects

NAME = "anneal-shop"
Make = Callable[..., LeaseLock]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def objects(world: World) -> FakeObjects:
    return FakeObjects(lambda: world.now)


@pytest.fixture
def lock(world: World, objects: FakeObjects) -> Make:
    def make(holder: str = "one", clock: FakeClock | None = None) -> LeaseLock:
        return LeaseLock(objects, "anneal-system", NAME, holder, 15.0, clock or FakeClock(world))

    return make


def body(objects: FakeObjects) -> dict[str, Any]:
    found = objects.get("Lease", "anneal-system", NAME)
    assert found
    return found


def lost(held: HeldLease) -> bool:
    try:
        held.check()
    except LeaseLost:
        return True
    return False


def test_a_free_lease_is_taken_and_released(lock: Make, objects: FakeObjects) -> None:
    held = lock().acquire()
    held.check()
    assert body(objects)["spec"]["holderIdentity"].startswith("one_")
    assert held.token == f"{body(objects)['metadata']['uid']}.1"
    assert held.release()
    assert "holderIdentity" not in body(objects)["spec"]
    assert lost(held)


def test_every_tenure_has_a_token_of_its_own(lock: Make) -> None:
    tokens = []
    for _ in range(3):
        with lock().acquire() as held:
            tokens.append(held.token)
    assert [token.rpartition(".")[2] for token in tokens] == ["1", "2", "3"]


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


def test_a_requested_lease_is_not_released_but_run_again(lock: Make) -> None:
    held = lock().acquire()
    assert lock("two").request()
    assert not held.release()
    held.check()
    assert held.take_request()
    assert not held.take_request()
    assert held.release()


def test_a_request_after_the_release_finds_the_lease_free(lock: Make) -> None:
    assert not lock("two").request()
    lock().acquire().release()
    assert not lock("two").request()


def test_a_request_that_comes_between_the_look_and_the_release_is_seen(lock: Make, objects: FakeObjects) -> None:
    held = lock().acquire()

    def interfere(verb: str, sent: dict[str, Any]) -> None:
        if verb == "replace" and "holderIdentity" not in sent["spec"]:
            objects.before = None
            assert lock("two").request()

    objects.before = interfere
    assert not held.release()
    held.check()


def test_taking_the_lease_clears_requests(lock: Make, objects: FakeObjects) -> None:
    held = lock().acquire()
    lock("two").request()
    held.hand_over()
    assert "anneal.dev/requested" in body(objects)["metadata"]["annotations"]
    lock("two").acquire()
    assert "annotations" not in body(objects)["metadata"]


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


def test_a_renewed_lease_is_not_taken_however_long_it_is_watched(lock: Make, world: World) -> None:
    first = lock().acquire()

    class Renewing(FakeClock):
        def wait(self, event: threading.Event, seconds: float) -> bool:
            if not threading.current_thread().name.startswith("renew "):
                first.renew()
            return super().wait(event, seconds)

    with pytest.raises(Busy):
        lock("two", Renewing(world)).acquire(wait=100)
    first.check()


def test_an_overdue_lease_is_taken_at_once_by_the_servers_clock(lock: Make, world: World) -> None:
    first = lock().acquire()
    world.advance(19)
    with pytest.raises(Busy):
        lock("two").acquire()
    world.advance(3)
    lock("two").acquire().check()
    assert lost(first)


def test_what_was_seen_in_an_earlier_look_counts(lock: Make, world: World) -> None:
    lock().acquire()
    second = lock("two")
    with pytest.raises(Busy):
        second.acquire()
    world.advance(15.5)
    second.acquire().check()


def test_requests_do_not_keep_a_dead_holders_lease_alive(lock: Make, world: World, objects: FakeObjects) -> None:
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


@pytest.mark.parametrize(("slept", "jumped"), [(0.0, 0.0), (16.0, 0.0), (16.0, -100.0), (0.0, 3600.0)])
def test_a_holder_notices_its_own_pause_on_any_clock(lock: Make, world: World, slept: float, jumped: float) -> None:
    clock = FakeClock(world)
    held = lock(clock=clock).acquire()
    held.check()
    world.advance(0 if jumped > 0 else 16)
    clock.slept += slept
    clock.jumped += jumped
    assert lost(held)
    with pytest.raises(LeaseLost):
        held.renew()


def test_once_lost_stays_lost(lock: Make, world: World) -> None:
    clock = FakeClock(world, jumped=100)
    held = lock(clock=clock).acquire()
    clock.jumped = 200
    assert lost(held)
    clock.jumped = 100
    assert lost(held)


def test_expiry_counts_from_when_the_renewal_was_sent(lock: Make, world: World, objects: FakeObjects) -> None:
    held = lock().acquire()

    def slow(verb: str, sent: dict[str, Any]) -> None:
        world.advance(10)

    objects.before = slow
    held.renew()
    objects.before = None
    world.advance(6)
    assert lost(held)


def test_the_written_renewal_time_does_not_lag_after_sleep(lock: Make, world: World, objects: FakeObjects) -> None:
    held = lock().acquire()
    before = body(objects)["spec"]["renewTime"]
    world.advance(10)
    objects.clock = lambda: world.now - 10  # what a server's Date plus a sleeping monotonic clock makes
    held.renew()
    assert body(objects)["spec"]["renewTime"] > before
    objects.clock = lambda: world.now
    peek = lock("two").peek()
    assert peek
    assert peek.age < 1


def test_another_holder_is_noticed_by_the_renewal(lock: Make, world: World) -> None:
    clock = FakeClock(world)
    held = lock(clock=clock).acquire()
    world.advance(25)
    lock("two").acquire()
    world.now -= 25
    with pytest.raises(LeaseLost, match="is held by two_"):
        held.renew()
    assert lost(held)
    assert held.release()


@pytest.mark.parametrize("remade", [False, True])
def test_a_deleted_lease_is_lost(lock: Make, objects: FakeObjects, remade: bool) -> None:
    held = lock().acquire()
    objects.delete("Lease", "anneal-system", NAME, uid=body(objects)["metadata"]["uid"])
    if remade:
        lock("two").acquire()
    with pytest.raises(LeaseLost):
        held.renew()


def test_a_lost_holder_does_not_free_its_successors_lease(lock: Make, world: World) -> None:
    held = lock().acquire()
    world.advance(25)
    second = lock("two").acquire()
    assert held.release()
    held.hand_over()
    second.renew()


def test_an_expired_holder_with_a_request_hands_over(lock: Make, world: World, objects: FakeObjects) -> None:
    held = lock().acquire()
    lock("two").request()
    world.advance(16)
    with pytest.raises(LeaseLost):
        held.take_request()
    assert held.release()
    assert "holderIdentity" not in body(objects)["spec"]
    assert "anneal.dev/requested" in body(objects)["metadata"]["annotations"]


def test_failed_renewals_are_tried_again_and_told_when_the_lease_is_lost(objects: FakeObjects) -> None:
    failures = threading.Semaphore(0)

    def away(verb: str, sent: dict[str, Any]) -> None:
        failures.release()
        raise ClusterUnavailable.of("https://api", "connection refused")

    held = LeaseLock(objects, "anneal-system", NAME, "one", 0.3).acquire()
    objects.before = away
    for _ in range(3):
        assert failures.acquire(timeout=10)
    while not lost(held):
        time.sleep(0.01)
    with pytest.raises(LeaseLost, match="connection refused"):
        held.check()


def test_the_thread_renews(objects: FakeObjects) -> None:
    renewals = threading.Semaphore(0)
    held = LeaseLock(objects, "anneal-system", NAME, "one", 0.4).acquire()
    objects.before = lambda verb, sent: renewals.release() if verb == "replace" else None
    for _ in range(3):
        assert renewals.acquire(timeout=10)
    objects.before = None
    held.hand_over()


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


def test_hand_over_never_fails(lock: Make, objects: FakeObjects) -> None:
    held = lock().acquire()

    def away(verb: str, sent: dict[str, Any]) -> None:
        raise ClusterUnavailable.of("https://api", "connection refused")

    objects.before = away
    held.hand_over()
    assert lost(held)


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

    class Renewing(FakeClock):
        def wait(self, event: threading.Event, seconds: float) -> bool:
            if not threading.current_thread().name.startswith("renew "):
                held.renew()
            return super().wait(event, seconds)

    with pytest.raises(Busy, match="renews it"):
        lock("two", Renewing(world)).force_unlock()
    held.check()


def test_unlock_frees_a_dead_holders_lease_and_its_ghost_notices(lock: Make, world: World, objects: FakeObjects) -> None:
    held = lock().acquire()
    lock("two").request()
    assert lock("two").force_unlock().startswith("one_")
    assert "anneal.dev/requested" in body(objects)["metadata"]["annotations"]
    assert lost(held)
    assert lock("two").force_unlock() == ""


def test_unlock_can_be_stopped(lock: Make) -> None:
    lock().acquire()
    stop = threading.Event()
    stop.set()
    with pytest.raises(Busy):
        lock("two").force_unlock(stop)


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
