"""Applies a plan: stage after stage, the objects of a stage in parallel, every write behind the fence.

Law: no object is deleted, and no field that others wrote is removed, unless the plan showed it; what they wrote after the plan stays, or
the write is refused and the next run plans anew. What git declares is written over whatever lives at that moment. A write that meets a
moved object is planned again for that object, three times at most, and a lost Lease stops all writes.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from handler.cluster.api import Api
from handler.cluster.live import probe
from handler.cluster.parallel import parallel
from handler.cluster.wait_until import until
from handler.cluster.write import DryRunner, Propagation, Writer
from handler.engine.apply.let_claims_go import let_claims_go
from handler.engine.apply.wait_deleted import Report, unreported, wait_until_gone
from handler.engine.planner.join_errors import raise_together
from handler.engine.planner.planner import Planned, Planner
from handler.engine.planner.server_answers import NO_DRY_RUN
from handler.health.kstatus import judge
from handler.model.errors import AccessDenied, AnnealError, ApiRefused, Moved, NotReady, PlanRefused, PlanStale, Problem
from handler.model.hidden_fields import WHOLE, HiddenFields
from handler.model.manifest import Manifest
from handler.model.names import GroupKind, Identity, Resource, identity_of, kubectl
from handler.model.plan import Action, Cause, Change
from handler.plan.admission import CRD, NAMESPACE, Desired
from handler.plan.diff import field_changes
from handler.plan.retention import STATEFUL_SET

_TRIES = 3
_READY_TIMEOUT, _SETTLES = 60.0, 1.0  # seconds for which a CRD or Namespace is waited for, and after which the record says so
_CRD_LAG = (0.1, 0.2, 0.3, 0.5, 0.5, 1.0, 1.0, 1.0)  # seconds between looks at whether the server has taken a changed CRD in
CREATE_ONLY = "1"
"""A resourceVersion without a uid: an absent object is created, one that came meanwhile answers 409 and is judged like any other."""
_PROPAGATIONS: Mapping[GroupKind, Propagation] = {GroupKind("batch", "Job"): "Foreground", STATEFUL_SET: "Orphan"}
"""How an object goes that is made anew: the pods of a StatefulSet go on, and the new one adopts them."""
_BY_OTHERS = (Cause.OWNER, Cause.CONTENT)  # whatever the object is by now, what it goes with goes
TellUnsettled = Callable[[tuple[str, ...], tuple[str, ...]], None]
_UNSEEN = "would go, which the plan didn't show"
_MUST_GO = "changed since it was planned, and would have to be deleted now; the next run plans that"


@dataclass(slots=True)
class AppliedObjects:
    """The objects one run has written, as returned. `uids`: nothing of these is pruned; `generations`: what their status must be of."""

    uids: set[str] = field(default_factory=set)
    generations: dict[Identity, int] = field(default_factory=dict)

    def note(self, identity: Identity, stored: Mapping[str, Any]) -> None:
        """Note an object as the server returned it."""
        self.spare(str(stored["metadata"]["uid"]))
        self.generations[identity] = int(stored["metadata"].get("generation") or 0)

    def spare(self, uid: str) -> None:
        """Note what is declared and lives, though nothing of it was written."""
        self.uids.add(uid)

    def generation(self, identity: Identity) -> int:
        """Return the generation that an object's status must be of; 0: any."""
        return self.generations.get(identity, 0)


