"""Hooks, carried out: in waves, each created, followed to its end, and deleted by its policies when its phase is over.

Law: each transition stands in the record before what follows it. What has ended isn't run again in the same rollout, what runs is waited
for, what is gone stays gone. Deleted is only what a rollout made as this hook, in whatever state it is, or what the plan names, under its
uid; what loses data with it, or is protected by others than the hook itself, never.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

from handler.cluster.live import probe
from handler.cluster.parallel import parallel
from handler.cluster.write import Writer
from handler.config.settings import Wait
from handler.engine.apply.apply import Applier
from handler.engine.apply.wait_deleted import wait_until_gone
from handler.engine.planner.due import token
from handler.engine.planner.hook_dry_run import ever_deletes, in_the_way, kept, makes_way
from handler.engine.planner.join_errors import raise_together
from handler.engine.rollout_runner.journal import DONE, FAILED, SKIPPED, Journal, JournalWaitRecord
from handler.engine.run.context import RunContext
from handler.engine.run.errors import ROLLOUT_FAILURES, rollout_failure
from handler.engine.waits.wait import Waits
from handler.model.errors import ApiRefused, AuthorError, OperatorError, PlanStale, Problem, QuotaExceeded, RolloutFailed, TransientError
from handler.model.field_masking import without_credentials
from handler.model.health import Health, Status
from handler.model.names import Identity
from handler.model.plan import SAID, Action, Cause, Change, Gone
from handler.model.rollout import Phase, Policy
from handler.plan.admission import Desired
from handler.plan.hooks import ACTION, PlannedHooks, is_made
from handler.plan.inventory import is_member
from handler.plan.judge import NO_HOOK_TAKES
from handler.plan.order import sort_key
from handler.plan.quoted_refusal import told_refusal
from handler.rollout import hook_annotations
from handler.state.record_format import seconds_of

Object = dict[str, Any]
_CREATE_ONLY = "1"  # A resourceVersion without a uid: an absent object is created, one that came meanwhile answers 409


@dataclass(slots=True)
class HookRunner:
    """Carries out the hooks of one rollout. `lost`: what hooks have deleted of what the plan counted, or made anew."""

    run: RunContext
    planned_hooks: PlannedHooks
    applier: Applier
    waits: Waits
    journal: Journal
    lost: dict[Identity, Change] = field(default_factory=dict)
    _ended: set[Identity] = field(default_factory=set)

    def expect(self, *phases: Phase) -> None:
        """Record what there is to run, before the first of it runs."""
        self.journal.expect([(phase, str(one), str(one), ACTION) for phase in phases for one in self.planned_hooks.of(phase)])

    def open(self, phase: Phase, wanted: Iterable[Identity]) -> list[Identity]:
        """Return which of a phase's hooks haven't ended."""
        found = {one: self.journal.find(phase, str(one)) for one in wanted}
        return [one for one, step in found.items() if not (step and step.outcome)]

    def phase(self, phase: Phase) -> None:
        """Run a phase's hooks, wave by wave, then delete by policy. Raises RolloutFailed, QuotaExceeded, NewerHead, StillWaiting."""
        try:
            for wave in self.planned_hooks.waves.get(phase, ()):
                self.wave(phase, wave)
        except ROLLOUT_FAILURES:
            with contextlib.suppress(TransientError, OperatorError):  # tidying up hides no failure
                self.clear(phase)
            raise
        self.clear(phase)

    def wave(self, phase: Phase, wave: Iterable[Identity]) -> None:
        """Run hooks of one phase together, and wait until all have ended well. Raises: see `phase`."""
        todo = [one for one in sorted(wave, key=sort_key) if not self._is_done(phase, one)]
        if not todo:
            return
        self.run.between()
        try:
            for _, alike in groupby(todo, key=lambda one: one.group_kind):
                made = list(alike)
                raise_together(parallel([partial(self._start, phase, one) for one in made]), [])
            self._follow(phase, todo)
        except ROLLOUT_FAILURES as error:
            self._failed(phase, todo, error)
        for one in todo:
            self.journal.done(phase, str(one))
        self.journal.flush()

    def clear(self, phase: Phase) -> None:
        """Delete what has ended in this phase, as its policy says; only what this rollout has created. Raises AnnealError."""
        wanted = {DONE: Policy.SUCCEEDED, FAILED: Policy.FAILED}
        for one in reversed(self.planned_hooks.of(phase)):
            found = self.journal.find(phase, str(one))
            policy = wanted.get(found.outcome) if found else None
            goes = policy in self.planned_hooks.hooks[one].policies and not hook_annotations.lasts(one.group_kind)
            live = self._live(one) if goes else None
            if live and self._is_of_this(phase, live) and self._may_go(one, live) and not kept(self._item(one), live):
                self._delete(one, live)

    # --- one hook
    def _is_done(self, phase: Phase, one: Identity) -> bool:
        found = self.journal.find(phase, str(one))
        if found and found.outcome == FAILED:
            raise RolloutFailed(Problem(str(one), found.message, self._item(one).manifest.place))
        return found is not None and bool(found.outcome)

    def _start(self, phase: Phase, one: Identity) -> None:
        begun = self.journal.started(phase, str(one), str(one), ACTION)
        live = self._live(one)
        if live and self._is_of_this(phase, live):
            return self._created(phase, one, live)
        if begun.mark:
            return None  # it ran, and is gone: see `_verdict`
        uid, version = self._make_way(one, live) if live else ("", _CREATE_ONLY)
        body = self._item(one).manifest.body()
        if not (live and uid) or self._may_go(one, live):  # a member that stays for good is never taken for what a rollout made
            body["metadata"]["annotations"][hook_annotations.ROLLOUT] = self._token(phase)
        try:
            self._created(phase, one, self._writer.apply(self._item(one).resource, body, uid, version))
        except ApiRefused as error:
            raise told_refusal(error, self._item(one).manifest) from error
        if one in self.lost and not uid:
            self._lose(replace(self.lost[one], action=Action.RECREATE))
        return None

    def _created(self, phase: Phase, one: Identity, stored: Object) -> None:
        self.applier.stored.note(one, stored)
        found = self.journal.find(phase, str(one))
        if found and not found.mark:
            self.journal.mark(phase, str(one), str(stored["metadata"]["uid"]))

    def _make_way(self, one: Identity, live: Object) -> tuple[str, str]:
        """Return the preconditions of the write over what lives under a hook's name; what would be in its way is deleted first."""
        meta, hook, going = live["metadata"], self.planned_hooks.hooks[one], live["metadata"].get("deletionTimestamp")
        if not is_member(live, one, self.applier.planner.ours):
            theirs = self.applier.planned.decision.judge.refusal_to_use(self._item(one), live, NO_HOOK_TAKES)
            if theirs or going or ever_deletes(hook):
                place = self._item(one).manifest.place
                raise RolloutFailed.of(str(one), "lives already and isn't ours, so this hook can't take its place", place=place)
        stuck = None if going else in_the_way(self._item(one), hook, live)
        if stuck:
            raise RolloutFailed(stuck)
        if not going and not makes_way(self._item(one), hook, live):
            return str(meta["uid"]), str(meta["resourceVersion"])
        if not going and not self._may_go(one, live):
            place = self._item(one).manifest.place
            raise PlanStale.of(str(one), "lives, and this hook would delete it, which the plan didn't show", place=place)
        if not going:
            self._delete(one, live)
        wanted = [(self._item(one).resource, one, str(meta["uid"]))]
        wait_until_gone(self.applier.planner.api, wanted, self.waits.look, self.applier.lingering)
        return "", _CREATE_ONLY

    def _delete(self, one: Identity, live: Object) -> None:
        uid = str(live["metadata"]["uid"])
        self._writer.delete(self._item(one).resource, one, uid, propagation="Foreground")
        named = self._named(uid)
        if named and (named[1:] or named[0].cause is Cause.HOOK):
            change = Change(Action.PRUNE, one, uid, reason=SAID[named[0].cause], cause=named[0].cause, takes=named[1:])
            self._lose(change)
        elif one in self.lost:
            self._lose(replace(self.lost[one], action=Action.PRUNE))

    def _lose(self, change: Change) -> None:
        self.lost[change.identity] = change
        self.run.wrote([change])

    def _may_go(self, one: Identity, live: Object) -> bool:
        """Whether a rollout made what lives as this hook, or the plan names it."""
        named = self._named(str(live["metadata"]["uid"]))
        may = is_made(live) or (named and named[0].cause is Cause.HOOK)
        return bool(may) and is_member(live, one, self.applier.planner.ours)

    def _named(self, uid: str) -> tuple[Gone, ...]:
        """Return what the plan names of an object that a hook deletes, itself first; empty: nothing."""
        return next((due.gone for due in self.applier.planned.plan.due if due.gone and due.gone[0].uid == uid), ())

    # --- to the end
    def _follow(self, phase: Phase, todo: Sequence[Identity]) -> None:
        begun = [found for one in todo if (found := self.journal.find(phase, str(one)))]
        since = min(seconds_of(found.started) for found in begun)
        what = f"{phase} {', '.join(str(one) for one in todo[:3])}" + (f" and {len(todo) - 3} more" if len(todo) > 3 else "")
        kept = JournalWaitRecord(self.journal, (phase, str(todo[0])), what, since)
        limits = self.run.deps.target.wait or Wait()
        items = [self._item(one) for one in todo]
        self.waits.healthy(kept, items, self.applier.stored.generations, limits, verdict=self._verdict)

    def _verdict(self, one: Identity, live: Object | None) -> Health | None:
        """Judge what runs to its own end; what has ended once stays ended, for its time to live may remove it."""
        if one in self._ended:
            return Health(Status.CURRENT)
        if live is None:
            if hook_annotations.has_ttl(self._item(one).manifest.body()):
                return Health(Status.CURRENT, "was removed when its time to live was over")
            return Health(Status.FAILED, "was deleted before it was seen to end")
        found = hook_annotations.ended(live, one)
        if hook_annotations.is_act(one) and hook_annotations.is_over(live, one):
            self._ended.add(one)
        return found

    def _failed(self, phase: Phase, todo: Sequence[Identity], error: AuthorError | QuotaExceeded) -> None:
        """Record which hooks of a wave failed, and that the others aren't waited for; raise what was seen, naming the phase."""
        seen = {problem.subject: problem.message for problem in error.problems}
        mine = [one for one in todo if str(one) in seen]
        for one in todo:
            outcome = FAILED if one in mine or not mine else SKIPPED
            text = seen.get(str(one)) or (str(error) if outcome == FAILED else "isn't waited for: another hook failed")
            self.journal.started(phase, str(one), str(one), ACTION)
            self.journal.finished(phase, str(one), outcome, without_credentials(text))
        places = {str(one): self._item(one).manifest.place for one in todo}
        named = (replace(p, message=f"{phase} hook: {p.message}", place=p.place or places.get(p.subject, "")) for p in error.problems)
        raise rollout_failure(error, *named) from error

    # --- what is known
    def _item(self, one: Identity) -> Desired:
        return self.planned_hooks.items[one]

    @property
    def _writer(self) -> Writer:
        return Writer(self.applier.planner.api, self.run.fence)

    def _live(self, one: Identity) -> Object | None:
        return probe(self.applier.planner.api, [(self._item(one).resource, one.namespace, one.name)]).get(one)

    def _token(self, phase: Phase) -> str:
        """Name this rollout and phase: what carries it was created here, or by the run that was killed before this one."""
        known = self.run.state.rollout
        assert known is not None  # noqa: S101 - the journal has begun
        return f"{phase} {token(known)}"

    def _is_of_this(self, phase: Phase, live: Object) -> bool:
        return is_made(live) and bool(live["metadata"]["annotations"][hook_annotations.ROLLOUT] == self._token(phase))
