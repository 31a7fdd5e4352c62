"""Two workers, one Lease, and clocks that sleep and jump: at most one of them ever believes that it holds it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from handler.model.errors import Busy, LeaseLost
from handler.state.lease import HeldLease, LeaseLock
from tests.fakes.clock import FakeClock, World
from tests.fakes.objects import FakeObjects

pytestmark = pytest.mark.slow

workers = st.integers(0, 1)
spans = st.sampled_from([1.0, 4.0, 10.0, 14.0, 16.0, 22.0])


class Client:
    """One worker's way to the shared API server. It knows the server's time by its last answer and its own monotonic clock."""

    def __init__(self, server: FakeObjects, clock: FakeClock) -> None:
        self._server = server
        self._clock = clock
        self._date = (server.server_time(), clock.now().monotonic)

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        found = self._server.get(kind, namespace, name)
        self._answered()
        return found

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        stored = self._server.create(body)
        self._answered()
        return stored

    def delete(self, kind: str, namespace: str, name: str, *, uid: str, resource_version: str = "") -> bool:
        done = self._server.delete(kind, namespace, name, uid=uid, resource_version=resource_version)
        self._answered()
        return done

    def replace(self, body: dict[str, Any]) -> dict[str, Any]:
        stored = self._server.replace(body)
        self._answered()
        return stored

    def server_time(self) -> float:
        return self._date[0] + self._clock.now().monotonic - self._date[1]

    def _answered(self) -> None:
        self._date = (self._server.server_time(), self._clock.now().monotonic)


class Lockers(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.skew = 0.0
        self.server = FakeObjects(lambda: self.world.now + self.skew)
        self.clocks = [FakeClock(self.world) for _ in range(2)]
        self.locks = [LeaseLock(Client(self.server, clock), "anneal-system", "anneal-shop", "w", 15.0, clock) for clock in self.clocks]
        self.held: dict[int, HeldLease] = {}
        self.tenures: list[int] = []

    @rule(seconds=spans)
    def time_passes(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule(worker=workers, seconds=spans)
    def a_machine_sleeps(self, worker: int, seconds: float) -> None:
        self.world.advance(seconds)
        self.clocks[worker].slept += seconds

    @rule(worker=workers, seconds=st.sampled_from([-100.0, 5.0, 100.0]))
    def a_wall_clock_is_set(self, worker: int, seconds: float) -> None:
        self.clocks[worker].jumped += seconds

    @rule(seconds=st.sampled_from([-1.5, 0.0, 1.5]))
    def the_servers_clock_is_a_little_off(self, seconds: float) -> None:
        self.skew = seconds

    @rule(worker=workers, wait=st.sampled_from([0.0, 3.0, 15.0]))
    def acquire(self, worker: int, wait: float) -> None:
        if worker in self.held:
            return
        try:
            self.held[worker] = self.locks[worker].acquire(wait)
        except Busy:
            return
        self.tenures.append(int(self.held[worker].token.rpartition(".")[2]))
        body = self.server.get("Lease", "anneal-system", "anneal-shop")
        assert body
        assert "annotations" not in body["metadata"]

    @rule(worker=workers)
    def renew(self, worker: int) -> None:
        if worker in self.held:
            try:
                self.held[worker].renew()
            except LeaseLost:
                self.held.pop(worker)._ended.set()

    @rule(worker=workers)
    def release(self, worker: int) -> None:
        if worker in self.held and self.held[worker].release():
            del self.held[worker]

    @rule(worker=workers)
    def run_again(self, worker: int) -> None:
        if worker in self.held:
            try:
                self.held[worker].take_request()
            except LeaseLost:
                self.held.pop(worker)._ended.set()

    @rule(worker=workers)
    def die(self, worker: int) -> None:
        if worker in self.held:
            self.held.pop(worker)._ended.set()

    @rule(worker=workers)
    def request(self, worker: int) -> None:
        self.locks[worker].request()

    @rule(worker=workers)
    def unlock(self, worker: int) -> None:
        try:
            self.locks[worker].force_unlock()
        except Busy:
            return

    @invariant()
    def at_most_one_believes(self) -> None:
        believers = []
        for worker, held in self.held.items():
            try:
                held.check()
            except LeaseLost:
                continue
            believers.append(worker)
        assert len(believers) <= 1

    @invariant()
    def tenures_only_grow(self) -> None:
        assert self.tenures == sorted(set(self.tenures))

    def teardown(self) -> None:
        for held in self.held.values():
            held._ended.set()


TestLockers = Lockers.TestCase
pytest.mark.slow(TestLockers)
TestLockers.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
