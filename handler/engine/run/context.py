"""What one run is: its dependencies, its job, the record as read, the Lease; and what its present round has found so far.

Law: decisions stand elsewhere: which commit in `revision`, what is planned in `plan_request`, how a round ends in `outcomes`. Durations
are measured by the run's clock, which never leaps; what is due for others goes by the wall clock (`Dependencies.clock`).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from handler.config.settings import Target
from handler.engine.health.target_health import HealthLook, judged, patience_of, removed_jobs, renewed
from handler.engine.planner.desired import Inputs
from handler.engine.planner.due import recovers
from handler.engine.planner.planner import Planned
from handler.engine.run import former_record, transitions
from handler.engine.run.dependencies import Dependencies
from handler.engine.run.errors import masked_error
from handler.engine.run.promotion import NO_PROMOTION, Promotion
from handler.engine.run.recovery_scan import FoundMembers, scan
from handler.model.advice import advice
from handler.model.errors import AnnealError, LeaseLost, StateInvalid, Stopping, Suspended
from handler.model.event import RESOURCE, Job
from handler.model.names import FIELD_MANAGER, Identity, run_id
from handler.model.outside_inputs import APIS, OutsideInputs
from handler.model.plan import Change, Hold, Plan, tally
from handler.model.queue_view import ALONE, QueueView
from handler.model.quotation import quoted
from handler.model.refs import Head
from handler.model.render import UPGRADED, RecordedRender
from handler.model.result import ONLY_PLANNED, Outcome, Result, summed
from handler.model.run_event import ObjectsWritten, RunPlanned
from handler.model.tree import CommitInfo, ReadSet, Tree
from handler.plan import guards
from handler.state import run_history
from handler.state.lease import HeldLease
from handler.state.record import RecordedInstance, Run, State, TargetHealth
from handler.state.record_format import seconds_of
from handler.state.store import StoredState
from handler.state.suspension import CONFIGURED, suspension
from handler.state.write_batcher import WriteBatcher

_NOWHERE = Head("")


def steady_clock(wall: Callable[[], float]) -> Callable[[], float]:
    """Return a clock that begins at what `wall` shows (seconds since the epoch) and then never leaps or goes back."""
    ahead = wall() - time.monotonic()
    return lambda: time.monotonic() + ahead


@dataclass(frozen=True, slots=True)
class ChosenRevision:
    """What `revision.choose` found; empty before.

    `named`: by which ref; `refused`: still; `behind`: so the recorded commit is held, and the status stays. `promotion`: where others prove
    commits, what of them it follows; `head` is empty where they have nothing newer than what is pinned. `vouched`: the commit that isn't
    proven, and that a person at a shell forces.
    """

    commit: str = ""
    head: str = ""
    named: Head = _NOWHERE
    refused: bool = False
    behind: bool = False
    promotion: Promotion = NO_PROMOTION
    vouched: str = ""


@dataclass(slots=True)
class Round:
    """What a run's present round has found and done. `started`: in seconds since the epoch; `reads`: what its desired set was made from.

    `opened`: it has opened its attempt; `turned`: it has failed, and the next one goes back; `unhealthy`: what the newest wait left, a line
    an object, None: nothing was waited for; `looked`: how the target's objects did; `written`: returns what it has written so far.
    """

    started: float
    commit: CommitInfo | None = None
    reads: ReadSet | None = None
    opened: bool = False
    turned: bool = False
    unhealthy: tuple[str, ...] | None = None
    looked: HealthLook | None = None
    written: Callable[[], tuple[Change, ...]] = tuple


@dataclass(slots=True)
class RunContext:
    """One run under way, under one id: `rounds` have ended, each with its result, `round` is the present one, `revision` what it aims at.

    `forced`: the record asks for force; `was`: the record at the start; `found`: members that were found without a record;
    `former`: the record that it takes over.
    `elsewhere`: what isn't git, by commit; `clock`: by which all its rounds measure time (`steady_clock`); `brings`: the
    objects of its newest desired set of which no word of the cluster is repeated.
    """

    deps: Dependencies
    job: Job
    stop: threading.Event
    run: str
    round: Round
    queue: QueueView = ALONE
    brings: frozenset[Identity] = frozenset()
    stored: StoredState = field(default_factory=lambda: StoredState(None))
    revision: ChosenRevision = ChosenRevision()
    lease: HeldLease | None = None
    recovery: bool = False
    forced: bool = False
    found: FoundMembers | None = None
    former: former_record.FormerRecord | None = None
    was: State | None = None
    rounds: list[tuple[Round, Result]] = field(default_factory=list)
    elsewhere: dict[str, OutsideInputs] = field(default_factory=dict, repr=False)
    writing: threading.Lock = field(default_factory=threading.Lock)
    batcher: WriteBatcher[State] = field(init=False, repr=False)
    clock: Callable[[], float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.batcher, self.clock = WriteBatcher(self._write), steady_clock(self.deps.clock)

    @property
    def state(self) -> State:
        """The state as read last; `read` always leaves one, if only a blank."""
        assert self.stored.state is not None  # noqa: S101 - see above
        return self.stored.state

    @property
    def version(self) -> str:
        """The version of its record, and of the one that it takes over: what was planned on another one is planned again."""
        return f"{self.stored.resource_version}/{self.former.stored.resource_version if self.former else ''}"

    @property
    def tag(self) -> str:
        """The tag that a range of versions led to; empty where the revision is another commit, or follows no range."""
        return self.revision.named.tag if self.deps.target.revision.semver and self.revision.commit == self.revision.head else ""

    def titled(self, commit: CommitInfo) -> CommitInfo:
        """Return the revision's commit as the record shows it: by its tag, before its own subject."""
        return replace(commit, subject=f"{self.tag}: {commit.subject}") if self.tag else commit

    @property
    def generation(self) -> int:
        """The generation of an instance's object that this run is of; 0: no instance's, or not counted."""
        return self.deps.target.instance.generation if self.deps.target.instance else 0

    def result(self, outcome: Outcome, message: str = "", planned: Planned | None = None) -> Result:
        """Return the end of this round, with what it has written however it ends."""
        plan, done = planned.plan if planned else None, outcome not in ONLY_PLANNED
        written = plan.writes if plan and done else self.round.written()
        counts = plan.counts(done=done) if plan else tally(written)
        seconds = round(max(self.clock() - self.round.started, 0.0), 3)
        found = Result(self.job.target, outcome, self.revision.commit, self.job.cause, message, counts, duration=seconds, run=self.run)
        return replace(found, plan=plan, written=written, generation=self.generation)

    def whole(self, result: Result) -> Result:
        """Return the end of the run from that of its last round."""
        return summed([*(ended for _, ended in self.rounds), result])

    def entry(self, result: Result) -> Run:
        """Return the history's entry of a round's commit: with what earlier rounds have done for it.

        The run's id has one end there: another commit, or another end of the same one, is an entry of its own; a round that was superseded
        or interrupted isn't an end.
        """
        before = [(each, ended) for each, ended in self.rounds if ended.commit == result.commit]
        whole = summed([*(ended for _, ended in before), result])
        known = next((each for each in self.state.history if each.id == self.run and each.outcome not in run_history.PASSING), None)
        if self.rounds and known and (known.commit, known.outcome) != (whole.commit, whole.outcome):
            return run_history.run_of(replace(result, run=run_id(self.job.target)), self.round.commit, self.job.actor, self.round.started)
        commit = self.round.commit or next((each.commit for each, _ in before if each.commit), None)
        return run_history.run_of(whole, commit, self.job.actor, self.began(result.commit))

    def began(self, commit: str) -> float:
        """Return when the first round of this run for a commit began, in seconds since the epoch."""
        return next((each.started for each, ended in self.rounds if ended.commit == commit), self.round.started)

    def read(self, *, certain: bool = False) -> None:
        """Read the state; where no run has recorded anything, look for members that outlived an earlier one (a LIST of every kind).

        Not yet where a commit may be refused, or wait, still. `certain`: ask the cluster which one it is, too, before something is written
        to it. Raises TargetMoved: it belongs to another repository, installation or cluster; TargetRenamed: another target has taken it
        over; StateInvalid: it is the record of another instance.
        """
        deps, repository = self.deps, self.deps.target.repository.url
        stored = (deps.store if certain else deps.first or deps.store).read()
        cluster = deps.cluster_uid(certain or self.job.drift or stored.state is None)
        former_record.refuse_renamed(stored.state, deps.store.namespace)
        known = deps.store.at_home(stored.state or deps.store.blank(cluster), repository, cluster)
        known = replace(known, instance=recorded_instance(deps.target, known))
        recorded = stored.state is not None
        before = self.former
        known, self.former = former_record.joined(deps.places, known, repository, deps.clock(), recorded=recorded, before=before)
        if before and before is not self.former and before.lease:
            before.lease.hand_over()
        if deps.places:
            deps.planner.former = former_record.former_marks(known.former)
        self.stored = replace(stored, state=known)
        self.was = known if self.was is None else self.was
        self.forced = not self.job.dry_run and known.requested is not None and known.requested.force
        if certain or (known.status.refusal is None and known.awaits is None):
            self.look_for_members()

    def look_for_members(self) -> None:
        """Where no run has recorded anything, say of the state as read what lives all the same."""
        if self.state.fresh:
            found = self.found = self.found or scan(self.deps.planner)
            former = self.state.former if found.kinds or (self.former and self.former.stored.uid) else None
            self.stored = replace(self.stored, state=replace(self.state, kinds=found.kinds, namespaces=found.namespaces, former=former))
        self.recovery = bool(self.state.kinds) and not self.state.commit

    # --- whether to go on
    def raise_if_suspended(self) -> None:
        """Raise Suspended, with who did it, until when and why."""
        suspend = suspension(self.deps.target, self.state, self.deps.clock())
        if suspend is CONFIGURED:
            fix = f"set `suspend: false` for {self.job.target} in anneal.yaml"
            raise Suspended.of(f"target {self.job.target}", "suspended in the configuration (anneal.yaml)", fix=fix)
        if suspend:
            until = f" until {suspend.until}" if suspend.until else ""
            seen = f"suspended by {quoted(suspend.by)}{until}: {quoted(suspend.reason) or 'no reason given'}"
            raise Suspended.of(f"target {self.job.target}", seen, fix=advice("anneal resume {}", self.job.target))

    def between(self) -> None:
        """Before each stage: is the record still there, and is a pause asked for?"""
        self.fence()
        self.refresh()

    def refresh(self) -> State:
        """Read the state in the middle of a run, and return it. Raises LeaseLost: it was deleted; Suspended."""
        fresh = self.deps.store.read()
        with self.writing:  # steps that run at once record their transitions meanwhile
            if fresh.state is None or fresh.uid != self.stored.uid:
                fix = "run again: what was applied is found by its label"
                raise LeaseLost.of(f"target {self.job.target}", "its state was deleted during the run", fix=fix)
            self.stored = replace(self.stored, state=replace(self.state, suspend=fresh.state.suspend))
        self.raise_if_suspended()
        return fresh.state

    def record(self, change: Callable[[State], State]) -> None:
        """Write how the open attempt goes on; several threads may, and share writes. Raises LeaseLost, ClusterUnavailable."""
        self.batcher.put(change)

    def _write(self, change: Callable[[State], State]) -> None:
        assert self.lease is not None  # noqa: S101 - an attempt is open under a Lease
        with self.writing:
            self.stored = self.deps.store.write(self.stored, change, self.lease.token)
            self.deps.announce(replace(transitions.phase(self.state, self.run), generation=self.generation))

    def hindered(self, lines: tuple[str, ...], before: tuple[str, ...]) -> None:
        """Record what holds the run up, a line an object, in place of `before` and beside what waits say; trouble with that ends no run."""

        def change(state: State) -> State:
            kept = (line for line in state.status.unhealthy if line not in before)
            return replace(state, status=replace(state.status, unhealthy=(*kept, *lines)))

        with contextlib.suppress(AnnealError):
            if self.round.opened:
                self.record(change)
            elif self.stored.uid and not self.job.dry_run:
                with self.writing:
                    self.stored = self.deps.store.swap(self.stored, change(self.state), self.lease.token if self.lease else None)

    def stalls(self, failure: AnnealError, over: bool) -> None:
        """Record a request that the API server refuses for a while, since a webhook that it asks is busy or dead."""
        line = (str(masked_error(failure, self.closed).problems[0]),)
        self.hindered(() if over else line, line)

    def begins(self, plan: Plan) -> None:
        """Announce that a plan is carried out from now on."""
        self.deps.announce(RunPlanned.of(self.run, plan))

    def wrote(self, changes: Sequence[Change]) -> None:
        """Announce what has been written."""
        if changes:
            self.deps.announce(ObjectsWritten(self.job.target, self.run, tuple(changes)))

    def fence(self) -> None:
        """Before each write: is the Lease certainly ours, and are we to go on?"""
        if self.lease:
            self.lease.check()
        if self.stop.is_set():
            raise Stopping.of(f"target {self.job.target}", "the worker is shutting down; the next run goes on")

    def health(self, state: State, *, anew: bool = False) -> TargetHealth:
        """Return the health that a record keeps after this round. `anew`: see `judged`.

        What stays is vouched for by a process that watches; while an attempt is open, by runs alone.
        """
        before, deps = state.health, self.deps
        if self.round.looked is None or not (state.commit or state.declared or self.round.looked.verdicts):
            return before  # nothing was seen, or nothing was ever applied
        look, now = self.round.looked.completed(removed_jobs(state, deps.health)), deps.clock()
        found = judged(before, look, now, patience_of(deps.target), self.closed, anew=anew)
        return found if deps.watched and not self.state.attempt else renewed(before, found, now, deps.drift_interval)

    # --- what is asked of it
    @property
    def force(self) -> bool:
        """Whether what is applied, or has failed, is asked for once more: of this run, or of the next attempt (`requests.ask`)."""
        return self.job.force or self.forced

    @property
    def drift(self) -> bool:
        """Whether this run LISTs whatever git says: a drift run, one that was asked for, or one due after a takeover."""
        due = self.state.drift_due
        wanted = self.job.drift and (self.deps.target.drift != "ignore" or self.job.trigger == RESOURCE)  # what configures it has changed
        return wanted or self.state.requested is not None or bool(due and seconds_of(due) <= self.deps.clock())

    @property
    def closed(self) -> frozenset[Identity]:
        """The objects of which no word of the cluster is repeated: of what is recorded, and of what this run brings."""
        return self.brings | frozenset(self.stored.state.health.closed if self.stored.state else ())

    def is_recorded(self) -> bool:
        """Whether the revision is applied, made by the same settings."""
        return bool(self.revision.commit) and (self.state.commit, self.state.settings) == (self.revision.commit, self.deps.settings)

    # --- what to do
    def inputs(self) -> Inputs:
        """Return the revision's desired set."""
        older = self.revision.commit != self.revision.head
        outside = self.outside(self.revision.commit)
        try:
            prepared = self.deps.preparer.prepare(self.revision.commit, self._recorded_render(), outside, older=older)
        finally:
            outside.forget_indexes()
        self.round.commit, self.round.reads = self.titled(prepared.commit), prepared.reads
        self.brings = prepared.closed
        return Inputs(prepared, self.deps.settings, self.deps.target.repository.url, self.deps.target.path, outside.recorded())

    def _recorded_render(self) -> RecordedRender:
        """Return what the record says of renders; without a record, a release that lives isn't installed anew."""
        found = self.state.render
        return replace(found, installed=UPGRADED) if recovers(self.state) else found

    def outside(self, commit: str) -> OutsideInputs:
        """Return what isn't git, for a commit; asked anew by each run, and by a run once.

        What the cluster serves is known to a process for long: it is asked again where drift is looked for, and before what was approved.
        """
        if commit not in self.elsewhere:
            preparer, asks_again = self.deps.preparer, self.drift or self.job.approve or self.state.approval
            if asks_again and not self.elsewhere and (APIS in self.state.reads_paths or preparer.looked_at(APIS)):
                preparer.discovery.refresh()
            self.elsewhere[commit] = self.deps.preparer.outside(self.state.render, commit)
        return self.elsewhere[commit]

    def reads_on(self, tree: Tree, paths: Iterable[str], commit: str) -> ReadSet:
        """Return what was read under these names as it is in a commit's tree, and elsewhere now."""
        return ReadSet(tuple((path, "") for path in paths)).on(tree, self.outside(commit).ask)

    def hold(self, planned: Planned, inputs: Inputs) -> Hold | None:
        """Return what must wait for a person, unless exactly that was approved."""
        hold, approval = planned.plan.hold, self.state.approval
        if hold and approval and guards.approved(hold, approval.changes, same_inputs=inputs.are_of(approval)):
            return None
        return hold

    def only_reports(self, inputs: Inputs) -> bool:
        """Whether this drift run may only report: what it would repair isn't a new commit's."""
        reports = self.job.drift and self.deps.target.drift == "report" and not self.force
        return reports and self.is_recorded() and self.state.reads == inputs.reads

    def again(self, result: Result) -> None:
        """Begin another round under the same Lease: nothing that was asked of this one alone is asked twice."""
        self.rounds.append((Round(self.round.started, self.round.commit), result))  # without what it has written
        cause, actor = ("rollback", FIELD_MANAGER) if self.round.turned else (self.job.cause, self.job.actor)
        self.job = replace(self.job, trigger=cause, actor=actor, hint="", commit="", force=False, approve="", unpin=False)
        self.job = replace(self.job, rollback=False, promote=False, deliveries=())
        self.round = Round(self.clock())
        self.revision = replace(self.revision, commit="")  # until it is chosen: a failure before that isn't the other round's commit's

    def problem_result(self, outcome: Outcome, error: AnnealError) -> Result:
        """Return the end of a run that an error ended."""
        return replace(self.result(outcome, str(error)), problems=error.problems, who=error.who, code=error.code)


def recorded_instance(target: Target, state: State) -> RecordedInstance | None:
    """Return what a run of a target records. Raises StateInvalid: the record is of another object, whose name was cut to the same."""
    instance, known = target.instance, state.instance
    if instance is None:
        return known
    if known is not None and known.identity != instance.identity:
        seen = f"its record is of {known.identity}, and {instance.identity} has the same name as a target"
        raise StateInvalid.of(f"target {target.name}", seen, fix=f"give {instance.identity} another name")
    before = known.definition if known and (known.uid == instance.uid or not instance.definition) else ""
    definition = before or instance.definition  # one object has one definition, whatever a look that came late pairs it with
    return RecordedInstance(instance.identity, instance.uid, definition, instance.generation)