@dataclass(slots=True)
class Applier:
    """Carries out one plan under one Lease, several stages at once if need be. `between`: called before each stage (suspend, shutdown).

    `removed`: objects deleted beside pruning, by a step or a recreate; `noted`: called with what was written, before anything follows it.
    `lingering`: called with objects that aren't gone yet; `wrote`: called with changes once written; `unsettled`: called with a line of
    each CRD and Namespace that doesn't stand yet, as the cluster says why, and with the lines before.
    """

    planner: Planner
    planned: Planned
    fence: Callable[[], None]
    between: Callable[[], None]
    outcomes: list[Change] = field(default_factory=list)
    written: set[Identity] = field(default_factory=set)
    removed: set[Identity] = field(default_factory=set)
    stored: AppliedObjects = field(default_factory=AppliedObjects)
    settling: set[Identity] = field(default_factory=set)
    noted: Callable[[Sequence[Desired]], None] = lambda _: None
    lingering: Report = unreported
    wrote: Callable[[Sequence[Change]], None] = lambda _: None
    unsettled: TellUnsettled = lambda _lines, _before: None
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self.planned.decision.missing.written = self.written

    @property
    def _api(self) -> Api:
        return self.planner.api

    @property
    def _writer(self) -> Writer:
        return Writer(self._api, self.fence)

    def apply(self, stage: Iterable[Change]) -> None:
        """Apply one stage of the plan; `settle` after the last one. Raises PlanRefused, NotReady (a CRD or Namespace), LeaseLost."""
        writes = [change for change in stage if change.writes]
        if not writes:
            return
        self.between()
        self._wait_for({need for change in writes for need in self._desired(change).needs})
        writes = self._judge_deferred(writes)
        self._collect(writes, parallel([partial(self._write, change) for change in writes]))
        with self.lock:
            self.settling |= {change.identity for change in writes if change.identity.group_kind in (CRD, NAMESPACE)}

    def settle(self) -> None:
        """Wait until the CRDs and Namespaces that were written stand. Raises NotReady."""
        with self.lock:
            left = set(self.settling)
        self._wait_for(left)

    def put(self, identity: Identity) -> None:
        """Bring one object from what lives now to what git says, not by a deletion. Raises PlanRefused, ApiRefused, AccessDenied, Moved."""
        shown = next((each for each in self.planned.plan.changes if each.identity == identity), None)
        again = self._again(shown or Change(Action.UNCHANGED, identity))
        if again.removes:
            raise Moved.of(str(identity), _MUST_GO)
        self.stored.spare(again.uid)
        done = self._write(again) if again.writes else again
        planned = shown or done
        self._collect([planned], [planned if planned.action is Action.RECREATE else done])

    def _judge_deferred(self, stage: Sequence[Change]) -> list[Change]:
        """Dry-run what had to be deferred, before the first write of its stage; return what is written then."""
        deferred = [change for change in stage if change.deferred and self.planner.target.validate != "none"]
        answers = parallel([partial(self._judge_once_known, change) for change in deferred])
        raise_together(answers, deferred)
        judged = {answer.identity: answer for answer in answers if isinstance(answer, Change)}
        now = [judged.get(change.identity, change) for change in stage]
        self.outcomes += [change for change in now if not change.writes]
        return [change for change in now if change.writes]

    def _judge_once_known(self, change: Change) -> Change:
        """Judge one deferred object; for a moment the server may judge by the old CRD, or not know yet what it was given."""
        fresh = any(need.group_kind == CRD and need in self.written for need in self._desired(change).needs)
        pauses, end = iter(_CRD_LAG if fresh else ()), time.monotonic() + _READY_TIMEOUT
        while True:
            try:
                judged = self._judge_again(change)
            except (ApiRefused, PlanRefused):
                pause = next(pauses, None)
                if pause is None:
                    raise
            else:
                if not judged.deferred or time.monotonic() >= end:
                    return judged
                pause = _CRD_LAG[-1]
            self.fence()
            time.sleep(pause)

    def _judge_again(self, change: Change) -> Change:
        """Judge one deferred object by what lives now; still deferred: what it names was written, and the server doesn't say so yet."""
        if change.action is not Action.CREATE:
            again = self._again(change)
            if again.removes:
                raise Moved.of(str(change.identity), _MUST_GO)
            self.stored.spare(again.uid)
            return again
        item = self._desired(change)
        try:
            DryRunner(self._api).check(item.resource, _manifest(change).body())
        except ApiRefused as error:
            if self.planned.decision.missing.first(item, error) in self.stored.generations:
                return change
            raise
        return replace(change, deferred=False)

    def _desired(self, change: Change) -> Desired:
        return self.planned.desired[change.identity]

    def _collect(self, writes: Sequence[Change], answers: Sequence[Change | AnnealError]) -> None:
        done = [answer for answer in answers if isinstance(answer, Change)]
        self.outcomes += done
        self.written |= {change.identity for change in done}
        self.noted([self._desired(change) for change in done])
        self.wrote([change for change in done if change.writes])
        raise_together(answers, writes)

    # --- one object
    def _write(self, change: Change, tries: int = _TRIES) -> Change:
        try:
            return self._send(change)
        except Moved:
            self.fence()
            if tries == 1:
                raise
        again = self._again(change)
        if change.cause in _BY_OTHERS and again.uid == change.uid:
            again = replace(change, resource_version=again.resource_version)
        if again.removes and not change.removes:
            raise Moved.of(str(change.identity), _MUST_GO)
        self.stored.spare(again.uid)
        return self._write(again, tries - 1) if again.writes else again

    def _send(self, change: Change) -> Change:
        resource = self._desired(change).resource
        uid, version = change.uid, change.resource_version or CREATE_ONLY
        if change.sibling:
            self.planned.decision.handover.refuse_if_moved(change.identity, change.sibling)
        if change.action is Action.CREATE and change.identity not in self.removed:
            self.planned.decision.refuse_if_run(self._desired(change))
        if change.action is Action.RECREATE:
            self._remove_first(change, resource)
            uid, version = "", CREATE_ONLY
        if change.managed_fields:
            merged = self._released(change, resource, version)
            version = str(merged["metadata"]["resourceVersion"])
            self._refuse_unforeseen(change, resource, merged)
        write = self._writer.merge if change.marks_only else self._writer.apply
        self.stored.note(change.identity, write(resource, _manifest(change).body(), uid, version))
        return change

    def _released(self, change: Change, resource: Resource, version: str) -> dict[str, Any]:
        """Write whose the fields are, and return the object. Raises PlanStale: since the plan, that would lose who wrote the others."""
        try:
            return self._writer.replace_managed_fields(resource, change.identity, version, json.loads(change.managed_fields))
        except ApiRefused as error:
            if error.reason != ApiRefused.FORGOTTEN:
                raise
            raise PlanStale(*error.problems) from error

    def _refuse_unforeseen(self, change: Change, resource: Resource, merged: dict[str, Any]) -> None:
        """Ask once more, now that what others wrote is ours: an apply that would change what the plan didn't show isn't sent."""
        if change.deferred or WHOLE in _manifest(change).hidden:  # of that no field was shown
            return
        try:
            wanted = DryRunner(self._api).apply(resource, _manifest(change).body())
        except ApiRefused as error:
            if NO_DRY_RUN in error.words:
                return
            raise
        planned = {field.path for field in change.fields}
        other = planned ^ {
            field.path for field in field_changes(change.identity.group_kind, merged, wanted, HiddenFields.of(_manifest(change)))
        }
        if other:
            seen = f"the server would apply {', '.join(sorted(other))} otherwise than the plan showed"
            raise PlanStale.of(str(change.identity), f"{seen}; so far only the record of who wrote its fields was changed")

    def _remove_first(self, change: Change, resource: Resource) -> None:
        version = let_claims_go(self._api, self.fence, resource, change.identity, change.uid, change.resource_version)
        propagation = _PROPAGATIONS.get(change.identity.group_kind, "Background")
        self._writer.delete(resource, change.identity, change.uid, version, propagation)
        self.removed.add(change.identity)
        wait_until_gone(self._api, [(resource, change.identity, change.uid)], self.fence, self.lingering)

    def _again(self, change: Change) -> Change:
        """Plan one object again from what is live now. Raises PlanRefused, AccessDenied: it may not; PlanStale: more would go."""
        item = self._desired(change)
        found = probe(self._api, [(item.resource, item.identity.namespace, item.identity.name)])
        live = next(iter(found.values()), None)
        outcomes = self.planned.decision.again().present(item, live) if live else [self._gone(item)]
        problems = [outcome for outcome in outcomes if isinstance(outcome, Problem)]
        if problems:
            raise PlanRefused(*problems)
        for outcome in outcomes:
            if isinstance(outcome, AccessDenied):
                raise outcome
        again = next(outcome for outcome in outcomes if isinstance(outcome, Change))
        unseen = {gone.identity for gone in again.takes} - {gone.identity for gone in change.takes}
        if unseen := self._living(unseen):
            raise PlanStale.of(str(change.identity), f"changed since it was planned: {', '.join(map(str, sorted(unseen)))} {_UNSEEN}")
        again = replace(again, takes=change.takes if again.writes else ())
        shown = {field.path for field in change.fields if not field.declared}
        more = [field.path for field in again.fields if not field.declared and field.path not in shown] if again.managed_fields else []
        if more and change.managed_fields:
            seen = f"changed since it was planned: {', '.join(more)} {_UNSEEN}"
            raise PlanStale.of(str(change.identity), seen)
        return _leaving(again, more) if more else again

    def _living(self, wanted: Iterable[Identity]) -> set[Identity]:
        """Return which objects live, of those that a look knows by their names alone."""
        served = ((self.planner.discovery.preferred(one.group_kind), one) for one in wanted)
        return set(probe(self._api, [(resource, one.namespace, one.name) for resource, one in served if resource]))

    def _gone(self, item: Desired) -> Change:
        return self.planned.decision.judge.absent(item) if item.identity in self.removed else self.planned.decision.again().gone(item)

    def _wait_for(self, needed: set[Identity]) -> None:
        with self.lock:
            wanted = sorted(needed & self.settling)
            self.settling -= set(wanted)
        if not wanted:
            return
        asked = [(self.planned.desired[identity].resource, identity) for identity in wanted]
        unsettled = _Unsettled(self.fence, self.unsettled)
        missing = until(self._api, asked, unsettled.stands, _READY_TIMEOUT, unsettled.look, self.planner.ours.selector)
        unsettled.tell(())
        if missing:
            seen = f"does not stand after {_READY_TIMEOUT:.0f} s"
            whys = {identity: f": {unsettled.why[identity]}" if unsettled.why.get(identity) else "" for identity, _ in missing}
            raise NotReady(*(Problem(str(one), f"{seen}{why}", fix=kubectl("describe", one)) for one, why in whys.items()))
        if any(identity.group_kind == CRD for identity in wanted):
            self.planner.discovery.refresh()


