"""What is asked of a target by mistake is refused, and the target stands as before: its record says only what became of the request."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from handler.app.build import Handler
from handler.model.event import Job
from handler.model.result import Outcome
from handler.queues.message_outcome import settles
from handler.queues.pending import Work
from handler.state.record import Attempt, Run, WaitingFor
from tests.fakes.apiserver import ApiServer
from tests.fakes.engine import ONE, engine, state_of
from tests.fakes.git_host import GitHost
from tests.unit.engine.named_requests import asked, leave

pytestmark = pytest.mark.slow

NOON = "2026-03-01T12:00:00Z"
NOBODYS = "0123456789" * 4
OTHERS = "9876543210" * 4
MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "a rollback to a commit that it never ran": ({"commit": NOBODYS, "rollback": True}, "anneal history shop lists them"),
    "a commit that it never ran": ({"commit": NOBODYS}, "pass --force to deploy it all the same; it pins the target"),
    "a forced commit that the host doesn't have": ({"commit": NOBODYS, "force": True}, ""),
    "a rollback with nothing before it": ({"rollback": True}, "name a commit: anneal rollback shop --to SHA"),
    "an approval of what isn't held": ({"approve": "h1"}, "anneal status shop"),
}


@pytest.fixture(params=MISTAKES)
def mistake(request: pytest.FixtureRequest) -> dict[str, Any]:
    return MISTAKES[request.param][0]


def opened(*outcomes: str) -> dict[str, Any]:
    """The record's parts of a run that has opened its attempt for another commit, the newest of its ends first."""
    ends = tuple(Run(f"shop.{number}", "push", outcome, NOON, OTHERS) for number, outcome in enumerate(outcomes))
    return {"attempt": Attempt(OTHERS, "b" * 64, "c" * 64, "a-dead-holder.1", NOON), "history": ends}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_refused_request_says_what_was_wrong_and_a_fix(handler: Handler, name: str) -> None:
    about, fix = MISTAKES[name]
    result = asked(handler, **about)
    assert (result.outcome, result.commit, result.next_try) == (Outcome.REFUSED, "", 0.0)
    assert result.code == ("ref-not-found" if about.get("force") else "request-refused")
    assert [problem.fix for problem in result.problems] == [fix]


def test_a_refused_request_writes_a_history_entry_and_nothing_else(handler: Handler, mistake: dict[str, Any]) -> None:
    before = state_of(handler)
    result = asked(handler, **mistake)
    after = state_of(handler)
    (entry,) = (run for run in after.history if run.id == "shop.asked")
    assert (entry.outcome, entry.actor, entry.commit, entry.code) == ("refused", "ann", "", result.code)
    assert replace(after, history=()) == replace(before, history=())
    assert (result.recorded, settles(Work.of(Job("shop", "replay", run="shop.asked", **mistake)), result)) == (True, True)


def test_a_refused_request_of_a_server_with_a_run_index_writes_nothing(
    server: ApiServer, host: GitHost, handler: Handler, mistake: dict[str, Any]
) -> None:
    before = state_of(handler)
    assert asked(engine(server, host, notes=False), **mistake).outcome is Outcome.REFUSED
    assert state_of(handler) == before


def test_a_refused_request_replayed_by_the_queue_has_one_history_entry(handler: Handler, mistake: dict[str, Any]) -> None:
    first, before = asked(handler, **mistake), state_of(handler)
    again = asked(handler, **mistake)
    assert (again.outcome, again.code, again.recorded) == (first.outcome, first.code, True)
    assert state_of(handler) == before


def test_a_tick_after_a_refused_request_is_unchanged(handler: Handler, mistake: dict[str, Any]) -> None:
    asked(handler, **mistake)
    before = state_of(handler)
    assert handler.run(Job("shop", "tick")).outcome is Outcome.UNCHANGED
    assert state_of(handler) == before


def test_a_refused_request_is_no_failure_of_the_target(handler: Handler, mistake: dict[str, Any]) -> None:
    standing = asked(handler, **mistake).standing
    assert standing
    assert (standing.failures, standing.next_try) == (0, 0.0)


# --- an open attempt
def test_a_refused_request_leaves_an_open_attempt(handler: Handler, mistake: dict[str, Any]) -> None:
    if mistake == {"rollback": True}:
        mistake = {"rollback": True, "commit": NOBODYS}  # with an attempt open there is something to go back to
    waits = WaitingFor(OTHERS, "stage 1", NOON)
    leave(handler, **opened("waiting"), waiting=waits)
    before = state_of(handler)
    result = asked(handler, **mistake)
    after = state_of(handler)
    assert (result.outcome, result.again) == (Outcome.REFUSED, None)
    assert (after.attempt, after.waiting, after.status, after.pin) == (before.attempt, waits, before.status, None)


def test_a_wait_interrupted_by_a_refused_request_goes_on_at_once(handler: Handler) -> None:
    leave(handler, **opened("waiting", "applied"), status=replace(state_of(handler).status, phase="waiting"))
    result = asked(handler, commit=NOBODYS, rollback=True)
    assert result.outcome is Outcome.REFUSED
    assert result.again == Job("shop", "tick")
    assert asked(handler, "shop.dry", commit=NOBODYS, dry_run=True).again is None


def test_a_request_on_the_lease_of_a_refused_run_gets_a_run_of_its_own(server: ApiServer, host: GitHost, handler: Handler) -> None:
    """Under the Lease, too: the next round's end would be reported to who asked for this one."""
    leave(handler, **opened("failed"))
    late = engine(server, host)
    deps = late.dependencies("shop")
    acquire = deps.lock.acquire

    def taken(**about: Any) -> Any:
        held = acquire(**about)
        assert handler.lock(handler.target("shop")).request()
        return held

    lock = SimpleNamespace(acquire=taken, request=deps.lock.request)
    late._made["dependencies", "shop"] = replace(deps, lock=lock)  # type: ignore[arg-type]  # what happens before the Lease is held
    result = asked(late, commit=NOBODYS, rollback=True)
    assert (result.outcome, result.again) == (Outcome.REFUSED, Job("shop", "tick"))


def test_a_commit_that_the_host_lacks_is_no_pin_for_the_lease_holder(server: ApiServer, host: GitHost, handler: Handler) -> None:
    """It would end a wait for nothing, and each tick would fail by it."""
    held = handler.lock(handler.target("shop")).acquire()
    leave(handler, attempt=Attempt(OTHERS, "b" * 64, "c" * 64, held.token, NOON))
    second = engine(server, host, replace(ONE, lease_duration=1.0))
    second._holder = "second"
    try:
        result = asked(second, commit=NOBODYS, force=True)
        peek = handler.lock(handler.target("shop")).peek()
    finally:
        held.hand_over()
    assert (result.outcome, result.code, result.again) == (Outcome.REFUSED, "ref-not-found", None)
    assert state_of(handler).pin is None
    assert peek
    assert not peek.requested
