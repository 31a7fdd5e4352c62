"""What an action may do for its step: write behind the fence, delete under a uid, follow what lives, remember one mark.

Law: an action acts through this class alone. Each of its requests asks the fence, each delete names a uid, and whatever must be known
after a kill is remembered *before* the request that makes it true: an action is begun again from its mark, as often as it takes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from handler.cluster.live import probe
from handler.cluster.write import DryRunner, Propagation, Writer
from handler.config.settings import Target, Wait
from handler.engine.apply.apply import Applier
from handler.engine.apply.let_claims_go import let_claims_go
from handler.engine.apply.wait_deleted import wait_until_gone
from handler.engine.rollout_runner.check_runner import WatchedStep
from handler.engine.rollout_runner.journal import Journal, JournalWaitRecord
from handler.engine.waits.wait import Judge, Waits
from handler.engine.waits.wait_record import WaitRecord
from handler.model.errors import ApiRefused, Moved, Problem, TransientError
from handler.model.field_masking import without_credentials
from handler.model.names import Identity, Resource
from handler.model.plan import Change
from handler.model.rollout import Check, Step
from handler.plan.admission import Desired
from handler.plan.inventory import Membership
from handler.plan.quoted_refusal import told_refusal
from handler.rollout.checks.healthy import Healthy
from handler.rollout.interfaces import ActionReader

Object = dict[str, Any]
HEALTHY = (Check("healthy", "healthy", Healthy().read({}, "")),)


class StoppedByAnother(TransientError):
    """Another step met what ends this one. `failed`: the rollout is over with it; else the next run goes on here."""

    failed = False


class PlainAction:
    """An action whose step says nothing more: the name is all there is to it."""

    keys: Sequence[str] = ()

    def read(self, raw: Mapping[str, Any], field: str) -> Mapping[str, Any]:  # noqa: ARG002 - every action is asked the same way
        """It has no keys of its own."""
        return {}


class ActionType(ActionReader, Protocol):
    """One row of the table of actions: how its step is read, how the plan treats its object, and how it is carried out.

    One that leaves traces may have `leave(stage, step)`, too: called where its step was under way when another one failed the rollout.
    """

    def act(self, stage: StepStage, step: Step) -> str | None:
        """Carry out the action; begun again after a kill, it finds its mark (`stage.mark`) and its own traces.

        Return what was seen where it has judged the step's checks itself; else None. Raises AuthorError: the step fails; any other
        AnnealError ends the run, and the next one goes on here.
        """


@dataclass(frozen=True, slots=True)
class StepStage:
    """Everything that one step's action may read and write. `change`: the plan's for its object, None: it isn't there, and isn't to be.

    `since`: when the step began, in seconds since the epoch, over restarts. `beat`: may we go on? raises if not.
    """

    applier: Applier
    waits: Waits
    journal: Journal
    group: str
    step: Step
    change: Change | None
    since: float
    beat: Callable[[], None] = field(repr=False)

    # --- what is known
    @property
    def target(self) -> Target:
        """The target's settings."""
        return self.applier.planner.target

    @property
    def ours(self) -> Membership:
        """By which marks objects are the target's."""
        return self.applier.planner.ours

    @property
    def desired(self) -> Desired | None:
        """What git declares of the step's object, our marks on it; None: its step deletes it."""
        return self.applier.planned.desired.get(self.step.identity)

    @property
    def resource(self) -> Resource | None:
        """How the server serves the kind of the step's object; None: it doesn't."""
        return self.desired.resource if self.desired else self.applier.planner.discovery.preferred(self.step.identity.group_kind)

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self.waits.run.clock()

    @property
    def title(self) -> str:
        """The step, as the record and errors call it."""
        return f"{self.group}, {self.step.name}"

    @property
    def watched(self) -> WatchedStep:
        """The step's object and its checks; what only says how it fails succeeds by becoming healthy."""
        step, item = self.step, self.desired
        return WatchedStep(
            self.kept(self.title),
            self.resource,
            step.identity,
            step.success or (HEALTHY if item else ()),
            step.failure,
            generation=self.applier.stored.generation(step.identity),
            place=item.manifest.place if item else "",
            declared=item.manifest.body() if item else None,
        )

    # --- what is remembered
    def kept(self, what: str, since: float = 0.0) -> WaitRecord:
        """Return how the journal keeps a wait of this step. `what`: for errors; `since`: epoch seconds, 0: the step's begin."""
        return JournalWaitRecord(self.journal, (self.group, self.step.name), what, min(since or self.since, self.now))

    @property
    def mark(self) -> str:
        """What this step's action last remembered; empty: it begins."""
        found = self.journal.find(self.group, self.step.name)
        return found.mark if found else ""

    def remember(self, mark: str, share: int = 0) -> None:
        """Remember, in the record, what must be known if the run is killed from here on. `share`: in percent, of what the step tries."""
        if mark != self.mark:
            self.journal.mark(self.group, self.step.name, mark, share)

    def report(self, message: str) -> None:
        """Record the step's progress; one line."""
        self.journal.progressed(self.group, self.step.name, message)

    # --- writes
    def apply(self) -> None:
        """Carry out what the plan says of the step's object; one that moved is planned again. Raises as `Applier.apply`."""
        change = self.change
        if change is not None and change.identity not in self.applier.written:
            self.applier.apply([change])
            self.applier.settle()  # a CRD or Namespace stands before what lives in it begins, maybe in several steps at once

    def put(self) -> None:
        """Bring the step's object to what git declares from what is live now, never by a deletion. Raises as `Applier.put`."""
        self.applier.put(self.step.identity)

    def write(self, item: Desired, live: Object | None) -> Object:
        """Bring an object that the action composed to what it declares; return it as stored. Raises Moved: `live` is no more so."""
        meta = live["metadata"] if live else {"uid": "", "resourceVersion": "1"}  # a version without a uid: created, or Moved
        with self._fenced_again():
            try:
                stored = self.writer.apply(item.resource, item.manifest.body(), str(meta["uid"]), str(meta["resourceVersion"]))
            except ApiRefused as error:
                raise told_refusal(error, item.manifest) from error
        self.applier.stored.note(item.identity, stored)
        return stored

    def delete(self, resource: Resource, identity: Identity, uid: str, version: str = "", propagation: Propagation = "Foreground") -> None:
        """Delete exactly this object and wait until it is gone. Raises Moved: it changed (with `version`), or is another; StillDeleting."""
        named = {gone.identity for gone in self.change.takes} if self.change else ()
        with self._fenced_again():
            version = let_claims_go(self.applier.planner.api, self.applier.fence, resource, identity, uid, version, named)
            self.writer.delete(resource, identity, uid, version, propagation)
        self.applier.removed.add(identity)
        self.gone(resource, identity, uid)

    def remove(self, resource: Resource, identity: Identity, uid: str) -> None:
        """Delete the object of a remembered uid, unless an earlier run did, and wait. Raises as `delete`."""
        live = self.live(resource, identity)
        if live is None or live["metadata"]["uid"] != uid:
            return
        if live["metadata"].get("deletionTimestamp"):
            self.gone(resource, identity, uid)
        else:
            self.delete(resource, identity, uid)

    def gone(self, resource: Resource, identity: Identity, uid: str) -> None:
        """Wait until this object, of this uid, is gone. Raises StillDeleting."""
        self.journal.flush()  # also what was said just now
        found = self.journal.find(self.group, self.step.name)
        said = found.message if found else ""

        def lingers(left: Sequence[Problem]) -> None:
            lines = without_credentials("; ".join(f"{each.subject} {each.message}" for each in left))
            self.report("; ".join(filter(None, (said, lines))))

        wait_until_gone(self.applier.planner.api, [(resource, identity, uid)], self.beat, lingers)

    @contextlib.contextmanager
    def _fenced_again(self) -> Iterator[None]:
        """Check the fence first when a write has met a moved object: a successor may have moved it."""
        try:
            yield
        except Moved:
            self.applier.fence()
            raise

    @property
    def writer(self) -> Writer:
        """Sends writes, each after the fence was checked."""
        return Writer(self.applier.planner.api, self.applier.fence)

    @property
    def dry_runner(self) -> DryRunner:
        """Sends writes as dry-runs only."""
        return DryRunner(self.applier.planner.api)

    # --- reads
    def live(self, resource: Resource, identity: Identity) -> Object | None:
        """Return the live object, None: it isn't there."""
        return probe(self.applier.planner.api, [(resource, identity.namespace, identity.name)]).get(identity)

    def follow(self, kept: WaitRecord, wanted: list[tuple[Resource, Identity]], judge: Judge, timeout: float) -> bool:
        """Feed `judge` with each state of these members until it is content with all; False when the time is over. See `Waits.follow`."""
        return self.waits.follow(kept, wanted, judge, timeout, self.beat)

    def healthy(self, kept: WaitRecord, items: list[Desired], limits: Wait | None = None) -> None:
        """Wait until these objects are healthy. Raises RolloutFailed with each one's why."""
        self.waits.healthy(kept, items, self.applier.stored.generations, limits or self.target.wait or Wait(), self.beat)
