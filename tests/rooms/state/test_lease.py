"""The lock on a real API server, with real threads, clocks and a really stopped process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from pathlib import Path

import pytest

from handler.model.errors import Busy, LeaseLost
from handler.state.lease import LeaseLock
from handler.state.objects import Objects
from tests.rooms.state.holder import hold

NAME = "anneal-shop"


def test_a_lease_goes_from_hand_to_hand_with_growing_tokens(objects: Objects, place: str) -> None:
    tokens = []
    for holder in ("one", "two", "one"):
        held = LeaseLock(objects, f"{place}-lease", NAME, holder).acquire()
        held.renew()
        held.check()
        tokens.append(held.token)
        assert held.release()
    assert [token.rpartition(".")[2] for token in tokens] == ["1", "2", "3"]
    assert len({token.rpartition(".")[0] for token in tokens}) == 1


def test_of_many_lockers_one_holds_and_every_request_reaches_it(objects: Objects, place: str) -> None:
    outcomes: list[str] = []
    together = threading.Barrier(6)
    asked = threading.Semaphore(0)
    everyone_asked = threading.Event()

    def race(number: int) -> None:
        lock = LeaseLock(objects, place, NAME, f"w{number}")
        together.wait(timeout=30)
        try:
            held = lock.acquire()
        except Busy:
            outcomes.append("busy")
            asked.release()
            return
        assert everyone_asked.wait(timeout=60)
        outcomes.append("again" if not held.release() else "released")
        held.hand_over()

    threads = [threading.Thread(target=race, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    assert all(asked.acquire(timeout=30) for _ in range(5))
    everyone_asked.set()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["again", *["busy"] * 5]


def test_writers_under_the_lock_never_overlap(objects: Objects, place: str) -> None:
    inside: list[int] = []
    overlaps: list[int] = []
    turns: list[str] = []

    def work(number: int) -> None:
        lock = LeaseLock(objects, place, NAME, f"w{number}", 1.0)
        for _ in range(3):
            with lock.acquire(wait=60) as held:
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


def test_a_holder_keeps_its_lease_while_others_watch(objects: Objects, place: str) -> None:
    held = LeaseLock(objects, place, NAME, "one", 1.0).acquire()
    with pytest.raises(Busy):
        LeaseLock(objects, place, NAME, "two", 1.0).acquire(wait=2.0)
    held.check()
    assert not held.release()
    assert held.take_request()
    assert held.release()


def test_unlock_tells_the_living_from_the_dead(objects: Objects, place: str) -> None:
    held = LeaseLock(objects, place, NAME, "one", 1.0).acquire()
    lock = LeaseLock(objects, place, NAME, "two", 1.0)
    with pytest.raises(Busy):
        lock.force_unlock()
    held._ended.set()  # the process dies: nobody renews
    assert lock.force_unlock().startswith("one_")
    with pytest.raises(LeaseLost):
        held.renew()


@pytest.mark.slow
def test_a_stopped_process_notices_on_waking_that_its_lease_is_gone(kubeconfig: Path, real: Objects, namespace: str) -> None:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=hold, args=(str(kubeconfig), namespace, theirs))
    process.start()
    try:
        assert ours.poll(60)
        assert ours.recv() == "held"
        assert process.pid
        os.kill(process.pid, signal.SIGSTOP)
        successor = LeaseLock(real, namespace, NAME, "successor", 2.0).acquire(wait=30)
        os.kill(process.pid, signal.SIGCONT)
        ours.send("check")
        assert ours.poll(60)
        assert ours.recv() == "lost"
        successor.check()
        ours.send("end")
        process.join(30)
    finally:
        process.kill()
        process.join()
