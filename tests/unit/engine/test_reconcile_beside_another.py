"""What a run finds without the Lease while another run of its target writes proves nothing, and is found once more."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from handler.app.build import Handler
from handler.config.settings import HoldAbove, Prune, Settings
from handler.model.event import Job
from handler.model.plan import Plan
from handler.model.result import Outcome
from handler.model.run_event import PlanHeld, RunEvent
from handler.state.lease import HeldLease
from handler.state.record import NamedRequest, Suspend
from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.engine import ONE, engine, pushed, state_of
from tests.fakes.git_host import GitHost
from tests.unit.engine.in_memory_cluster import NO_ROOM, config_map
from tests.unit.engine.named_requests import leave

pytestmark = pytest.mark.slow

ASKED = NamedRequest("bob", "2026-03-01T12:00:00Z", force=True)
"""What another run finds in the record meanwhile; here it only moves that."""
SHORT = 1.0
"""Seconds of a Lease that is waited for in vain."""


@dataclass
class Meeting:
    """A worker whose dry-runs are refused; ahead of the first refusal another run does something. `leased`: was it under the Lease?"""

    server: ApiServer
    host: GitHost
    meanwhile: Callable[[], object]
    refusals: int = 1
    settings: Settings = ONE
    options: dict[str, Any] = field(default_factory=dict)
    leased: list[bool] = field(default_factory=list)

    def way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        if not (call.asked.dry and call.asked.method == "PATCH") or len(self.leased) == self.refusals:
            return do()
        if not self.leased:
            self.meanwhile()
        self.leased.append(self.is_leased())
        return NO_ROOM

    def is_leased(self) -> bool:
        other = engine(self.server, self.host)
        return other.lock(other.target("shop")).peek() is not None

    def handler(self) -> Handler:
        made = engine(self.server, self.host, self.settings, way=self.way)
        made._options = replace(made._options, **self.options)
        made._holder = "met"
        return made


@pytest.fixture
def other(server: ApiServer, host: GitHost, handler: Handler) -> Handler:
    """Another worker, once a second commit is there."""
    pushed(host, "2")
    return engine(server, host)


def push(other: Handler) -> None:
    assert other.run(Job("shop", "push")).outcome is Outcome.APPLIED


def test_a_run_finds_what_another_has_applied(server: ApiServer, host: GitHost, other: Handler) -> None:
    met = Meeting(server, host, lambda: push(other))
    result = met.handler().run(Job("shop", "push"))
    assert (result.outcome, result.problems, met.leased) == (Outcome.UNCHANGED, (), [False])
    assert [entry.outcome for entry in state_of(other).history] == ["applied", "applied"]


def test_a_refusal_that_stays_is_recorded(server: ApiServer, host: GitHost, other: Handler) -> None:
    met = Meeting(server, host, lambda: leave(other, requested=ASKED), refusals=9)
    result = met.handler().run(Job("shop", "push"))
    assert (result.outcome, result.code, result.recorded) == (Outcome.FAILED, "quota-exceeded", True)
    assert met.leased == [False, True]
    assert state_of(other).status.code == "quota-exceeded"


def test_a_refusal_beside_nobody_is_asked_once(server: ApiServer, host: GitHost, other: Handler) -> None:
    met = Meeting(server, host, lambda: None, refusals=9)
    assert met.handler().run(Job("shop", "push")).code == "quota-exceeded"
    assert met.leased == [False]


def test_a_plan_is_of_what_the_other_has_left(server: ApiServer, host: GitHost, other: Handler) -> None:
    """Also its commit: a newer one than the first plan was made for."""
    newest: list[str] = []

    def go_on() -> None:
        newest.append(pushed(host, "3"))
        push(other)

    met = Meeting(server, host, go_on)
    result = met.handler().run(Job("shop", "push", dry_run=True))
    assert (result.outcome, result.commit, result.counts) == (Outcome.PLANNED, newest[0], {"unchanged": 1})


def test_a_person_is_asked_without_the_lease(server: ApiServer, host: GitHost, other: Handler) -> None:
    asked: list[bool] = []

    def agrees(_: Plan) -> bool:
        asked.append(met.is_leased())
        return True

    met = Meeting(server, host, lambda: leave(other, requested=ASKED), options={"agrees": agrees})
    assert met.handler().run(Job("shop", "oneoff")).outcome is Outcome.APPLIED
    assert asked[0] is False


def never(plan: Plan) -> bool:
    raise AssertionError(f"a person was asked about {plan}")


def test_a_person_is_asked_nothing_where_the_other_has_applied_it(server: ApiServer, host: GitHost, other: Handler) -> None:
    met = Meeting(server, host, lambda: push(other), options={"agrees": never})
    assert met.handler().run(Job("shop", "oneoff")).outcome is Outcome.UNCHANGED
    assert [entry.outcome for entry in state_of(other).history] == ["applied", "applied"]


def test_a_target_that_is_suspended_meanwhile_is_left_alone(server: ApiServer, host: GitHost, other: Handler) -> None:
    suspend = Suspend(by="bob", reason="a freeze", at="2026-03-01T12:00:00Z")
    met = Meeting(server, host, lambda: leave(other, suspend=suspend), refusals=9, options={"agrees": never})
    assert met.handler().run(Job("shop", "oneoff")).outcome is Outcome.SUSPENDED
    assert (met.leased, state_of(other).status.failures) == ([False], 0)


def test_a_worker_that_stops_beside_another_reports_no_failure(server: ApiServer, host: GitHost, other: Handler) -> None:
    stop, leases = threading.Event(), list[HeldLease]()

    def hold() -> None:
        leases.append(other.lock(other.target("shop")).acquire())
        leave(other, requested=ASKED)
        stop.set()

    met = Meeting(server, host, hold, settings=replace(ONE, lease_duration=SHORT))
    assert met.handler().run(Job("shop", "push"), stop).outcome is Outcome.BUSY
    leases[0].hand_over()
    assert [entry.outcome for entry in state_of(other).history] == ["applied"]


@pytest.mark.parametrize(("drift", "asked"), [("correct", True), ("report", False), ("ignore", False)])
@pytest.mark.usefixtures("lease_clock")
def test_the_holder_is_asked_to_look_for_drift_only_where_it_may_correct_it(
    server: ApiServer, host: GitHost, other: Handler, drift: Any, asked: bool
) -> None:
    """It writes what it finds."""
    leases = list[HeldLease]()

    def hold() -> None:
        leases.append(other.lock(other.target("shop")).acquire())
        leave(other, requested=ASKED)

    short = replace(ONE, lease_duration=SHORT, targets=(replace(ONE.targets[0], drift=drift),))
    met = Meeting(server, host, hold, settings=short)
    assert met.handler().run(Job("shop", "drift")).outcome is Outcome.BUSY
    leases[0].hand_over()
    found = state_of(other).requested
    assert bool(found and found.drift) is asked


def test_a_hold_that_is_not_recorded_is_not_announced(server: ApiServer, host: GitHost, handler: Handler) -> None:
    """Another run has moved the record: what is held by now is for that to say."""
    maps = {f"shop/m{number}.yaml": json.dumps(config_map(f"m{number}", "1")) for number in range(4)}
    strict = replace(ONE, targets=(replace(ONE.targets[0], prune=Prune(hold_above=HoldAbove(1, 0.1))),))
    host.push(host.commit({**maps, **host.commits[host.head]}))
    assert engine(server, host, strict).run(Job("shop", "push")).outcome is Outcome.APPLIED
    host.push(host.commit({"shop/m0.yaml": maps["shop/m0.yaml"]}))
    heard: list[RunEvent] = []
    moved: list[str] = []

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.method == "PUT" and call.asked.path.endswith("/configmaps/anneal-shop") and not moved:
            moved.append(call.asked.path)
            leave(handler, requested=ASKED)
        return do()

    late = engine(server, host, strict, way=way)
    late._options = replace(late._options, announce=heard.append)
    result = late.run(Job("shop", "push"))
    assert (result.outcome, result.recorded, len(moved)) == (Outcome.HELD, False, 1)
    assert [event for event in heard if isinstance(event, PlanHeld)] == []
    assert late.run(Job("shop", "push")).recorded
    assert len([event for event in heard if isinstance(event, PlanHeld)]) == 1
