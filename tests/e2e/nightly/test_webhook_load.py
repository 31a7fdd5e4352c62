"""200 signed webhooks a second while reconciles run: each is answered, every last head is applied, memory stays flat."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter

from tests.e2e.conftest import OpenFleet
from tests.e2e.many_targets import Fleet
from tests.e2e.serve_process import Serving

RATE, SECONDS, SENDERS = 200, 24, 8  # `scripts/bench` does it for a minute
TARGETS, PUSH_EVERY = 8, 0.25
EARLY = 10 * RATE
"""Answers after which a process has what it keeps."""
VERSIONS = 1 + int(SECONDS / PUSH_EVERY / TARGETS)
MIB = 1024 * 1024
GROWTH = 40 * MIB


class Load:
    """Senders at a fixed rate altogether: one that is late doesn't slow the others, and catches up."""

    def __init__(self, fleet: Fleet, server: Serving) -> None:
        self.fleet, self.server = fleet, server
        self.answers: Counter[int] = Counter()
        self.lock = threading.Lock()
        self.start = time.monotonic()
        self.threads = [threading.Thread(target=self._send, args=(number,)) for number in range(SENDERS)]
        for thread in self.threads:
            thread.start()

    def _send(self, sender: int) -> None:
        pause, chance = threading.Event(), random.Random(sender)
        for turn in range(RATE * SECONDS // SENDERS):
            pause.wait(max(self.start + (turn * SENDERS + sender) / RATE - time.monotonic(), 0.0))
            number = chance.randrange(TARGETS)
            sha = self.fleet.commits[number, self.fleet.heads[number]]
            answer = self.server.push(self.fleet.url, self.fleet.ref(number), sha)
            with self.lock:
                self.answers[answer] += 1

    def push_meanwhile(self) -> dict[str, int]:
        """Move the targets on, one after the other, until all is sent; return the memory of each process when the first are answered."""
        pause = threading.Event()
        early: dict[str, int] = {}
        steps = iter([(number, version) for version in range(1, VERSIONS) for number in range(TARGETS)])
        while any(thread.is_alive() for thread in self.threads):
            step = next(steps, None)
            if step:
                self.fleet.move(*step)
            if not early and self.answers.total() >= EARLY:
                early = memory(self.server)
            pause.wait(PUSH_EVERY)
        return early


def memory(server: Serving) -> dict[str, int]:
    return {"web": server.resident("web"), "worker": server.resident("worker")}


def test_two_hundred_webhooks_a_second_lose_nothing_and_leave_memory_flat(open_fleet: OpenFleet) -> None:
    fleet = open_fleet(TARGETS, VERSIONS, settings={"interval": "30s"})
    server = fleet.serve().ready()
    fleet.converge()
    load = Load(fleet, server)
    early = load.push_meanwhile()
    late = memory(server)
    assert load.answers == {202: RATE * SECONDS}
    fleet.converge()
    applied = len(server.runs(outcome="applied"))
    assert applied > TARGETS
    assert {name: late[name] - early[name] < GROWTH for name in early} == {"web": True, "worker": True}, (early, late)
    assert not server.runs(code="internal")
