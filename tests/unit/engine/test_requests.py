"""What a run that was asked for by name leaves where no process remembers it: an entry, whatever it did, and nothing else."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from handler.app.build import Handler
from handler.config.settings import HoldAbove, Prune
from handler.engine import requests
from handler.engine.reconcile import reconcile
from handler.model.errors import Busy
from handler.model.event import Job
from handler.model.result import Outcome
from handler.state.record import Attempt, HeldPlan, Run, State, Suspend
from handler.state.record_values import RunOnce
from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.engine import ONE, engine, pushed, state_of
from tests.fakes.git_host import GitHost
from tests.unit.engine.named_requests import asked, leave

pytestmark = pytest.mark.slow

NOON = "2026-03-01T12:00:00Z"


OTHER = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: shop}\n"


def entry(handler: Handler, run: str = "shop.asked") -> Run:
    return next(each for each in state_of(handler).history if each.id == run)


def standing(state: State) -> State:
    """A record without its history."""
    return replace(state, history=())


def test_a_run_that_changed_nothing_leaves_its_entry_and_nothing_else(handler: Handler) -> None:
    before = state_of(handler)
    assert asked(handler).outcome is Outcome.UNCHANGED
    found = entry(handler)
    assert (found.outcome, found.actor, found.trigger, found.commit) == ("unchanged", "ann", "replay", before.commit)
    assert standing(state_of(handler)) == standing(before)
    assert len(state_of(handler).history) == len(before.history) + 1


def test_a_dry_run_leaves_what_it_would_do(handler: Handler, host: GitHost) -> None:
    before, newer = state_of(handler), pushed(host, "2")
    assert asked(handler, dry_run=True).outcome is Outcome.PLANNED
    found = entry(handler)
    assert (found.outcome, found.commit, found.changed) == ("planned", newer, ("ConfigMap/shop/web to update",))
    assert standing(state_of(handler)) == standing(before)


def test_a_commit_that_was_only_looked_at_was_never_deployed(handler: Handler, host: GitHost) -> None:
    looked_at = pushed(host, "2")
    asked(handler, dry_run=True)
    pushed(host, "3")
    refused = asked(handler, "shop.back", commit=looked_at)
    assert (refused.outcome, refused.code) == (Outcome.REFUSED, "request-refused")


def test_a_dry_run_of_a_target_that_never_ran_is_found_too(server: ApiServer, host: GitHost) -> None:
    new = engine(server, host)
    assert asked(new, dry_run=True).outcome is Outcome.PLANNED
    assert entry(new).outcome == "planned"
    assert state_of(new).fresh
    assert new.run(Job("shop", "tick")).outcome is Outcome.APPLIED


def test_a_suspended_target_says_so(handler: Handler) -> None:
    leave(handler, suspend=Suspend("bob", "freeze"))
    assert asked(handler).outcome is Outcome.SUSPENDED
    found = entry(handler)
    assert (found.outcome, found.message) == ("suspended", "target shop: suspended by bob: freeze; anneal resume shop")
    assert state_of(handler).status.phase == "applied"


def test_each_of_the_same_failures_is_found_by_its_own_id(handler: Handler, host: GitHost) -> None:
    host.push(host.commit({"shop/web.yaml": "kind: Broken"}))
    for run in ("shop.one", "shop.two"):
        asked(handler, run)
    handler.run(Job("shop", "tick", run="shop.tick"))
    assert [entry(handler, run).outcome for run in ("shop.one", "shop.two")] == ["failed", "failed"]


def test_a_failed_dry_run_is_found_and_the_target_stands_as_before(handler: Handler, host: GitHost) -> None:
    before = state_of(handler)
    host.push(host.commit({"shop/web.yaml": "kind: Broken"}))
    assert asked(handler, dry_run=True).outcome is Outcome.FAILED
    assert entry(handler).outcome == "failed"
    assert standing(state_of(handler)) == standing(before)


class Elsewhere:
    """Another worker, which holds the Lease as soon as it is asked for, and has its attempt open."""

    def __init__(self, handler: Handler) -> None:
        self._held = handler.lock(handler.target("shop")).acquire(wait=0.0, requested=lambda: None, stop=threading.Event())
        self.attempt = Attempt("a" * 40, "b" * 40, "c" * 40, self._held.token, NOON)
        leave(handler, attempt=self.attempt)

    def end(self) -> None:
        self._held.hand_over()


def test_a_target_with_a_held_lease_is_busy_and_its_attempt_stays(server: ApiServer, host: GitHost, handler: Handler) -> None:
    other = Elsewhere(handler)
    second = engine(server, host, replace(ONE, lease_duration=1.0))  # it waits so long, and a fifth more
    second._holder = "second"
    try:
        assert asked(second).outcome is Outcome.BUSY
    finally:
        other.end()
    assert entry(second).outcome == "busy"
    assert state_of(second).attempt == other.attempt


@pytest.mark.parametrize(
    ("once", "command"),
    [(RunOnce(("flux", "helm")), "anneal adopt shop --from flux --from helm"), (RunOnce(prune=True), "anneal prune shop")],
)
def test_what_the_holder_of_the_lease_would_not_do_is_not_left_for_it(once: RunOnce, command: str) -> None:
    run: Any = SimpleNamespace(job=Job("shop", "oneoff"), revision=SimpleNamespace(commit=""), deps=SimpleNamespace(once=once))
    (found,) = requests.busy(run, Busy.of("Lease/shop", "anneal-0 holds it; it runs again when it is done")).problems
    assert (found.message, found.fix) == ("anneal-0 holds it; this isn't left for it", f"once that is done: {command}")


@pytest.mark.parametrize(
    ("once", "command"),
    [(RunOnce(("flux",)), "anneal adopt shop --from flux --approve h1"), (RunOnce(prune=True), "anneal prune shop --approve h1")],
)
def test_what_only_another_command_does_isnt_approved_by_name(server: ApiServer, host: GitHost, once: RunOnce, command: str) -> None:
    handler = engine(server, host, replace(ONE, targets=tuple(replace(each, prune=Prune(enabled=False)) for each in ONE.targets)))
    handler.run(Job("shop", "push"))
    held = HeldPlan("h1", ("many",), (), "a" * 40, "b" * 64, "c" * 64, NOON, once)
    leave(handler, held=held)
    refused = asked(handler, approve="h1")
    assert (refused.outcome, refused.problems[0].fix) == (Outcome.REFUSED, command)
    assert (state_of(handler).approval, state_of(handler).held) == (None, held)


@pytest.mark.parametrize(("once", "fix"), [(RunOnce(prune=True), "to hold it anew: anneal prune shop"), (RunOnce(), "anneal status shop")])
def test_what_is_held_no_more_is_held_anew_by_the_command_that_held_it(handler: Handler, once: RunOnce, fix: str) -> None:
    made = replace(handler.dependencies("shop"), once=once)
    refused = reconcile(made, Job("shop", "oneoff", approve="h1", actor="ann"))
    assert (refused.outcome, refused.problems[0].fix) == (Outcome.REFUSED, fix)


def test_a_run_that_is_cut_short_leaves_no_entry_for_it_will_be_repeated(handler: Handler, host: GitHost) -> None:
    pushed(host, "2")
    stop = threading.Event()
    stop.set()
    cut = handler.run(Job("shop", "replay", actor="ann", run="shop.asked"), stop)
    assert (cut.outcome, cut.code) == (Outcome.BUSY, "stopping")
    assert [each.id for each in state_of(handler).history] == ["shop.first"]


def test_an_unnamed_request_leaves_no_entry_and_no_write(server: ApiServer, host: GitHost, handler: Handler) -> None:
    calls: list[Call] = []

    def seen(call: Call, do: object) -> Reply:
        calls.append(call)
        found: Reply = do()  # type: ignore[operator]  # the way on
        return found

    warm = engine(server, host, way=seen)
    warm.run(Job("shop", "tick"))
    calls.clear()
    assert warm.run(Job("shop", "push", hint=host.head)).outcome is Outcome.UNCHANGED
    assert [call.asked.method for call in calls] == ["GET"]


def test_a_server_with_a_run_index_leaves_no_history_entry(server: ApiServer, host: GitHost, handler: Handler) -> None:
    before = state_of(handler)
    assert asked(engine(server, host, notes=False)).outcome is Outcome.UNCHANGED
    assert state_of(handler) == before


def test_repeated_named_requests_push_no_deployment_out_of_the_history(handler: Handler) -> None:
    for number in range(30):
        asked(handler, f"shop.n{number}")
    found = [each.id for each in state_of(handler).history]
    assert found == [*(f"shop.n{number}" for number in range(29, 21, -1)), "shop.first"]


# --- a request that comes again
def test_an_approval_that_comes_again_after_it_was_used_changes_nothing(server: ApiServer, handler: Handler, host: GitHost) -> None:
    guarded = replace(ONE, targets=(replace(ONE.targets[0], prune=Prune(hold_above=HoldAbove(0, 0.0))),))
    careful = engine(server, host, guarded)
    host.push(host.commit({"shop/other.yaml": OTHER}))
    assert careful.run(Job("shop", "tick")).outcome is Outcome.HELD
    held = state_of(careful).held
    assert held
    first = asked(careful, approve=held.id)
    before = state_of(careful)
    second = asked(careful, approve=held.id)
    assert (first.outcome, second.outcome, second.run, second.recorded) == (Outcome.APPLIED, Outcome.APPLIED, "shop.asked", True)
    assert state_of(careful) == before


def test_a_pin_that_was_ended_since_is_not_set_again_by_its_own_message(handler: Handler, host: GitHost) -> None:
    older, newer = state_of(handler).commit, pushed(host, "2")
    handler.run(Job("shop", "tick"))
    assert asked(handler, "shop.pin", commit=older).outcome is Outcome.APPLIED
    assert asked(handler, "shop.unpin", unpin=True).outcome is Outcome.APPLIED
    before = state_of(handler)
    again = asked(handler, "shop.pin", commit=older)
    assert (again.outcome, again.commit, again.recorded) == (Outcome.APPLIED, older, True)
    assert state_of(handler) == before
    assert before.commit == newer


def test_a_request_recorded_while_its_second_worker_waited_isnt_run_again(server: ApiServer, handler: Handler, host: GitHost) -> None:
    """Two workers on one message: the second one reads the state before the first has recorded, and gets the Lease after it."""
    older = state_of(handler).commit
    pushed(host, "2")
    handler.run(Job("shop", "tick"))
    late = engine(server, host)
    deps = late.dependencies("shop")
    acquire = deps.lock.acquire

    def overtaken(**about: object) -> object:
        asked(handler, "shop.pin", commit=older)
        asked(handler, "shop.unpin", unpin=True)
        return acquire(**about)  # type: ignore[arg-type]  # its keywords

    lock = SimpleNamespace(acquire=overtaken, request=deps.lock.request)
    late._made["dependencies", "shop"] = replace(deps, lock=lock)  # type: ignore[arg-type]  # what happens before the Lease is held
    assert asked(late, "shop.pin", commit=older).outcome is Outcome.APPLIED
    assert state_of(late).pin is None
    assert state_of(late).commit == host.head
    assert [each.id for each in state_of(late).history].count("shop.pin") == 1


def test_a_plain_request_that_comes_again_is_one_entry(handler: Handler, host: GitHost) -> None:
    host.push(host.commit({"shop/web.yaml": "kind: Broken"}))
    for _ in range(2):
        assert asked(handler).outcome is Outcome.FAILED
    assert [each.id for each in state_of(handler).history].count("shop.asked") == 1


def test_a_request_that_a_push_has_joined_is_run_for_the_push(handler: Handler, host: GitHost) -> None:
    asked(handler)
    newer = pushed(host, "2")
    assert asked(handler, hint=newer).outcome is Outcome.APPLIED


# --- those who ask for the same run
TWO = (("shop.a", "ann"), ("shop.b", "bob"))


@pytest.mark.parametrize("trigger", ["replay", "drift"])
def test_each_named_request_of_one_run_has_an_entry_of_its_own(handler: Handler, host: GitHost, trigger: str) -> None:
    pushed(host, "2")
    assert handler.run(Job("shop", trigger, actor="bob", run="shop.push", named=TWO)).outcome is Outcome.APPLIED
    found = {run: entry(handler, run) for run in ("shop.push", "shop.a", "shop.b")}
    assert {each.outcome for each in found.values()} == {"applied"}
    assert [(found[run].actor, found[run].trigger) for run, _ in TWO] == [("ann", "replay"), ("bob", "replay")]


def test_a_hundred_named_requests_of_one_run_push_no_deployment_out_of_the_history(handler: Handler, host: GitHost) -> None:
    pushed(host, "2")
    crowd = tuple((f"shop.n{number}", "ann") for number in range(100))
    handler.run(Job("shop", "replay", actor="ann", run="shop.n0", named=crowd))
    ids = [each.id for each in state_of(handler).history]
    assert ids[-2:] == ["shop.n0", "shop.first"]
    assert len(ids) == 10


def test_a_note_that_can_not_be_written_is_no_end(server: ApiServer, host: GitHost, handler: Handler) -> None:
    def full(call: Call, do: object) -> Reply:
        if call.asked.method == "PUT":
            return 403, {"kind": "Status", "reason": "Forbidden", "message": "no", "code": 403}, {}
        found: Reply = do()  # type: ignore[operator]  # the way on
        return found

    refused = engine(server, host, way=full)
    result = asked(refused)
    assert (result.outcome, result.recorded) == (Outcome.UNCHANGED, False)
    assert not asked(refused, dry_run=True).recorded


def test_two_workers_on_one_message_leave_one_entry(
    server: ApiServer, host: GitHost, handler: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = engine(server, host)
    source = late.dependencies("shop").preparer.source
    head = source.head

    def overtaken(*about: object) -> object:
        asked(handler)
        return head(*about)  # type: ignore[arg-type]  # its own

    source.head = overtaken  # type: ignore[method-assign,assignment]  # what happens meanwhile
    assert asked(late).recorded
    assert [each.id for each in state_of(late).history].count("shop.asked") == 1
