"""What a visitor may decide: each act with what it would do, confirmed, then asked for as a replay is. One literal table.

    look      what the act would change, by the same plan as a run's; which objects go
    confirm   a form that carries what was shown: the held plan's id, the commit, a digest of the deletions
    do        looks again; if what was shown still stands: a job for the queue, or a question to the worker

Law: nothing is done of which another thing was shown, or nothing at all: what can't be planned can't be confirmed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from handler.model.errors import BadPayload, SenderError
from handler.model.event import Job
from handler.model.manifest import canonical

Json = Mapping[str, Any]
Ask = Callable[..., Json]
Form = Mapping[str, str]
_COMMIT = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})?")
_LONGEST = 200  # characters of what a person writes into a field


class ShownOtherwise(SenderError, code="shown-otherwise", status=409):
    """What a visitor confirmed isn't what would be done now."""


@dataclass(frozen=True, slots=True)
class Act:
    """One act. `label`: of its button; `does`: a sentence; `fields`: what its form asks for.

    `plan`: the arguments of the question that shows what it would change, made of the form; None: it changes no object by itself, or
    (`of_hold`) a held plan says what. `job`: what of a job it sets, of the form and the held plan's id; `question`: asked of the worker
    instead.
    """

    name: str
    label: str
    does: str
    plan: Callable[[Form], dict[str, Any]] | None = None
    job: Callable[[Form, str], dict[str, Any]] | None = None
    question: str = ""
    fields: tuple[str, ...] = ()
    of_hold: bool = False


ACTS: Mapping[str, Act] = {
    act.name: act
    for act in (
        Act(
            "approve",
            "Approve",
            "Allows exactly the changes below, and runs the target.",
            job=lambda _form, hold: {"approve": hold},
            of_hold=True,
        ),
        Act(
            "replay",
            "Run now",
            "Runs the target: what differs from git is written, what git no longer declares is deleted.",
            plan=lambda _form: {},
            job=lambda _form, _hold: {},
        ),
        Act(
            "rollback",
            "Roll back",
            "Deploys an earlier commit whole, and pins it: the branch is followed again after an unpin, or when it changes the target.",
            plan=lambda form: {"commit": form.get("to", ""), "rollback": True},
            job=lambda form, _hold: {"commit": form.get("to", ""), "rollback": True},
            fields=("to",),
        ),
        Act(
            "unpin",
            "Unpin",
            "Follows the branch again, and runs the target.",
            plan=lambda _form: {"unpin": True},
            job=lambda _form, _hold: {"unpin": True},
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


def possible(state: Json, *, suspended: bool) -> tuple[Act, ...]:
    """Return the acts that make sense now, the most wanted first. `state`: a target's record, empty: there is none."""
    wanted = {
        "approve": bool(state.get("held")),
        "resume": suspended,
        "replay": True,
        "unpin": bool(state.get("pin")),
        "rollback": len({run["commit"] for run in state.get("history", ()) if run["commit"]}) > 1,
        "suspend": not suspended,
    }
    return tuple(ACTS[name] for name, makes_sense in wanted.items() if makes_sense)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What an act would do, as it is shown. `commit`: what would be deployed; of what changes no object, what is.

    `held`: the plan that waits, None: none does; `plan`: what would change, None: that isn't planned; `going`: the objects that would go.
    """

    act: Act
    target: str
    commit: str
    held: Json | None = None
    plan: Json | None = None
    going: tuple[Json, ...] = ()
    form: Form = field(default_factory=dict[str, str])

    @property
    def hold(self) -> str:
        """The id of the held plan; empty: none waits."""
        return str(self.held["id"]) if self.held else ""

    @property
    def unplanned(self) -> bool:
        """Whether what it would change isn't known: it would be confirmed unseen."""
        return self.plan is not None and bool(self.plan["problems"])

    @property
    def shown(self) -> str:
        """The digest of all that was shown."""
        going = sorted([str(each["action"]), str(each["object"]), str(each["uid"])] for each in self.going)
        entered = [self.form.get(name, "") for name in self.act.fields if name == "to"]
        return hashlib.sha256(canonical([self.act.name, self.target, self.commit, self.hold, entered, going])).hexdigest()[:32]

    def require(self, form: Form) -> None:
        """Raise ShownOtherwise unless a form was made of what stands now, and that is known."""
        sent = [form.get(name, "") for name in ("hold", "commit", "shown")]
        stands = all(hmac.compare_digest(one.encode(), other.encode()) for one, other in zip(sent, self._proof(), strict=True))
        if not stands or self.unplanned:
            raise ShownOtherwise.of(f"target {self.target}", "what was shown has changed meanwhile, and nothing was done")

    def _proof(self) -> tuple[str, str, str]:
        return self.hold, self.commit, self.shown

    def job(self, actor: str) -> Job:
        """Return what the queue takes."""
        assert self.act.job, "this act is no job"  # noqa: S101 - its caller asks first
        return Job(self.target, "replay", actor=actor, **self.act.job(self.form, self.hold))


def look(act: Act, target: str, form: Form, ask: Ask) -> Confirmation:
    """Find out what an act would do. `ask`: of the worker. Raises BadPayload: a field is none; ShownOtherwise: it makes no sense."""
    form = {name: form.get(name, "").strip()[:_LONGEST] for name in act.fields}
    if not _COMMIT.fullmatch(form.get("to", "")):
        raise BadPayload.of("form", "`to` is not a commit id")
    state = ask("target", name=target)["target"]["state"] or {}
    held, applied = state.get("held"), state.get("commit", "")
    if act.of_hold:
        if not held:
            raise ShownOtherwise.of(f"target {target}", "nothing is held any more")
        going = tuple(each for each in held["changes"]["items"])
        return Confirmation(act, target, held["commit"], held, None, going, form)
    if act.plan is None:
        return Confirmation(act, target, applied, held, form=form)
    plan = ask("gap", name=target, **act.plan(form))["gap"]
    going = tuple(each for each in plan["objects"] if each["deletes"])
    if "to" in form:
        form["to"] = form["to"] or plan["commit"]  # the commit before may be another one once it runs
    return Confirmation(act, target, plan["commit"], held, plan, going, form)
