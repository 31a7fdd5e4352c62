"""`anneal adopt`: objects of other tools change hands in one run: shown by owner, asked about, and carried out under all guards.

a dry run that takes over from --from, or from all that are found  -->  by owner: what goes, what stays, what to stop there first
--from, and yes                                                    -->  the same run, once, with the plan that was shown
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import click

from handler.cli import diff, reports
from handler.cli.filenames import again
from handler.cli.output import Output
from handler.cli.run_job import follow, run_as
from handler.cli.session import Session, local_user
from handler.config.settings import Owner, Target
from handler.config.value_formats import FORMS
from handler.model.advice import advice, together
from handler.model.errors import Problem
from handler.model.event import Job
from handler.model.instance import template_of
from handler.model.numbers import many
from handler.model.plan import Change
from handler.model.result import Result
from handler.plan.adoption import Adoptable, Adoptions
from handler.plan.missing_settings import MissingSetting, block, taking_over
from handler.plan.ownership import TOOLS, ForeignOwner, in_order

_ROUNDS = 2  # a plan names all ids of ApplySets that it meets, so that the second one has them all


def adopt(session: Session, target: str | None, owners: tuple[str, ...], yes: bool, dry_run: bool, approve: str) -> int:
    """Take over what other tools have deployed of what git declares for TARGET, in one run that asks first."""
    named = in_order(_owner(each) for text in owners for each in text.split(","))
    chosen, yes = session.target(target), yes or bool(approve)  # an id is named only by who has seen what it allows
    if chosen.adopt == "never":
        raise click.UsageError(_never(session, chosen))
    if approve and not named:
        raise click.UsageError("--approve allows what one takeover holds: pass the --from that it was held with, too")
    if named and not (yes or dry_run or session.output.interactive):
        raise click.UsageError(
            session.output.complete(advice("there is no terminal to ask on, so it needs -y: {text} -y", taking_over(chosen.name, named)))
        )
    session.output.way_out, session.again = _way_out(chosen), again()
    if named and yes and not dry_run:
        return _take(session, chosen, named, approve)
    survey = _survey(session, chosen, named)
    code = survey.show(session)
    if code or not named or dry_run or survey.ended.plan is None:
        return code
    if not session.output.confirm(f"{many(survey.adopted, 'object')} would change hands. Go on?"):
        session.output.line("nothing was changed", "warn")
        return reports.FAILED
    return _take(session, chosen, named, approve, survey.ended)


def _never(session: Session, target: Target) -> str:
    """Say why nothing is taken over, and the way out: of an instance its trigger may be why."""
    template = session.settings.target(template_of(target.name))
    if target.instance and template and template.adopt != "never":
        return f"the trigger of {template.name} lets instances take over nothing; write `adoptUnowned: true` beside mainResource first"
    return f"target {target.name} has `adopt: never`, and so nothing is taken over; remove that line first"


def _owner(text: str) -> Owner:
    if text in TOOLS or not FORMS["applySet"].complaint(text):
        return cast(Owner, text)
    near = difflib.get_close_matches(text.lower(), TOOLS, 1)
    way_out = f"did you mean {near[0]}?" if near else f"known are {', '.join(TOOLS)}, and {FORMS['applySet'].expected}"
    if text == "kubectl":
        way_out = "every run takes over what it has applied; what an ApplySet has needs the set's id, which adopt lists"
    raise click.UsageError(f"--from {text}: no such tool; {way_out}")


def _taking(target: Target, owners: Sequence[Owner]) -> Target:
    return replace(target, adopt=in_order((*target.adopts, *owners)) or "unowned")


def _way_out(target: Target) -> Callable[[Problem], str]:
    """Return what says the way out of a refusal here: owners that are lacking are named on the command line."""

    def said(problem: Problem) -> str:
        settings = dict(problem.settings) if isinstance(problem, MissingSetting) else {}
        lacking = [owner for owner in settings.pop("adopt", ()) if owner not in target.adopts]
        if not lacking or not isinstance(problem, MissingSetting):
            return problem.fix
        return together("\n", (taking_over(target.name, lacking), block(target.name, settings), *problem.more))

    return said


def _take(session: Session, target: Target, owners: Sequence[Owner], approve: str, shown: Result | None = None) -> int:
    job = Job(target.name, "oneoff", force=True, approve=approve, actor=local_user())

    def approves(held: str) -> str:
        return session.output.complete(taking_over(target.name, owners, held))

    def start() -> Result:
        return run_as(session, _taking(target, owners), job, f"taking over for {target.name}")

    agreed = shown.plan if shown else None
    return follow(session, start, yes=agreed is None, approves=approves, agreed=agreed)


# --- what would change hands
@dataclass(slots=True)
class _Survey:
    """A dry run that has taken over all that it may. `named`: by --from; none: by what was found."""

    target: Target
    named: tuple[Owner, ...]
    ended: Result
    adoptions: Adoptions
    changes: dict[Any, Change] = field(init=False)

    def __post_init__(self) -> None:
        self.changes = {change.identity: change for change in self.ended.plan.changes} if self.ended.plan else {}

    @property
    def adopted(self) -> int:
        """How many objects would change hands."""
        return sum(not each.refusal for each in self.adoptions.found.values())

    @property
    def command(self) -> str:
        """The command that takes over all that can be; empty: no other tool has anything."""
        found = [owner for owner in self.adoptions.owners() if owner not in self.target.adopts]
        return taking_over(self.target.name, found) if found else ""

    def show(self, session: Session) -> int:
        """Print the objects by their owners, then the rest of the run, and what refuses it; return the exit code."""
        output = session.output
        code = reports.DONE_CODE if self.ended.plan else reports.EXIT[self.ended.outcome]
        if output.as_json:
            output.document(self._facts(session))
            return code
        for owner, found in self.adoptions.by_owner().items():
            self._show_owner(session, owner, found)
        if self.ended.plan:
            diff.show(output, self.ended.plan, self._allows(output), printed=self.adoptions.found)
        else:
            reports.result(output, self.ended)
        if not self.named and self.command:
            output.line(f"to take them over: {output.complete(self.command)}", whole=True)
        elif not self.named and self.ended.plan:
            output.line("every run takes these over" if self.adopted else f"all that {self.target.name} declares is its own, or new")
        return code

    def _allows(self, output: Output) -> str:
        """Return the commands that allow what a run would hold: one that holds it, and one that names it."""
        hold = self.ended.plan.hold if self.ended.plan else None
        owners = self.named or self.adoptions.owners()
        both = (taking_over(self.target.name, owners), taking_over(self.target.name, owners, hold.id)) if hold and owners else ()
        return ", then ".join(map(output.complete, both))

    def _show_owner(self, session: Session, owner: ForeignOwner | None, found: Sequence[Adoptable]) -> None:
        output, named = session.output, f"  (--from {' --from '.join(owner.tools)})" if owner and owner.tools else ""
        whose = f"{owner.name} has {many(len(found), 'object')}{named}:" if owner else f"{many(len(found), 'object')} of no other tool:"
        output.line(whose, "head")
        for line in owner.stop if owner else ():
            output.line(f"  {line}", whole=True)
        for each in found:
            if each.refusal:
                output.line(f"! refused {each.identity}: {each.refusal}", "bad")
            elif each.identity in self.changes:
                diff.one(output, self.changes[each.identity], stays=True)
            else:
                output.line(f"~ {each.identity}", "warn")

    def _facts(self, session: Session) -> dict[str, Any]:
        return {
            "target": self.target.name,
            "from": self.named,
            "owners": [
                {
                    "owner": owner.name if owner else None,
                    "from": owner.tools if owner else (),
                    "stop": owner.stop if owner else (),
                    "objects": [self._object(each) for each in found],
                }
                for owner, found in self.adoptions.by_owner().items()
            ],
            "problems": reports.mended(session.output, self.ended.problems),
            "command": session.output.complete(self.command),
            "plan": reports.plan_facts(self.ended.plan) if self.ended.plan else None,
        }

    def _object(self, each: Adoptable) -> dict[str, Any]:
        change = self.changes.get(each.identity)
        bare = {"object": str(each.identity), "group": each.identity.group}
        return (reports.change_facts(change) if change else bare) | {"refusal": each.refusal}


def _survey(session: Session, target: Target, named: tuple[Owner, ...]) -> _Survey:
    """Plan as if `named`, or all owners that there are, gave up what they have."""
    job = Job(target.name, "oneoff", force=True, dry_run=True, actor=local_user())
    wanted = named or cast(tuple[Owner, ...], tuple(TOOLS))
    for _ in range(_ROUNDS):
        adoptions = Adoptions()
        ended = run_as(session, _taking(target, wanted), job, f"planning {target.name}", adoptions)
        lacking = [owner for each in ended.problems if isinstance(each, MissingSetting) for owner in dict(each.settings).get("adopt", ())]
        if named or not set(lacking) - set(wanted) - {"unowned"}:
            break
        wanted = in_order((*wanted, *cast(list[Owner], lacking)))
    return _Survey(target, named, ended, adoptions)
