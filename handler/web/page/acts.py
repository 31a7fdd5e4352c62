"""What a visitor may decide: each act with what it would do, confirmed, then asked for as a replay is. One literal table.

    look      what the act would change, by the same plan as a run's; which objects go
    confirm   a form that carries what was shown: the held plan's id, the commit, a digest of the deletions
    do        looks again; if what was shown still stands: a job for the queue, or a question to the worker

Law: nothing is done of which another thing was shown, nor of which nothing could be planned. A run decides once more, under its guards:
what moves after the form was sent, it plans as it finds it.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from flask import Response, request

from handler.config.settings import Target
from handler.model.errors import AnnealError, BadPayload, Forbidden, Problem, ShownOtherwise
from handler.model.event import Job
from handler.model.manifest import canonical
from handler.web.page.access import away
from handler.web.page.roles import Visitor
from handler.web.page.views import NotAnswered, Page

Json = Mapping[str, Any]
Ask = Callable[..., Json]
Form = Mapping[str, str]
_COMMIT = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})?")
_LONGEST = 200  # characters of what a person writes into a field


@dataclass(frozen=True, slots=True)
class Act:
    """One act. `label`: of its button; `does`: a sentence; `fields`: what its form asks for.

    `plan`: the arguments of the question that shows what it would change, made of the form; None: it changes no object by itself, or
    (`of_hold`) a held plan says what. `job`: what of a job it sets; `question`: asked of the worker instead.
    """

    name: str
    label: str
    does: str
    plan: Callable[[Form], dict[str, Any]] | None = None
    job: Callable[[Confirmation], dict[str, Any]] | None = None
    question: str = ""
    fields: tuple[str, ...] = ()
    of_hold: bool = False

    def is_done(self, facts: Json) -> bool:
        """Whether a pause is as this act leaves it; of any other act its run says so. `facts`: of `/api/targets/<target>`."""
        return bool(self.question) and bool(facts["suspended"]) == (self.name == "suspend")


ACTS: Mapping[str, Act] = {
    act.name: act
    for act in (
        Act(
            "approve",
            "Approve",
            "Allows exactly the changes below, and runs the target.",
            job=lambda shown: {"approve": shown.hold},
            of_hold=True,
        ),
        Act(
            "replay",
            "Run now",
            "Runs the target: what differs from git is written, what git no longer declares is deleted.",
            plan=lambda _form: {"force": True},
            job=lambda _shown: {"force": True},  # as `anneal apply` does: without, a run looks at nothing where git hasn't moved
        ),
        Act(
            "rollback",
            "Roll back",
            "Deploys an earlier commit whole, and pins it: the branch is followed again after an unpin, or when it changes the target.",
            plan=lambda form: {"commit": form.get("to", ""), "rollback": True},
            job=lambda shown: {"commit": shown.commit, "rollback": True},  # the commit that was shown, whichever is the one before by then
            fields=("to",),
        ),
        Act(
            "unpin",
            "Unpin",
            "Follows the branch again, and runs the target.",
            plan=lambda _form: {"unpin": True},
            job=lambda _shown: {"unpin": True},
        ),
        Act(
            "suspend",
            "Suspend",
            "Pauses the target: no run writes until it is resumed; one under way stops before its next stage.",
            question="suspend",
            fields=("reason", "until"),
        ),
        Act("resume", "Resume", "Ends the pause; the next run goes on.", question="resume"),
    )
}


def possible(facts: Json) -> tuple[Act, ...]:
    """Return the acts that make sense now, the most wanted first. `facts`: of `/api/targets/<target>`."""
    state, runs = facts["state"] or {}, not facts["suspended"]
    held = state.get("held")
    wanted = {
        "approve": runs and held is not None and not held["command"],
        "resume": bool(facts["suspended"]) and not facts["suspendedByConfiguration"],
        "replay": runs,
        "unpin": runs and bool(state.get("pin")),
        "rollback": runs and len({run["commit"] for run in state.get("history", ()) if run["commit"]}) > 1,
        "suspend": runs,
    }
    return tuple(ACTS[name] for name, makes_sense in wanted.items() if makes_sense)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What an act would do, as it is shown. `commit`: what would be deployed; of what changes no object, what is.

    `held`: the plan that waits, None: none does; `plan`: what would change, None: that isn't planned; `going`: the objects that would go.
    `pause`: the one that holds, None: none does.
    """

    act: Act
    target: str
    commit: str
    held: Json | None = None
    plan: Json | None = None
    going: tuple[Json, ...] = ()
    form: Form = field(default_factory=dict[str, str])
    pause: Json | None = None

    @property
    def hold(self) -> str:
        """The id of the held plan; empty: none waits."""
        return str(self.held["id"]) if self.held else ""

    @property
    def unplanned(self) -> bool:
        """Whether the act needs a plan, and none could be made."""
        return self.plan is not None and (self.plan["outcome"] != "planned" or bool(self.plan["problems"]))

    @property
    def shown(self) -> str:
        """The digest of all that was shown; of a pause no more than which one holds: it waits for nothing that moves."""
        if self.act.question:
            return _digest([self.act.name, self.target, self.pause])
        going = sorted([*(str(each[name]) for name in ("action", "object", "uid")), bool(each.get("held"))] for each in self.going)
        due = [[str(each[name]) for name in ("group", "step", "action", "object")] for each in (self.plan or {}).get("due", ())]
        entered = [self.form.get(name, "") for name in self.act.fields if name == "to"]
        return _digest([self.act.name, self.target, self.commit, self.hold, entered, going, due])

    def require(self, form: Form) -> None:
        """Raise ShownOtherwise unless a form was made of what stands now, and it can be planned."""
        if self.unplanned:
            raise ShownOtherwise.of(f"target {self.target}", "can't be planned now, and nothing was done")
        if not all(hmac.compare_digest(form.get(name, "").encode(), text.encode()) for name, text in self._proof().items()):
            raise ShownOtherwise.of(f"target {self.target}", "what was shown has changed meanwhile, and nothing was done")

    def _proof(self) -> Form:
        proof = {"shown": self.shown}
        return proof if self.act.question else proof | {"hold": self.hold, "commit": self.commit}

    def about(self, by: str) -> Json:
        """Return what the worker is asked with."""
        return {"by": by, "seen": self.pause["at"] if self.pause else "", **{name: self.form[name] for name in self.act.fields}}

    def job(self, actor: str) -> Job:
        """Return what the queue takes."""
        assert self.act.job, "this act is no job"  # noqa: S101 - its caller asks first
        return Job(self.target, "replay", actor=actor, **self.act.job(self))


