from __future__ import annotations

import threading
from typing import Any

import pytest

from handler.model.errors import ClusterUnavailable, LeaseLost
from tests.fakes.clock import FakeClock, World
from tests.fakes.objects import FakeObjects
from tests.patience import PATIENCE
from tests.unit.state.lease_inspection import NAME, Make, body, lost


def test_every_lease_tenure_has_a_fencing_token_of_its_own(lock: Make) -> None:
    tokens = []
    for _ in range(3):
        with lock().acquire() as held:
            tokens.append(held.token)
    assert [token.rpartition(".")[2] for token in tokens] == ["1", "2", "3"]


def test_a_requested_lease_is_not_released_but_run_again(lock: Make) -> None:
    assert not lock("two").request(), "there is no Lease yet"
    held = lock().acquire()
    assert lock("two").request()
    assert not held.release()
    held.check()
    assert held.take_request()
    assert not held.take_request()
    assert held.release()
    assert not lock("two").request(), "it is free"


def test_a_request_that_comes_between_the_look_and_the_release_is_seen(lock: Make, objects: FakeObjects) -> None:
    held = lock().acquire()

    def interfere(verb: str, sent: dict[str, Any]) -> None:
        if verb == "replace" and "holderIdentity" not in sent["spec"]:
            objects.before = None
            assert lock("two").request()

    objects.before = interfere
    assert not held.release()
    held.check()


@pytest.mark.parametrize(("slept", "jumped"), [(0.0, 0.0), (16.0, 0.0), (16.0, -100.0), (0.0, 3600.0)])
def test_a_lease_holder_notices_its_own_pause_on_any_clock(lock: Make, world: World, slept: float, jumped: float) -> None:
    clock = FakeClock(world)
    held = lock(clock=clock).acquire()
    held.check()
    world.advance(0 if jumped > 0 else 16)
    clock.slept += slept
    clock.jumped += jumped
    assert lost(held)
    with pytest.raises(LeaseLost):
        held.renew()


def test_a_lost_lease_stays_lost(lock: Make, world: World) -> None:
    clock = FakeClock(world, jumped=100)
    held = lock(clock=clock).acquire()
    clock.jumped = 200
    assert lost(held)
    clock.jumped = 100
    assert lost(held)


def test_lease_expiry_counts_from_when_the_renewal_was_sent(lock: Make, world: World, objects: FakeObjects) -> None:
    held = lock().acquire()

    def slow(verb: str, sent: dict[str, Any]) -> None:
        world.advance(10)

    objects.before = slow
    held.renew()
    objects.before = None
    world.advance(6)
    assert lost(held)


def test_the_renew_time_does_not_lag_after_sleep(lock: Make, world: World, objects: FakeObjects) -> None:
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


@pytest.mark.parametrize("how", ["freed by force", "deleted", "deleted and made anew"])
def test_a_lease_that_was_freed_or_deleted_is_noticed_by_the_renewal(lock: Make, objects: FakeObjects, how: str) -> None:
    held = lock().acquire()
    found = body(objects)
    if how == "freed by force":
        del found["spec"]["holderIdentity"]
        objects.replace(found)
    else:
        objects.delete("Lease", "anneal-system", NAME, uid=found["metadata"]["uid"])
    if how == "deleted and made anew":
        lock("two").acquire()
    with pytest.raises(LeaseLost, match="was freed by force" if how == "freed by force" else r"."):
        held.renew()
    assert lost(held)


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
    lock("two").acquire()
    assert "annotations" not in body(objects)["metadata"], "whoever takes it sees what was asked"


class Hurried(FakeClock):
    """A clock on which a renewal's thread waits a moment, however long it wants to: `waits` has how long that was."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.waits: list[float] = []

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.waits.append(seconds)
        return event.wait(0.01)


def test_failed_renewals_are_tried_again_and_told_when_the_lease_is_lost(lock: Make, world: World, objects: FakeObjects) -> None:
    failures, clock = threading.Semaphore(0), Hurried(world)

    def away(verb: str, sent: dict[str, Any]) -> None:
        failures.release()
        raise ClusterUnavailable.of("https://api", "connection refused")

    held = lock(clock=clock).acquire()
    objects.before = away
    for _ in range(3):
        assert failures.acquire(timeout=PATIENCE)
    assert clock.waits[clock.waits.index(1.0) - 1 :][:3] == [5.0, 1.0, 1.0], "sooner than after a renewal"
    assert not lost(held)
    world.advance(15)
    assert lost(held)
    with pytest.raises(LeaseLost, match="connection refused"):
        held.check()


def test_the_renewal_thread_renews_the_lease(lock: Make, world: World, objects: FakeObjects) -> None:
    renewals, clock = threading.Semaphore(0), Hurried(world)
    held = lock(clock=clock).acquire()
    objects.before = lambda verb, sent: renewals.release() if verb == "replace" else None
    for _ in range(3):
        assert renewals.acquire(timeout=PATIENCE)
    objects.before = None
    held.hand_over()
    assert set(clock.waits) == {5.0}, "a third of the time that it lasts"


def test_lease_hand_over_never_fails(lock: Make, objects: FakeObjects) -> None:
    held = lock().acquire()

    def away(verb: str, sent: dict[str, Any]) -> None:
        raise ClusterUnavailable.of("https://api", "connection refused")

    objects.before = away
    held.hand_over()
    assert lost(held)