@dataclass(slots=True)
class _Unsettled:
    """Says why CRDs and Namespaces don't stand yet, once that takes longer than a moment."""

    fence: Callable[[], None]
    report: TellUnsettled
    why: dict[Identity, str] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    begun: float = field(default_factory=time.monotonic)

    def stands(self, live: dict[str, Any]) -> bool:
        identity = identity_of(live)
        self.why[identity] = "" if _stands(live) else judge(live, 0, 0.0).message
        return _stands(live)

    def look(self) -> None:
        self.fence()
        if time.monotonic() - self.begun >= _SETTLES:
            self.tell(tuple(f"{identity}: {why}" for identity, why in sorted(self.why.items()) if why))

    def tell(self, lines: tuple[str, ...]) -> None:
        if lines != self.told:
            before, self.told = self.told, lines
            self.report(lines, before)


def _leaving(change: Change, paths: Collection[str]) -> Change:
    """Return a change that leaves what others have just written with them: the next drift run shows it before it goes."""
    return replace(change, managed_fields=b"", fields=tuple(field for field in change.fields if field.path not in paths))


def _manifest(change: Change) -> Manifest:
    if change.manifest is None:
        raise ValueError(f"{change.identity}: only a prune has no manifest, and it goes another way")
    return change.manifest


def _stands(live: dict[str, Any]) -> bool:
    status = live.get("status") or {}
    if live.get("kind") == NAMESPACE.kind:
        return bool(status.get("phase") == "Active")
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in status.get("conditions") or [])
