"""The lock on a real API server, with real threads, clocks and a really stopped process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from handler.model.errors import AnnealError, Busy, LeaseLost
from handler.state.cluster_port import StateObjects
from handler.state.lease import LeaseLock, SystemClock
from tests.patience import PATIENCE
from tests.rooms.state.lease_holder import hold

NAME = "anneal-shop"
DURATIONS = (1.0, 4.0, 16.0)
"""Of a Lease whose holder must renew it in time: where the machine was too busy for the first, the next one decides."""


class Watchful(SystemClock):
    """The machine's clocks; who watches a Lease looks often, however long it lasts."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return super().wait(event, 0.05 if seconds <= 1.0 else seconds)


class Held:
    """A held Lease, and whether the machine let its holder renew it in time."""

    def __init__(self, objects: StateObjects, place: str, duration: float) -> None:
        self.name = f"{NAME}-{duration:g}"
        self.duration = duration
        self.sent = [time.monotonic()]
        self.lease = LeaseLock(objects, place, self.name, "one", duration).acquire()
        self.latest = time.monotonic() - self.sent[0]
        renew = self.lease.renew

        def timed() -> None:
            sent = time.monotonic()
            renew()
            self.latest = max(self.latest, time.monotonic() - self.sent[-1])
            self.sent.append(sent)

        self.lease.renew = timed  # type: ignore[method-assign]  # the same, and its time

    def in_time(self) -> bool:
        """Whether less than a duration lay between the request for one renewal and the answer to the next, up to now."""
        return max(self.latest, time.monotonic() - self.sent[-1]) < self.duration


def test_each_lease_tenure_has_a_greater_fencing_token(objects: StateObjects, place: str) -> None:
    tokens = []
    for holder in ("one", "two", "one"):
        held = LeaseLock(objects, f"{place}-lease", NAME, holder).acquire()
        held.renew()
        held.check()
        tokens.append(held.token)
        assert held.release()
    assert [token.rpartition(".")[2] for token in tokens] == ["1", "2", "3"]
    assert len({token.rpartition(".")[0] for token in tokens}) == 1


def test_of_many_lockers_one_holds_and_every_request_reaches_it(objects: StateObjects, place: str) -> None:
    outcomes: list[str] = []
    together = threading.Barrier(6)
    asked = threading.Semaphore(0)
    everyone_asked = threading.Event()

    def race(number: int) -> None:
        lock = LeaseLock(objects, place, NAME, f"w{number}")
        together.wait(timeout=PATIENCE)
        try:
            held = lock.acquire()
        except Busy:
            outcomes.append("busy")
            asked.release()
            return
        assert everyone_asked.wait(timeout=PATIENCE)
        outcomes.append("again" if not held.release() else "released")
        held.hand_over()

    threads = [threading.Thread(target=race, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    assert all(asked.acquire(timeout=PATIENCE) for _ in range(5))
    everyone_asked.set()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["again", *["busy"] * 5]


def test_writers_under_the_lease_never_overlap(objects: StateObjects, place: str) -> None:
    inside: list[int] = []
    overlaps: list[int] = []
    turns: list[str] = []

    def work(number: int) -> None:
        lock = LeaseLock(objects, place, NAME, f"w{number}", clock=Watchful())
        for _ in range(3):
            with lock.acquire(wait=PATIENCE) as held:
                held.check()
                inside.append(number)
                threading.Event().wait(0.01)
                overlaps.extend(inside[1:])
                inside.pop()
                turns.append(held.token)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert overlaps == []
    assert len(set(turns)) == 9


def test_a_holder_keeps_its_lease_while_others_watch(objects: StateObjects, place: str) -> None:
    def trial(held: Held) -> None:
        with pytest.raises(Busy):
            LeaseLock(objects, place, held.name, "two", held.duration).acquire(wait=2 * held.duration).hand_over()
        held.lease.check()
        assert not held.lease.release()
        assert held.lease.take_request()
        assert held.lease.release()

    judged(trial, objects, place)


def test_unlock_tells_the_living_from_the_dead(objects: StateObjects, place: str) -> None:
    def trial(held: Held) -> None:
        lock = LeaseLock(objects, place, held.name, "two", held.duration)
        with pytest.raises(Busy):
            lock.force_unlock()
        held.lease._ended.set()  # the process dies: its renewals end
        assert lock.force_unlock().startswith("one_")
        with pytest.raises(LeaseLost):
            held.lease.renew()

    judged(trial, objects, place)


def judged(trial: Callable[[Held], None], objects: StateObjects, place: str) -> None:
    """Try it with a Lease; a failure proves nothing where the holder could not renew in time: then it is tried with a longer one."""
    for duration in DURATIONS:
        held = Held(objects, place, duration)
        try:
            trial(held)
        except (AnnealError, AssertionError, pytest.fail.Exception):
            if held.in_time() or duration == DURATIONS[-1]:
                raise
        else:
            return
        finally:
            held.lease.hand_over()


def test_a_stopped_process_notices_on_waking_that_its_lease_is_gone(kubeconfig: Path, real: StateObjects, namespace: str) -> None:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=hold, args=(str(kubeconfig), namespace, theirs))
    process.start()
    try:
        assert ours.poll(PATIENCE)
        assert ours.recv() == "held"
        assert process.pid
        os.kill(process.pid, signal.SIGSTOP)
        successor = LeaseLock(real, namespace, NAME, "successor").acquire(wait=PATIENCE)
        os.kill(process.pid, signal.SIGCONT)
        ours.send("check")
        assert ours.poll(PATIENCE)
        assert ours.recv() == "lost"
        successor.check()
        ours.send("end")
        process.join(PATIENCE)
    finally:
        process.kill()
        process.join()
