"""An act does what was shown, or nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from handler.model.errors import BadPayload, ShownOtherwise
from handler.state.record import HeldPlan, State, Suspend
from handler.state.record_values import RunOnce
from handler.web.page.acts import ACTS, Confirmation, look, possible
from tests.unit.rows import each_row
from tests.unit.state.samples import NOON, blank, full, sha
from tests.unit.web.page.records import NAME, facts_of

pytestmark = pytest.mark.slow

LATER = "2999-01-01T00:00:00Z"
GOING = {"object": "Service/shop/old", "uid": "u1", "action": "prune", "deletes": True, "reason": "no longer declared"}
STAYS = {"object": "Service/shop/web", "uid": "u2", "action": "unchanged", "deletes": False, "reason": ""}


class Worker:
    """Answers as the worker does; a test changes what it says."""

    def __init__(self, state: State | None, commit: str = sha("c"), *objects: dict[str, Any]) -> None:
        self.state, self.commit, self.objects = state, commit, list(objects)
        self.asked: list[dict[str, Any]] = []
        self.facts: dict[str, bool] = {}
        self.outcome, self.due = "planned", list[dict[str, str]]()
        self.problems: list[dict[str, Any]] = []
        self.lost: list[dict[str, Any]] = []

    def __call__(self, question: str, **about: Any) -> dict[str, Any]:
        self.asked.append({"question": question, **about})
        if question == "target":
            return {"target": facts_of(self.state) | self.facts}
        plan = {"commit": self.commit, "objects": self.objects, "due": self.due, "lost": self.lost, "outcome": self.outcome}
        return {"gap": plan | {"problems": self.problems}}


def form(found: Confirmation, **other: str) -> dict[str, str]:
    return {"hold": found.hold, "commit": found.commit, "shown": found.shown, **found.form, **other}


def looked(act: str, worker: Worker, **sent: str) -> Confirmation:
    return look(ACTS[act], NAME, sent, worker)


@each_row(
    ("act", "sent", "about"),
    [
        ("replay", {}, {"force": True}),
        ("rollback", {"to": sha("b")}, {"commit": sha("b"), "rollback": True}),
        ("unpin", {}, {"unpin": True}),
    ],
)
def test_what_an_act_would_change_is_planned_as_its_run_would(act: str, sent: dict[str, str], about: dict[str, Any]) -> None:
    worker = Worker(full(), sha("c"), GOING, STAYS)
    found = looked(act, worker, **sent)
    assert worker.asked[-1] == {"question": "gap", "name": NAME, "anew": True, **about}
    assert (found.commit, [each["object"] for each in found.going]) == (sha("c"), ["Service/shop/old"])


def test_an_approval_names_what_is_held_and_plans_nothing() -> None:
    worker = Worker(full())
    found = looked("approve", worker)
    assert [each["question"] for each in worker.asked] == ["target"]
    assert [each["object"] for each in found.going] == ["apps/Deployment/shop/api"]
    assert (found.hold, found.commit) == ("h1", sha("e"))


@each_row("act", ["suspend", "resume"])
def test_a_pause_writes_no_object_and_plans_nothing(act: str) -> None:
    worker = Worker(replace(full(), suspend=Suspend("ada", until=LATER)) if act == "resume" else full())
    found = looked(act, worker, reason="maintenance", until="2h")
    assert [each["question"] for each in worker.asked] == ["target"]
    found.require(form(found))
    assert not found.going


@each_row("changed", ["hold", "commit", "shown"])
@each_row("value", ["", "other", "é"])
def test_a_form_of_something_else_does_nothing(changed: str, value: str) -> None:
    found = looked("approve", Worker(full()))
    with pytest.raises(ShownOtherwise) as refused:
        found.require(form(found, **{changed: value}))
    assert refused.value.status == 409
    with pytest.raises(ShownOtherwise):
        found.require({})


def test_what_has_changed_since_it_was_shown_isnt_done() -> None:
    worker = Worker(full(), sha("c"), GOING)
    shown = form(looked("replay", worker))
    worker.objects.append({**GOING, "object": "Service/shop/more", "uid": "u3"})
    with pytest.raises(ShownOtherwise):
        looked("replay", worker).require(shown)
    worker.objects.pop()
    looked("replay", worker).require(shown)
    worker.objects[0] = {**GOING, "uid": "another of that name"}
    with pytest.raises(ShownOtherwise):
        looked("replay", worker).require(shown)
    worker.objects[0] = {**GOING, "held": True}
    with pytest.raises(ShownOtherwise):
        looked("replay", worker).require(shown)
    worker.objects[0], worker.due = GOING, [{"group": "PreSync", "step": "migrate", "object": "Job/shop/migrate", "action": "run"}]
    with pytest.raises(ShownOtherwise):
        looked("replay", worker).require(shown)
    worker.due, worker.lost = [], [{"action": "lose", "object": "ConfigMap/shop/settings", "uid": "u4", "held": False}]
    with pytest.raises(ShownOtherwise):
        looked("replay", worker).require(shown)
    worker.lost, worker.commit = [], sha("d")
    with pytest.raises(ShownOtherwise):
        looked("replay", worker).require(shown)


def test_the_commit_to_go_back_to_is_the_one_that_was_shown() -> None:
    worker = Worker(full(), sha("b"), GOING)
    shown = form(looked("rollback", worker))
    again = looked("rollback", worker, to=shown["to"])
    again.require(shown)
    assert again.job("ada").commit == sha("b")


def test_a_confirmation_of_one_act_or_commit_is_none_of_another() -> None:
    worker = Worker(full(), sha("c"))
    shown = form(looked("replay", worker))
    with pytest.raises(ShownOtherwise):
        looked("unpin", worker).require(shown)
    back = form(looked("rollback", worker, to=sha("b")))
    with pytest.raises(ShownOtherwise):
        looked("rollback", worker, to=sha("a")).require({**back, "to": sha("a")})


@each_row("act", ["replay", "rollback", "unpin"])
@each_row("outcome", ["failed", "planned"])
def test_what_cant_be_planned_isnt_done(act: str, outcome: str) -> None:
    worker = Worker(full())
    worker.outcome = outcome
    if outcome == "planned":
        worker.problems.append({"subject": "cluster", "message": "gives no answer", "place": "", "fix": ""})
    found = looked(act, worker)
    assert found.unplanned
    with pytest.raises(ShownOtherwise, match="can't be planned now, and nothing was done"):
        found.require(form(found))


def test_a_pause_comes_also_while_something_moves() -> None:
    shown = form(looked("suspend", Worker(full())))
    looked("suspend", Worker(replace(full(), held=None, commit=sha("d")))).require(shown)


def paused(by: str, at: str = NOON) -> State:
    return replace(full(), suspend=Suspend(by, "an incident", LATER, at))


def test_a_pause_that_another_person_set_meanwhile_stays() -> None:
    shown = form(looked("suspend", Worker(full())))
    assert looked("suspend", Worker(full())).about("ada") == {"by": "ada", "seen": "", "reason": "", "until": ""}
    with pytest.raises(ShownOtherwise, match="is suspended already") as refused:
        looked("suspend", Worker(paused("bob"))).require(shown)
    assert refused.value.status == 409


LONGER = replace(full(), suspend=Suspend("bob", "another incident", "", NOON))


@pytest.mark.parametrize("now", [paused("carol"), paused("bob", "2026-07-27T12:00:00Z"), LONGER], ids=["another's", "later", "otherwise"])
def test_a_pause_that_wasnt_shown_is_not_ended(now: State) -> None:
    known = looked("resume", Worker(paused("bob")))
    shown = form(known)
    looked("resume", Worker(replace(paused("bob"), commit=sha("d"), held=None))).require(shown)
    assert known.about("ada") == {"by": "ada", "seen": NOON}
    with pytest.raises(ShownOtherwise, match="nothing was done"):
        looked("resume", Worker(now)).require(shown)


def test_on_a_suspended_target_nothing_is_run() -> None:
    suspended = Worker(paused("ada"))
    for act in ("replay", "approve", "rollback", "unpin"):
        with pytest.raises(ShownOtherwise, match="is suspended, and no run writes; resume it first"):
            looked(act, suspended)
    with pytest.raises(ShownOtherwise, match="isn't suspended any more"):
        looked("resume", Worker(full()))
    configured = Worker(full())
    configured.facts = {"suspended": True, "suspendedByConfiguration": True}
    for act in ("suspend", "resume"):
        with pytest.raises(ShownOtherwise, match="set `suspend: false` in anneal"):
            looked(act, configured)


def test_nothing_held_is_nothing_to_approve() -> None:
    with pytest.raises(ShownOtherwise, match="nothing is held any more"):
        looked("approve", Worker(replace(full(), held=None)))


@each_row("to", ["main", "a" * 39, "--all", sha("b") + "x", "A" * 40])
def test_a_commit_to_go_back_to_is_a_whole_id(to: str) -> None:
    with pytest.raises(BadPayload, match="`to` is not a commit id"):
        looked("rollback", Worker(full()), to=to)


def test_acts_are_offered_where_they_make_sense() -> None:
    def offered(state: State | None, **facts: bool) -> list[str]:
        return [act.name for act in possible(facts_of(state) | facts)]

    assert offered(full()) == ["approve", "replay", "unpin", "suspend"]
    takeover = replace(cast(HeldPlan, full().held), once=RunOnce(("flux",)))
    assert offered(replace(full(), held=takeover)) == ["replay", "unpin", "suspend"], "a command line alone goes on with it"
    assert offered(full(), suspended=True) == ["resume"]
    assert offered(full(), suspended=True, suspendedByConfiguration=True) == []
    assert offered(None) == ["replay", "suspend"]
    two = replace(full(), held=None, pin=None, history=(*full().history, replace(full().history[0], id="r0", commit=sha("b"))))
    assert offered(two) == ["replay", "rollback", "suspend"]
    assert offered(blank()) == ["replay", "suspend"]
