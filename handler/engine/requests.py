"""What is asked of a target by name: written into its record for the Lease's holder, done once, and answered there.

Law: a message that comes again does nothing twice: what has an end in the history isn't run again. Where no process remembers requests
(`Dependencies.notes`) each leaves an entry there, whatever it did. An entry that says busy, waiting or superseded gives way to the next
round of its run.
"""

from __future__ import annotations

from dataclasses import replace

from handler.config.settings import Target
from handler.engine.run import revision, transitions
from handler.engine.run.context import RunContext
from handler.engine.run.errors import RequestRefused
from handler.engine.run.readiness import allowing
from handler.model.advice import advice
from handler.model.errors import AnnealError, Busy, LeaseLost, Stopping
from handler.model.event import NAMED, Job
from handler.model.result import Outcome, Result
from handler.plan.missing_settings import taking_over
from handler.state import run_history
from handler.state.record import State
from handler.state.record_values import AS_CONFIGURED, RunOnce


def ask(run: RunContext) -> None:
    """Write what a person asked into the state, for us or for the Lease's holder.

    Force stands there from now on: the next attempt honours it, once. It stays ours where it vouches for a commit: what only a shell
    vouches for isn't left for another. Raises RequestRefused: nothing such is held, another command must go on with it, or the commit never
    ran; CommitUnproven; RefNotFound: the host doesn't have a forced commit.
    """
    if run.job.promote:  # it is done by the run that was asked for it, or not at all
        return
    held, approval = run.state.held, run.state.approval
    if run.job.approve and run.job.approve not in (held and held.id, approval and approval.id):
        seen = f"held now: {held.id}" if held else "nothing is held"
        as_it_is = held or run.deps.once == AS_CONFIGURED
        fix = advice("anneal status {}", run.job.target) if as_it_is else advice("to hold it anew: {text}", _command(run))
        raise RequestRefused.of(f"target {run.job.target}", f"can't approve {run.job.approve}; {seen}", fix=fix)
    if held and held.id == run.job.approve and not _may_go_on(run.deps.target, held.once):
        seen = f"{held.id} is of a command that does what the settings don't say, so another can't go on with it"
        raise RequestRefused.of(f"target {run.job.target}", seen, fix=allowing(run.job.target, held))
    if run.job.commit and not run.revision.commit:
        revision.choose(run)
    if run.job.commit and revision.never_ran(run):
        run.deps.preparer.tree(run.revision.commit)
    if run.revision.vouched:
        return
    pin = revision.pin_left(run) if run.job.commit else None
    initial = None if run.stored.uid else run.state
    corrects = run.deps.target.drift == "correct"
    run.stored = run.deps.store.update(lambda state: transitions.asked(state, run.job, pin, run.deps.clock(), corrects=corrects), initial)
    if run.job.force and not run.job.commit:
        run.job, run.forced = replace(run.job, force=False), True


def _may_go_on(target: Target, once: RunOnce) -> bool:
    """Whether a run by these settings does all that a command did beyond the configured ones."""
    return set(once.adopt) <= set(target.adopts) and once.prune <= target.prunes_undeclared


def _command(run: RunContext) -> str:
    """Return the command of a run that does what the settings don't say."""
    name, once = run.job.target, run.deps.once
    return taking_over(name, once.adopt) if once.adopt else advice("anneal prune {}", name)


def busy(run: RunContext, error: Busy) -> Busy:
    """Return the error of a run that finds the Lease held; its holder does only what it reads in the record, by the target's settings."""
    name, commit = run.job.target, run.revision.commit or run.job.commit
    if run.job.promote:
        left, fix = "nothing was promoted", advice("anneal promote {}", name)
        if commit:
            at_once = "{text} --commit {}; at once, pinned to it: anneal apply {} --commit {} --force"
            fix = advice(at_once, fix, commit, name, commit)
    elif run.deps.once != AS_CONFIGURED:
        left, fix = "this isn't left for it", _command(run)
    elif run.revision.vouched:
        left, fix = "this isn't left for it", advice("anneal apply {} --commit {} --force", name, commit)
    else:
        return error
    said = [f"{each.message.partition(';')[0]}; {left}" for each in error.problems]
    fix = advice("once that is done: {text}", fix)
    return Busy(*(replace(each, message=text, fix=fix) for each, text in zip(error.problems, said, strict=True)))


_ENDS = frozenset(map(str, Outcome)) - {Outcome.LAGGING}


def noted(run: RunContext, job: Job, result: Result) -> Result:
    """Leave an entry of each request that was asked for by name and left none; only where no process remembers it (`Dependencies.notes`).

    It is a swap on the newest state, also while another run's attempt is open. What is repeated or goes on later leaves none.
    """
    known = {entry.id for entry in run.stored.state.history} if run.stored.state else set()
    left = [(name, actor) for name, actor in job.requests if name not in known]
    if not left or not run.deps.notes or run.stored.state is None or _comes_again(run, result):
        return result
    started = run.began(result.commit)
    seconds = round(max(run.clock() - started, 0.0), 3)
    end = replace(result, trigger=job.cause if job.trigger in NAMED else NAMED[0], duration=seconds)

    def change(state: State) -> State:
        there = {entry.id for entry in state.history}  # another worker may have ended the same meanwhile
        for name, actor in [each for each in left if each[0] not in there]:
            entry = run_history.run_of(replace(end, run=name), run.round.commit, actor, started)
            state = replace(state, history=run_history.append(state.history, entry))
        return state

    try:
        run.stored = run.deps.store.update(change, run.state)
    except AnnealError:
        return replace(result, recorded=False)
    return replace(result, recorded=True)


def ended_before(run: RunContext) -> Result | None:
    """Return the recorded end of a run whose message came again: what was asked by name is done once; None: there is something to do."""
    job = run.job
    asked = [name for name, _ in job.requests] or ([job.run] if job.run and job.acts else [])
    if not asked or run.rounds or job.hint or job.deliveries or job.drift:
        return None
    entries = {entry.id: entry for entry in run.state.history if entry.outcome in _ENDS}
    if not all(name in entries for name in asked):
        return None
    last = entries[job.run] if job.run in entries else entries[asked[-1]]
    run.revision = replace(run.revision, commit=last.commit)
    return replace(run.result(Outcome(last.outcome), last.message), counts=dict(last.counts), code=last.code, recorded=True)


def _comes_again(run: RunContext, result: Result) -> bool:
    cut = result.outcome is Outcome.BUSY and (run.stop.is_set() or result.code in (Stopping.code, LeaseLost.code))
    return cut or result.outcome is Outcome.LAGGING
