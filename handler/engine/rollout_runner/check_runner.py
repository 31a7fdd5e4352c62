"""A step's checks, run while its object is followed: all of `success` must pass at once, the first of `failure` that holds ends it.

Law: one LIST and WATCH; what only time or metrics change is looked at again by the beat. Time counts from the step's begin in the journal,
over runs. A time-out is a failure, after one last look. All checks of a step share one bound of work at each look.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from handler.cluster.api import items_of
from handler.config.value_formats import duration
from handler.engine.rollout_runner.metric_poller import MetricPoller
from handler.engine.waits.evidence import EvidenceLooks
from handler.engine.waits.wait import Waits
from handler.engine.waits.wait_record import WaitRecord
from handler.health.diagnosis import STILL, Live, Subject
from handler.health.kinds.pods import WITH_PODS, pods_of, selector_of
from handler.model.errors import Problem, RolloutFailed, StillWaiting
from handler.model.field_masking import without_credentials
from handler.model.names import Identity, Resource
from handler.model.rollout import Check
from handler.model.tree import printable
from handler.rollout.interfaces import Judged, Object, Probe, Query, Scene, Verdict
from handler.rollout.jsonpath import LOOKS, Effort, Spent

_POD = Resource("", "v1", "Pod", "pods", namespaced=True)
_MESSAGE = 500  # characters of what one check has seen
_BEAT = 0.2
_REPORT_EVERY = 3.0  # seconds between two lines in the record: a metric is another one each time


@dataclass(frozen=True, slots=True)
class WatchedStep:
    """What is watched, and for what.

    `resource`: None: its kind isn't served (any more). `generation`: as our write returned it, 0: unknown. `place`: file:line of its
    manifest. `hold`: seconds since it began that it lasts at least. `declared`: its manifest, if it was certainly created.
    """

    kept: WaitRecord
    resource: Resource | None
    identity: Identity
    success: tuple[Check, ...]
    failure: tuple[Check, ...]
    generation: int = 0
    place: str = ""
    hold: float = 0.0
    declared: Mapping[str, Any] | None = None


def check(
    waits: Waits, watched: WatchedStep, beat: Callable[[], None] = lambda: None, report: Callable[[str], None] = lambda _: None
) -> str:
    """Wait until everything of `success` passes; return what was seen, one line.

    Without `success` only `hold` is waited for, and an answer of each check of `failure`. `beat`: called several times a second, may raise;
    `report`: called with changed progress, one line. Raises RolloutFailed: a failure check holds, a success check has failed or its
    time is over; NewerHead, StillWaiting, Stopping, Suspended, LeaseLost: the wait ended before that.
    """
    return _Checking(waits, watched, beat, report).go()


@dataclass(slots=True)
class _Under:
    """One check under way. `moved`: when it was last seen to go on; `compared`: whether this run has seen how far it is."""

    check: Check
    probe: Probe
    kept: WaitRecord
    moved: float
    judged: Judged = Judged(Verdict.PENDING, known=False)  # noqa: RUF009 - frozen
    due: float = -math.inf
    compared: bool = False

    def look(self, live: Object | None, now: float) -> None:
        """Judge anew. What stands as the run before this one left it, stands so since then."""
        found = self.probe.look(live, now)
        moves = (found.verdict, found.progress) != (self.judged.verdict, self.judged.progress)
        self.judged, self.due = found, now + found.again if found.again else math.inf
        if moves:
            before = self.kept.moved(self.digest()) if found.progress and not self.compared else None
            self.moved, self.compared = now if before is None else min(before, now), self.compared or bool(found.progress)

    def digest(self) -> str:
        """Return one value for what was compared, by which the next run knows whether anything has changed."""
        known = (self.kept.what, self.check.name, str(self.judged.verdict), self.judged.progress)
        return hashlib.sha256(repr(known).encode()).hexdigest()

    @property
    def limited(self) -> bool:
        return bool(self.check.options.get("progressTimeout") and self.judged.progress and self.judged.verdict is not Verdict.PASSED)

    def overdue(self, since: float, now: float) -> str:
        short = "not so" if self.judged.known else "unanswered"
        timeout, still = self.check.options.get("timeout"), self.check.options.get("progressTimeout")
        if self.judged.verdict is Verdict.PASSED:
            return ""
        if timeout and now - since >= timeout:
            return f"{short} after {duration(timeout)}"
        if still and self.limited and now - self.moved >= still:
            return f"not so, and nothing of it has changed for {duration(still)}"
        return ""


@dataclass(slots=True)
class _Checking:
    waits: Waits
    watched: WatchedStep
    beat: Callable[[], None]
    report: Callable[[str], None]
    questions: MetricPoller = field(init=False)
    success: list[_Under] = field(init=False)
    failure: list[_Under] = field(init=False)
    live: Object | None = None
    seen: bool = False
    reported: str = ""
    reported_at: float = -math.inf
    effort: Effort = field(default_factory=Effort)
    left: str = ""
    message: str = ""
    stands: float = field(default_factory=time.monotonic)
    diagnosing: EvidenceLooks = field(init=False)

    def __post_init__(self) -> None:
        self.diagnosing = EvidenceLooks(self.waits.run, self.waits.pace, self.watched.kept.what, self.watched.kept.since)
        self.questions = MetricPoller(self.waits.run.deps.metrics, self._may_go_on)
        self.success = [self._begin(each, failing=False) for each in self.watched.success]
        self.failure = [self._begin(each, failing=True) for each in self.watched.failure]

    def _begin(self, check: Check, *, failing: bool) -> _Under:
        run, watched = self.waits.run, self.watched
        query: Query = self.questions
        scene = Scene(
            watched.identity,
            watched.kept.since,
            watched.generation,
            watched.declared,
            failing,
            query,
            self._pods,
            watched.identity in run.closed,
            self._effort,
            run.deps.health.verdict,
        )
        row = run.deps.preparer.checks[check.type]
        return _Under(check, row.begin(check.options, scene), watched.kept, self._now())

    def go(self) -> str:
        kept, resource = self.watched.kept, self.watched.resource
        try:
            if resource is None:
                self._without_object()
            else:
                self.waits.follow(kept, [(resource, self.watched.identity)], self._judge, math.inf, self._tick)
        except StillWaiting:
            kept.keep({each.digest(): each.moved for each in self._waited_for() if each.limited})
            self.diagnosing.once(self._subjects())
            self._report_progress(now=True)
            raise
        finally:
            self.waits.saw(self.watched.identity, self.live, self.watched.generation)
        return "; ".join(self._said(each) for each in self.success)

    # --- looking
    def _judge(self, _identity: Identity, live: Object | None) -> bool:
        self.live, self.seen = live, True
        return self._look(changed=True)

    def _tick(self) -> Iterable[Identity] | None:
        self.beat()
        if self.diagnosing.look(self._subjects):
            self._report_progress(now=True)
        return [self.watched.identity] if self.seen and self._look(changed=False) else None

    def _without_object(self) -> None:
        """Wait where there is no kind to follow: its definition went with the object."""
        run = self.waits.run
        with run.queue.resting() as may:
            while not self._look(changed=not self.seen):
                self.seen = True
                if min(may, run.deps.patience) < _BEAT:
                    raise StillWaiting.of(f"target {run.job.target}", f"waits for the checks of {self.watched.kept.what}")
                self._may_go_on()
                threading.Event().wait(_BEAT)

    def _may_go_on(self) -> None:
        self.waits.look()
        self.beat()

    def _look(self, *, changed: bool) -> bool:
        now = self._now()
        self._look_at([each for each in (*self.failure, *self.success) if changed or now >= each.due], now)
        self._end_if_failed(now)
        left = [self._said(each) for each in self.success if each.judged.verdict is not Verdict.PASSED]
        left += [self._said(each) for each in self.failure if not each.judged.known]
        held = max(self.watched.kept.since + self.watched.hold - now, 0.0)
        self._note(left, held)
        return not left and not held

    def _look_at(self, due: Iterable[_Under], now: float) -> None:
        """Look, with one effort. Raises RolloutFailed: it isn't enough; the check is named that has taken most."""
        self.effort, taken = Effort(), {}
        for each in due:
            before = self.effort.left
            try:
                each.look(self.live, now)
            except Spent:
                taken[each.check.name] = before
                raise self._costly(max(taken, key=lambda name: taken[name])) from None
            taken[each.check.name] = before - self.effort.left

    def _costly(self, name: str) -> RolloutFailed:
        text = f"{name}: the step's checks look at more than {LOOKS:,} values of its object at once, here at most of them"
        fix = "compare less, or by paths that find it without `..`, `[*]`, filters or many alternatives"
        return RolloutFailed(Problem(str(self.watched.identity), text, self.watched.place, fix))

    def _end_if_failed(self, now: float) -> None:
        held = [each for each in self.failure if each.judged.verdict is Verdict.PASSED]
        if held:
            raise self._failed([(each, "") for each in held], "failure check ")
        failed = [(each, "") for each in self.success if each.judged.verdict is Verdict.FAILED]
        if not failed and not self.questions.open:
            failed = [(each, why) for each in self._waited_for() if (why := each.overdue(self.watched.kept.since, now))]
        if failed:
            raise self._failed(failed, "")

    def _waited_for(self) -> list[_Under]:
        """Return the checks whose time counts: of success, and those of failure without an answer."""
        return [*self.success, *(each for each in self.failure if not each.judged.known)]

    # --- progress
    def _failed(self, found: list[tuple[_Under, str]], kind: str) -> RolloutFailed:
        watched, subject = self.watched, str(self.watched.identity)
        texts = [f"{kind}{self._said(each)}" + (f"; {why}" if why else "") for each, why in found]
        explained = self._explained()
        texts[-1] += f"; {explained}" if explained else ""
        fixes = (each.judged.fix for each, _ in found)
        return RolloutFailed(*(Problem(subject, text, watched.place, fix) for text, fix in zip(texts, fixes, strict=True)))

    def _explained(self) -> str:
        identity = self.watched.identity
        if self.live is None or identity.group_kind not in WITH_PODS:
            return ""
        return self.diagnosing.explain([self._subject()]).get(identity, "")

    def _said(self, each: _Under) -> str:
        text = printable(without_credentials(each.judged.message or str(each.judged.verdict)), _MESSAGE)
        return f"{each.check.name}: {text}"

    def _note(self, left: list[str], held: float) -> None:
        missing = "; ".join(left)
        if missing != self.left:
            self.left, self.stands = missing, time.monotonic()
        self.message = printable(missing or (f"holds for {duration(self.watched.hold)}" if held else ""), _MESSAGE)
        self._report_progress(now=False)

    def _report_progress(self, *, now: bool) -> None:
        evidence = self.diagnosing.texts.get(self.watched.identity) if self.left else ""
        text = "; ".join(filter(None, (self.message, evidence)))
        if text and text != self.reported and (now or time.monotonic() - self.reported_at >= _REPORT_EVERY):
            self.reported, self.reported_at = text, time.monotonic()
            self.report(text)

    def _subjects(self) -> list[Subject]:
        return [self._subject()] if self.live is not None and self.left else []

    def _subject(self) -> Subject:
        identity, still = self.watched.identity, time.monotonic() - self.stands >= STILL
        selector, closed = pods_of(identity, self.live or {}), identity in self.waits.run.closed
        return Subject(identity, Live.of(self.live), printable(self.left, _MESSAGE), still, selector, closed)

    # --- what the checks may know
    def _now(self) -> float:
        return self.waits.run.clock()

    def _effort(self) -> Effort:
        return self.effort

    def _pods(self) -> list[Object]:
        selector = selector_of(self.live)
        if not selector:
            return []
        api, subject = self.waits.run.deps.planner.api, "list pods"
        answer = api.get(_POD.path(self.watched.identity.namespace), {"labelSelector": selector}, subject=subject)
        return [] if answer is None else items_of(answer, _POD, subject, partial=False)