def _digest(shown: list[Any]) -> str:
    return hashlib.sha256(canonical(shown)).hexdigest()[:32]


def look(act: Act, target: str, form: Form, ask: Ask) -> Confirmation:
    """Find out what an act would do now. `ask`: of the worker.

    Raises BadPayload: a field is none; ShownOtherwise: it makes no sense; NotAnswered: how the target stands now, or what would change,
    can't be found out.
    """
    try:
        return _looked(act, target, form, ask)
    except NotAnswered as error:
        raise NotAnswered(*error.problems, Problem("page", "nothing was done", fix="try it once more when that is mended")) from None


def _looked(act: Act, target: str, form: Form, ask: Ask) -> Confirmation:
    form = {name: form.get(name, "").strip()[:_LONGEST] for name in act.fields}
    if not _COMMIT.fullmatch(form.get("to", "")):
        raise BadPayload.of("form", "`to` is not a commit id")
    facts = ask("target", name=target, patient=True)["target"]
    if facts["trouble"]:  # what was seen before decides nothing
        raise NotAnswered.of(f"target {target}", str(facts["trouble"]["message"]))
    _require_sense(act, target, facts)
    state = facts["state"] or {}
    held, applied = state.get("held"), state.get("commit", "")
    if act.of_hold:
        if not held:
            raise ShownOtherwise.of(f"target {target}", "nothing is held any more")
        going = tuple(held["changes"]["items"])
        return Confirmation(act, target, held["commit"], held, None, going, form)
    if act.plan is None:
        return Confirmation(act, target, applied, held, form=form, pause=state.get("suspend") if facts["suspended"] else None)
    plan = ask("gap", name=target, anew=True, **act.plan(form))["gap"]  # it is done next: no plan of a moment ago
    going = (*(each for each in plan["objects"] if each["deletes"]), *plan["lost"])
    if "to" in form:
        form["to"] = form["to"] or plan["commit"]  # the commit before may be another one once it runs
    return Confirmation(act, target, plan["commit"], held, plan, going, form)


def _require_sense(act: Act, target: str, facts: Json) -> None:
    """Raise ShownOtherwise where a pause, or its absence, leaves an act nothing to do."""
    if act.question and facts["suspendedByConfiguration"]:
        raise ShownOtherwise.of(f"target {target}", "the configuration suspends it", fix="set `suspend: false` in anneal.yaml")
    if act.name == "resume" and not facts["suspended"]:
        raise ShownOtherwise.of(f"target {target}", "isn't suspended any more")
    if act.name == "suspend" and facts["suspended"]:
        raise ShownOtherwise.of(f"target {target}", "is suspended already, and that pause stays", fix="resume it first")
    if not act.question and facts["suspended"]:
        raise ShownOtherwise.of(f"target {target}", "is suspended, and no run writes", fix="resume it first")


_LOG = logging.getLogger("anneal.page")


def confirm(page: Page, visitor: Visitor, target: Target, act: Act) -> Response:
    """Show what an act would do. Raises Forbidden: the visitor is no operator of the target."""
    _require_operator(visitor, target)
    return _form(page, visitor, target, look(act, target.name, request.args, page.answers.ask))


def do(page: Page, visitor: Visitor, target: Target, act: Act) -> Response:
    """Do what was confirmed, or show what has changed since: 409. Raises Forbidden: no operator, or a form that isn't ours."""
    page.access.require_csrf(visitor, request)
    _require_operator(visitor, target)
    found = look(act, target.name, request.form, page.answers.ask)
    try:
        found.require(request.form)
    except ShownOtherwise as changed:
        return _form(page, visitor, target, found, changed)
    try:
        done = _done(page, visitor, found)
    except ShownOtherwise as changed:  # since that look
        return _form(page, visitor, target, look(act, target.name, request.form, page.answers.ask), changed)
    except BadPayload as refusal:  # what was typed is still there
        return _form(page, visitor, target, found, refusal)
    run = "" if act.question else f"&run={done}"
    _LOG.info("asked on the page", extra={"fields": {"target": target.name, "act": act.name, "actor": visitor.name, "seen": done}})
    return away(f"/ui/targets/{target.name}?asked={act.name}{run}")


def _done(page: Page, visitor: Visitor, found: Confirmation) -> str:
    if found.act.question:
        return str(page.answers.ask(found.act.question, name=found.target, **found.about(visitor.name))["done"])
    return page.queue.put(found.job(visitor.name))


def _form(page: Page, visitor: Visitor, target: Target, found: Confirmation, refusal: AnnealError | None = None) -> Response:
    status = getattr(refusal, "status", 200)
    return page.html(visitor, "confirm.html", status=status, target=target, act=found.act, found=found, refusal=refusal)


def _require_operator(visitor: Visitor, target: Target) -> None:
    if not visitor.operates(target.name):
        raise Forbidden.of(visitor.name, f"is no operator of {target.name}")
