"""A run of a template: which instances there are, which have vanished, which need a run. Its own record says what is held, or failed.

    look            all objects of the main resource, whole, or nothing below happens
    vanished        records of instances without an object: each is looked for once more (`vanished`)
    hold            too many that are gone together wait for `anneal approve`
    ask             what ends, and what needs a run: as a tick finds it, or all

Law: it writes no object. What it lets end is in the registry until its end, and is looked for once more under the instance's Lease.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from handler.app.instances.instance_run import may_not_end, planned_end
from handler.app.instances.recorded_instances import records_of
from handler.app.instances.registry import Instances, replace_name, trigger_of
from handler.app.instances.vanished import Kept, ended_lately, look_for, retiring, with_ends
from handler.app.record_summaries import TOOLING, listed
from handler.app.target_runner import TargetRunner
from handler.cluster.parallel import together
from handler.config.instance_target import InstanceTarget
from handler.config.settings import Target
from handler.engine import summary_shortcuts
from handler.engine.run.errors import RequestRefused
from handler.model.advice import advice
from handler.model.errors import AccessDenied, AnnealError, ClusterUnavailable, Suspended
from handler.model.event import NAMED, Job
from handler.model.instance import instance_name
from handler.model.manifest import canonical
from handler.model.names import run_id
from handler.model.numbers import many
from handler.model.plan import Hold, Plan
from handler.model.quotation import quoted
from handler.model.result import Outcome, Result, TargetStanding
from handler.plan import guards
from handler.state.configmap import INSTANCE, read_instance
from handler.state.record import Approval, HeldPlan, RecordedInstance, RunStatus, State
from handler.state.record_format import stamp
from handler.state.store import StateStore
from handler.state.summary import home_of
from handler.state.suspension import CONFIGURED, suspension

AT_ONCE = 4
"""Instances that a command runs beside each other."""
Ask = Callable[[Job], None]
"""Takes a job that is to run."""


@dataclass(frozen=True, slots=True)
class TemplateLook:
    """What one look has found. `instances`: by name; `gone`: recorded ones whose object is gone for certain; `kept`: why others stay."""

    instances: Mapping[str, InstanceTarget]
    gone: Mapping[str, RecordedInstance]
    kept: Mapping[str, Kept]
    records: Mapping[str, Mapping[str, Any]] = field(repr=False)
    """Metadata of the instances' records, by their targets' names."""


@dataclass(slots=True)
class TemplateRuns:
    """The runs of one process's templates. `ask`: takes what instances are to do; None: they do it at once, in the template's run.

    `note`: takes the names of instances whose status may have been left open; `started`: templates whose instances were looked at once.
    """

    handler: TargetRunner
    instances: Instances
    ask: Ask | None = None
    note: Callable[[str], None] = lambda _: None
    started: set[str] = field(default_factory=set)

    def run(self, template: Target, job: Job, stop: threading.Event) -> Result:
        """Run a template once. Whatever goes wrong is its Result, and what goes wrong with instances that it runs."""
        since, name = time.monotonic(), job.run or run_id(job.target)
        one = _TemplateRun(self, template, job, stop)
        try:
            result = one.go()
        except AnnealError as error:
            if one.first:  # the next one looks at all instances for the first time
                self.started.discard(template.name)
            result = _failed(job, error, Outcome.SUSPENDED if isinstance(error, Suspended) else Outcome.FAILED)
        return replace(result, duration=round(time.monotonic() - since, 3), run=name)


_WORST = (Outcome.FAILED, Outcome.PRUNING, Outcome.HELD, Outcome.BUSY, Outcome.WAITING, Outcome.DRIFTED, Outcome.PLANNED, Outcome.APPLIED)


def joined(own: Result, ends: Sequence[Result]) -> Result:
    """Return the end of a template with those of instances that ran in it: the worst of them, what all wrote, and one plan."""
    if not ends:
        return own
    outcome = next((each for each in _WORST if each in {own.outcome, *(end.outcome for end in ends)}), own.outcome)
    bad = next((end for end in ends if end.outcome is outcome and end.problems), None)
    said = [f"{end.target}: {end.message or end.outcome}" for end in ends if end.outcome not in (Outcome.UNCHANGED, Outcome.PLANNED)]
    counts: dict[str, int] = {}
    for word, number in (pair for end in ends for pair in end.counts.items()):
        counts[word] = counts.get(word, 0) + number
    plans = [end.plan for end in ends if end.plan]
    return replace(
        own,
        outcome=outcome,
        message="; ".join((own.message, *said[:10])),
        counts=counts,
        problems=(*own.problems, *(problem for end in ends for problem in end.problems)),
        who=bad.who if bad else own.who,
        code=bad.code if bad else own.code,
        written=tuple(change for end in ends for change in end.written),
        plan=_one_plan(own.target, plans) if plans else None,
        commit=next((end.commit for end in ends if end.commit), ""),
    )


def _one_plan(template: str, plans: Sequence[Plan]) -> Plan:
    """Return the plans of instances as one: what each says, after each other."""
    return replace(
        plans[0],
        target=template,
        stages=tuple(stage for plan in plans for stage in plan.stages),
        prunes=tuple(change for plan in plans for change in plan.prunes),
        relabelled=tuple(change for plan in plans for change in plan.relabelled),
        notes=tuple(dict.fromkeys(note for plan in plans for note in plan.notes)),
        outside=tuple(each for plan in plans for each in plan.outside),
        live_members=sum(plan.live_members for plan in plans),
        hold=next((plan.hold for plan in plans if plan.hold), None),
    )


def _failed(job: Job, error: AnnealError, outcome: Outcome) -> Result:
    found = Result(job.target, outcome, trigger=job.cause, message=str(error), problems=error.problems)
    return replace(found, who=error.who, code=error.code)


@dataclass(slots=True)
class _TemplateRun:
    runs: TemplateRuns
    template: Target
    job: Job
    stop: threading.Event
    first: bool = False

    @property
    def handler(self) -> TargetRunner:
        return self.runs.handler

    def go(self) -> Result:
        self._refuse_acts()
        store = self.handler.store(self.template)
        state = store.read().state or store.blank(self.handler.cluster_uid(self.template))
        state = self._approved(store, state)
        self._raise_if_suspended(state)
        try:
            look = self._look()
            hold = self._hold(state, look)
        except AnnealError as error:
            self._record(store, state, RunStatus("failed", stamp(self.handler.now()), message=str(error), code=error.code, who=error.who))
            raise
        return self._ended(store, state, look, hold)

    def _ended(self, store: StateStore, state: State, look: TemplateLook, hold: Hold | None) -> Result:
        going = {} if hold else look.gone
        if self.job.dry_run:
            return self._planned(look, [*going], hold)
        if new := going.keys() - self.runs.instances.leaving.keys():
            state = self._ending(store, state, sorted(new))
        for name, known in going.items():
            self.runs.instances.leaving[name] = known
        asked = [*(Job(name, "resource") for name in going), *self._jobs(look)]
        ends = self._handed_out(asked)
        for name in self.runs.instances.open & look.instances.keys():
            self.runs.note(name)
        result = self._result(Outcome.HELD if hold else Outcome.UNCHANGED, look, [*going], asked, hold)
        phase = "held" if hold else "applied"
        self._record(store, state, RunStatus(phase, stamp(self.handler.now()), message=result.message), hold)
        return joined(result, ends)

    def _ending(self, store: StateStore, state: State, names: list[str]) -> State:
        """Note in the template's record which instances are let go now."""
        now = self.handler.now()
        return store.update(lambda known: replace(known, history=with_ends(known.history, self.job, names, now)), state).state or state

    def _planned(self, look: TemplateLook, going: list[str], hold: Hold | None) -> Result:
        """Return what all instances would do, and what the ends of those whose object is gone would delete, held or not."""
        planned = [Job(name, "oneoff", dry_run=True, force=self.job.force, prune=self.job.prune) for name in look.instances]
        ends = [planned_end(self.handler, self.template, name, known) for name, known in look.gone.items()]
        result = joined(self._result(Outcome.PLANNED, look, going, [], hold), [*ends, *self._at_once(planned)])
        plan = replace(result.plan, hold=hold) if hold and result.plan else result.plan
        return replace(result, plan=plan)

    def _handed_out(self, jobs: list[Job]) -> list[Result]:
        """Hand out what instances are to do; return the ends of what was done at once."""
        if self.runs.ask is None:
            return self._at_once(jobs)
        for job in jobs:
            self.runs.ask(job)
        return []

    def _at_once(self, jobs: list[Job]) -> list[Result]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda job: self.handler.run(job, self.stop), jobs))

    # --- what there is
    def _look(self) -> TemplateLook:
        template, handler = self.template, self.handler
        self.runs.instances.refresh(template)
        instances = self.runs.instances.look(template)
        self.first = template.name not in self.runs.started
        if not self.job.dry_run:  # from now on events ask for runs; what came since the look is asked for here
            self.runs.started.add(template.name)
            instances |= {each.name: each for each in self.runs.instances.of_template(template.name)}
        records = records_of(listed(handler.records(template), handler.settings), handler.settings, template.name)
        gone, kept = dict[str, RecordedInstance](), dict[str, Kept]()
        missing = sorted(records.keys() - instances.keys())
        looks = together([partial(self._seen, name, records[name]) for name in missing])
        for name, found in zip(missing, looks, strict=True):
            if isinstance(found, RecordedInstance):
                gone[name] = found
            else:
                kept[name] = found
        return TemplateLook(instances, gone, kept, records)

    def _seen(self, name: str, metadata: Mapping[str, Any]) -> RecordedInstance | Kept:
        """Return the same as `_missing`; a record that can't be read keeps its instance, and holds up no other."""
        try:
            return self._missing(name, metadata)
        except (AccessDenied, ClusterUnavailable):
            raise
        except AnnealError as error:
            return Kept(str(error), error.problems[0].fix if error.problems else "")

    def _missing(self, name: str, metadata: Mapping[str, Any]) -> RecordedInstance | Kept:
        """Return the object of a record if that is gone for certain and its instance may end, else why it stays."""
        template, handler = self.template, self.handler
        unknown = Kept("its record doesn't say for which object it is", retiring(name))
        if read_instance(str((metadata.get("annotations") or {}).get(INSTANCE) or "")) is None:
            return unknown
        # the record itself says by which definition the object was served
        state = handler.brief_store(replace_name(template, name)).read().state
        known = state.instance if state else None
        if state is None or known is None or instance_name(template.name, known.identity.namespace, known.identity.name) != name:
            return unknown  # also where another object was written into it: that this isn't there ends nothing
        if kept := may_not_end(template, state, known, handler.now()):
            return kept
        absence = look_for(handler, template, trigger_of(template).main, known)
        if absence.state != "gone":
            return absence.kept
        prunes_nothing = Kept(
            f"{known.identity} is gone, and this run prunes nothing", advice("to let it end: anneal apply {}", template.name)
        )
        return known if self.job.prune else prunes_nothing

    # --- what is held
    def _hold(self, state: State, look: TemplateLook) -> Hold | None:
        """Return why instances that are gone together must wait, unless exactly that was approved."""
        limit, before = self.template.prune.hold_above, ended_lately(state.history, self.handler.now())
        gone = {name: each for name, each in look.gone.items() if name not in self.runs.instances.leaving}
        count, total = len(gone) + before, len(look.records) + before
        if not gone or count <= limit.count or count <= limit.fraction * total:
            return None
        share = f"{count} of {many(total, 'instance')} vanished together ({100 * count / total:.0f} %)"
        keys = tuple(sorted(("prune", str(each.identity), each.uid) for each in gone.values()))
        reason = f"{share}, above holdAbove {limit.count} and {limit.fraction:.0%}; what they have deployed stays"
        hold = Hold(guards.hold_id(keys, "", ""), (reason,), keys)
        approval = state.approval
        return None if approval and guards.approved(hold, approval.changes, same_inputs=True) else hold

    def _approved(self, store: StateStore, state: State) -> State:
        """Note the approval that this run was asked for. Raises RequestRefused: nothing such is held."""
        held, asked = state.held, self.job.approve
        if not asked or (state.approval and state.approval.id == asked):
            return state
        if held is None or held.id != asked:
            seen = f"held now: {held.id}" if held else "nothing is held"
            fix = advice("anneal status {}", self.job.target)
            raise RequestRefused.of(f"target {self.job.target}", f"can't approve {asked}; {seen}", fix=fix)
        approval = Approval(held.id, held.reads, held.settings, held.changes, self.job.actor, stamp(self.handler.now()))
        return store.update(lambda now: replace(now, approval=approval), state).state or state

    def _raise_if_suspended(self, state: State) -> None:
        suspend = suspension(self.template, state, self.handler.now())
        if suspend is not None:
            by = "in the configuration" if suspend is CONFIGURED else f"by {quoted(suspend.by)}"
            seen = f"suspended {by}, and all its instances with it: {quoted(suspend.reason) or 'no reason given'}"
            raise Suspended.of(f"target {self.template.name}", seen, fix=advice("anneal resume {}", self.template.name))

    # --- what runs
    def _refuse_acts(self) -> None:
        """Raise RequestRefused for what is asked of one instance, never of all."""
        if others := [act for act in self.job.acts if act not in ("force", "approve", "dry run", "no prune")]:
            seen = f"is a template of instances: {others[0]} is asked of one of them"
            raise RequestRefused.of(f"target {self.job.target}", seen, fix=advice("name it: anneal status {}", self.job.target))

    def _jobs(self, look: TemplateLook) -> list[Job]:
        job = self.job
        if job.trigger not in ("tick", "resource") and not job.approve:
            given = {"force": job.force, "prune": job.prune, "actor": job.actor, "hint": job.hint, "deliveries": job.deliveries}
            trigger = "push" if job.trigger in NAMED else job.trigger
            return [Job(name, trigger, asked=job.asked, **given) for name in look.instances]  # type: ignore[arg-type]  # as the job has them
        first = self.first and bool(trigger_of(self.template).listed)
        quiet = frozenset[str]() if first else self._quiet(look)
        trigger = "resource" if first or job.approve else job.trigger
        return [Job(name, trigger, asked=job.asked) for name in look.instances if name not in quiet]

    def _quiet(self, look: TemplateLook) -> frozenset[str]:
        """Return the instances whose records prove that a tick of them would find nothing to do."""
        handler, settings = self.handler, self.handler.settings
        home = home_of(self.template.repository.url, settings.installation, handler.cluster_uid(self.template))
        settled: dict[str, str] = {}
        for name in look.records.keys() & look.instances.keys():
            summary = summary_shortcuts.own_summary(dict(look.records[name]), settings.state_namespace, name, TOOLING)
            if summary and summary_shortcuts.is_settled(summary, handler.digest(look.instances[name]), home, time.time()):
                settled[name] = summary.commit
        head = handler.head(self.template, self.job.since(handler.slack)).commit if settled else ""
        return frozenset(name for name, commit in settled.items() if head and commit == head)

    # --- what is said
    def _result(self, outcome: Outcome, look: TemplateLook, going: list[str], asked: list[Job], hold: Hold | None) -> Result:
        parts = [many(len(look.instances), "instance")]
        runs = len(asked) - len(going)
        parts += [f"{runs} asked to run"] if runs else []
        parts += [f"the objects of {', '.join(going[:3])}{' and more' if len(going) > 3 else ''} are gone: they end"] if going else []
        parts += [f"held as {hold.id}: {hold.reasons[0]}"] if hold else []
        parts += [f"{name} stays: {kept}" for name, kept in list(look.kept.items())[:3]]
        standing = TargetStanding(succeeded=self.handler.now(), held=hold is not None)
        found = Result(self.job.target, outcome, trigger=self.job.cause, message="; ".join(parts), standing=standing)
        return replace(found, recorded=True)

    def _held(self, hold: Hold) -> HeldPlan:
        """Return what is held as a record keeps it: it follows from no commit, but from what has vanished."""
        followed = hashlib.sha256(canonical(hold.changes)).hexdigest()
        settings = self.handler.digest(self.template)
        return HeldPlan(hold.id, hold.reasons, hold.changes, followed, followed, settings, stamp(self.handler.now()))

    def _record(self, store: StateStore, state: State, status: RunStatus, hold: Hold | None = None) -> None:
        """Keep what is held or failed, and that it isn't any more; a template without trouble needs no record."""
        known = (state.status.phase, state.status.message, state.held and state.held.id)
        wanted = (status.phase, status.message, hold and hold.id)
        quiet = status.phase == "applied" and state.status.phase in ("", "applied") and not (state.held or state.approval)
        if quiet or known == wanted or self.job.dry_run:
            return
        held = self._held(hold) if hold else None
        store.update(lambda now: replace(now, status=status, held=held, approval=now.approval if hold else None), state)
