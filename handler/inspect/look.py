"""One look at a target: a dry run of what its next run would deploy, or of what a person is about to ask for, and what it says.

    Ask --> Handler.look, the plan and each object's fields --> Look, from which `gap` and `orphans` are made

Law: it is a dry run, by the target's own identity; a plan that can't be made is an answer, too: its problems.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from handler.app.build import Handler
from handler.app.run_guard import guarded
from handler.model.errors import AnnealError, Problem
from handler.model.event import Job
from handler.model.plan import Change, Hold
from handler.model.result import Result
from handler.plan.gap import MOST, FieldGaps
from handler.state.record import State
from handler.state.record_format import stamp

SHOWN = 200  # items of a list that stand in no list of their own: what is held, problems, notes


@dataclass(frozen=True, slots=True)
class Ask:
    """What is looked at: the head or the pin, as the next run would; or `commit`, `rollback`, `unpin` as a person would ask for it.

    `force`: hooks and steps that have run are due once more, as in the run that a person asks for.
    `beside`: undeclared objects of the target's namespaces are looked for, too.
    `object`: whose equal fields are listed, empty: those of all while they are `most` at most.
    """

    target: str
    commit: str = ""
    rollback: bool = False
    unpin: bool = False
    object: str = ""
    most: int = MOST
    force: bool = False
    beside: bool = False

    @property
    def job(self) -> Job:
        """The dry run that answers it."""
        asked = Job(self.target, "oneoff", commit=self.commit, rollback=self.rollback, unpin=self.unpin)
        return replace(asked, force=self.force, dry_run=True)


@dataclass(frozen=True, slots=True)
class Look:
    """What was found. `state`: the record, None: it has none or can't be read; `at`: seconds since the epoch; `held`: which changes are.

    `everywhere`: the target may have any namespace.
    """

    ask: Ask
    result: Result
    gaps: FieldGaps
    state: State | None
    at: float
    held: frozenset[tuple[str, str]] = frozenset()
    everywhere: bool = False

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every object of the plan; none where there is no plan."""
        return self.result.plan.changes if self.result.plan else ()

    @property
    def hold(self) -> Hold | None:
        """What waits for a person."""
        return self.result.plan.hold if self.result.plan else None

    def holds(self, change: Change) -> bool:
        """Whether a guard holds exactly this change: of what lives by its uid, for of fields that go it names values that aren't shown."""
        action, name, uid = change.key()
        return (action, uid or name) in self.held


def look(handler: Handler, ask: Ask, now: float) -> Look:
    """Look at a target; whatever goes wrong is the result's."""
    gaps = FieldGaps(ask.object, ask.most, beside=[] if ask.beside else None)
    result = guarded(handler.look)(ask.job, gaps)
    hold = result.plan.hold if result.plan else None
    held = frozenset((action, uid or name) for action, name, uid in hold.changes) if hold else frozenset[tuple[str, str]]()
    target = handler.settings.target(ask.target)
    return Look(ask, result, gaps, _recorded(handler, ask.target), now, held, target is not None and "*" in target.namespaces)


def _recorded(handler: Handler, name: str) -> State | None:
    try:
        return handler.brief_store(handler.target(name)).read().state
    except AnnealError:
        return None


@dataclass(frozen=True, slots=True)
class Seen:
    """What every answer begins with. `aim`: head, pin, commit, rollback or unpin; `deployed`: the record's commit."""

    target: str
    at: str
    aim: str
    commit: str
    deployed: str
    outcome: str
    message: str
    hold: dict[str, Any] | None
    notes: tuple[str, ...]
    problems: tuple[Problem, ...]
    who: str
    code: str

    @classmethod
    def of(cls, seen: Look) -> Seen:
        """Take them from a look."""
        result, state = seen.result, seen.state
        return cls(
            target=seen.ask.target,
            at=stamp(seen.at),
            aim=_aim(seen),
            commit=result.commit,
            deployed=state.commit if state else "",
            outcome=str(result.outcome),
            message=result.message,
            hold=_held(seen.hold, state) if seen.hold else None,
            notes=result.plan.notes[:SHOWN] if result.plan else (),
            problems=tuple(each.bare() for each in result.problems[:SHOWN]),
            who=result.who,
            code=result.code,
        )


def _aim(seen: Look) -> str:
    ask, pin = seen.ask, seen.state.pin if seen.state else None
    pinned = pin is not None and pin.commit == seen.result.commit
    asked = {"rollback": ask.rollback, "commit": bool(ask.commit), "unpin": ask.unpin, "pin": pinned}
    return next((aim for aim, is_so in asked.items() if is_so), "head")


def _held(hold: Hold, state: State | None) -> dict[str, Any]:
    """Return what is held as JSON; `recorded`: a run has held exactly that, so that it can be approved."""
    recorded = state is not None and state.held is not None and state.held.id == hold.id
    listed = [{"action": action, "object": name, "uid": uid} for action, name, uid in hold.changes[:SHOWN]]
    return {"id": hold.id, "reasons": list(hold.reasons), "recorded": recorded, "changes": {"count": len(hold.changes), "items": listed}}
