"""Waiting inside a run: until what was applied is healthy, until a check holds.

Law: a wait ends as soon as it is without use (`interrupts`). It outlives the process (`wait_record`): the next run goes on with what time
is left. While it waits, another run may have its worker slot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from handler.cluster.wait_until import follow
from handler.cluster.watch import Stop
from handler.config.settings import Wait
from handler.config.value_formats import duration
from handler.engine.run.context import RunContext
from handler.engine.run.stuck_pods import StuckPods
from handler.engine.waits.evidence import FIRST, EvidenceLooks, Pace
from handler.engine.waits.interrupts import Interrupts
from handler.engine.waits.tracker import Ended, Tracker, Verdict, as_usual
from handler.engine.waits.wait_record import WaitRecord, time_left
from handler.health.diagnosis import STILL, Live, Subject
from handler.health.kinds.pods import WITH_PODS, pods_of
from handler.health.kstatus import ALWAYS_HEALTHY
from handler.health.kstatus import judge as judge_live
from handler.model.advice import advice
from handler.model.errors import Problem, RolloutFailed, StillWaiting
from handler.model.field_masking import without_credentials
from handler.model.health import Health, Status
from handler.model.names import Identity, Resource
from handler.model.plan import Gone
from handler.model.result import Outcome
from handler.model.tree import printable
from handler.plan.admission import Desired
from handler.state.record_format import stamp

_RECORD_AFTER = 0.5  # seconds after which a wait is worth a line in the record
_REPORT_EVERY = 10.0  # seconds between two records of what is still missing, unless there is new evidence

Object = dict[str, Any]
Judge = Callable[[Identity, Object | None], bool]


Left = Sequence[tuple[Desired, Health]]
_SHOWN = 10  # objects that an error names
_RECORDED = 200  # objects that the record names
_MESSAGE = 300  # characters of a verdict
_FAILED = "failed"
_UNHEALTHY = "isn't healthy"  # how what a wait says of what hasn't failed begins


@dataclass(slots=True)
class UnhealthyReport:
    """Reports one run's unhealthy objects. `known`: an earlier run's lines of the same commit, whose words are kept."""

    run: RunContext
    known: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        state = self.run.state
        last = state.history[0] if state.history else None
        same = last is not None and (last.outcome, last.commit, last.code) == (Outcome.FAILED, self.run.revision.commit, RolloutFailed.code)
        lines = [line.partition(": ") for line in state.status.unhealthy] if same and not self.run.force else []
        self.known = {subject: said for subject, _, said in lines}

    def lines(self, left: Left, evidence: Mapping[Identity, str]) -> tuple[str, ...]:
        """Return a line for each object, as it stands now, with what is known to explain it."""
        found = [(item.identity, self._missing(item, health)) for item, health in left[:_RECORDED]]
        return tuple(f"{identity}: {'; '.join(filter(None, (missing, evidence.get(identity))))}" for identity, missing in found)

    def subjects(self, tracker: Tracker, stood: float = 0.0) -> list[Subject]:
        """Return what isn't healthy, for a look at what explains it; `stood`: seconds for which other runs saw all of it as it is."""
        return [
            Subject(
                item.identity,
                tracker.live.get(item.identity, Live()),
                self._missing(item, health),
                max(tracker.stands(item.identity), stood) >= STILL,
                pods_of(item.identity, item.manifest.body()),
                item.identity in self.run.closed,
            )
            for item, health in tracker.unhealthy()[:_RECORDED]
        ]

    def failure(self, tracker: Tracker, why: str, explain: Callable[[Sequence[Subject]], Mapping[Identity, str]]) -> RolloutFailed:
        """Return a wait's error, its lines left to the record. `why`: words for what hasn't failed; empty: only what has is reported."""
        left = tracker.unhealthy()
        texts = {item.identity: self._text(item, health, why) for item, health in left[:_RECORDED]}
        blamed = [(item, health) for item, health in left if why or health.status is Status.FAILED]
        news = {item.identity for item, _ in blamed[:_SHOWN] if texts[item.identity] != self.known.get(str(item.identity))}
        subjects = [each for each in self.subjects(tracker) if each.identity in news]
        found = explain(sorted(subjects, key=lambda each: each.identity.group_kind not in WITH_PODS)[:_SHOWN])
        texts |= {identity: f"{texts[identity]}; {text}" for identity, text in found.items() if text}
        self.leave(f"{identity}: {text}" for identity, text in texts.items())
        return RolloutFailed(*self._problems(blamed, texts))

    def leave(self, lines: Iterable[str]) -> None:
        """Leave lines to the record, beside those of other steps that end at the same time."""
        with self.run.writing:
            self.run.round.unhealthy = tuple(dict.fromkeys((*(self.run.round.unhealthy or ()), *lines)))[:_RECORDED]

    def _problems(self, left: Left, texts: Mapping[Identity, str]) -> list[Problem]:
        shown = [Problem(str(item.identity), texts[item.identity], item.manifest.place) for item, _ in left[:_SHOWN]]
        if len(left) > _SHOWN:
            name, more = self.run.job.target, len(left) - _SHOWN
            seen = f"{more} more object{' is' if more == 1 else 's are'} not healthy"
            shown.append(Problem(f"target {name}", seen, fix=advice("see them all: anneal status {} -o json", name)))
        return shown

    def _text(self, item: Desired, health: Health, why: str) -> str:
        """Return the line of one object: the words of an earlier run, if what happened is the same."""
        failed, known = health.status is Status.FAILED, self.known.get(str(item.identity), "")
        if (failed or why) and known.startswith(_FAILED if failed else _UNHEALTHY):
            return known
        return ": ".join(filter(None, (_FAILED if failed else why, self._missing(item, health))))

    def _missing(self, item: Desired, health: Health) -> str:
        return printable(health.told(closed=item.identity in self.run.closed), _MESSAGE)


@dataclass(slots=True)
class Waits:
    """The waits of one run, on several threads. `notes`: on what is healthy; `seen`: how all did; `pace`: of the looks at what isn't.

    `stuck`: what of its plan they delete.
    """

    run: RunContext
    stuck: Sequence[Gone] = ()
    notes: list[str] = field(default_factory=list)
    seen: dict[Identity, Health] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)
    _lookout: Interrupts = field(init=False)
    _stuck: StuckPods = field(init=False)

    def __post_init__(self) -> None:
        self._lookout, self._stuck = Interrupts(self.run), StuckPods(self.run, [*self.stuck], self.notes)

    def healthy(
        self,
        kept: WaitRecord,
        items: Sequence[Desired],
        generations: Mapping[Identity, int],
        limits: Wait,
        beat: Callable[[], None] = lambda: None,
        verdict: Verdict = as_usual,
    ) -> None:
        """Wait until these objects are healthy.

        `kept`: how the wait outlives its run; `generations`: as this run's writes returned them; `beat`: see `follow`; `verdict`: how an
        object does, where its kind doesn't say; None: as usual. Raises RolloutFailed: some failed, or aren't healthy in time; NewerHead,
        StillWaiting, Stopping, Suspended, LeaseLost: the wait ended before that.
        """
        deps = self.run.deps
        kinds = {item.identity.group_kind for item in items}
        waited_for = {kind for kind in kinds if kind not in ALWAYS_HEALTHY or deps.health.covers(kind)}
        asked = [item for item in items if item.identity.group_kind in waited_for]
        tracker = Tracker(asked, generations, limits.progress_timeout, deps.planner.api.server_time, verdict, deps.health)
        try:
            if asked:
                self._watch(kept, tracker, limits, beat)
        finally:
            self.seen.update(tracker.seen)
        self._note(kept, tracker)

    def saw(self, identity: Identity, live: Object | None, generation: int) -> None:
        """Keep how an object does that something else than its health was waited for; None: it wasn't seen."""
        deps = self.run.deps
        if live is not None and identity.group_kind not in ALWAYS_HEALTHY and not deps.health.covers(identity.group_kind):
            self.seen[identity] = judge_live(live, generation, deps.planner.api.server_time())

    def _note(self, kept: WaitRecord, tracker: Tracker) -> None:
        """Note what is healthy only so far, with the Warnings about it: that a claim's StorageClass isn't there."""
        closed = self.run.closed
        noted = {
            identity: "" if identity in closed else printable(without_credentials(note), _MESSAGE)
            for identity, note in tracker.notes().items()
        }
        living = [
            Subject(identity, tracker.live[identity], said, closed=identity in closed)
            for identity, said in noted.items()
            if tracker.live[identity].uid
        ]
        warnings = EvidenceLooks(self.run, self.pace, kept.what, kept.since).explain(living if self.pace.may() else ())
        notes = [
            f"{identity}: {'; '.join(filter(None, (said, warnings.get(identity))))}"
            for identity, said in noted.items()
            if said or warnings.get(identity)
        ]
        self.notes += [note for note in notes if note not in self.notes]

    def _watch(self, kept: WaitRecord, tracker: Tracker, limits: Wait, beat: Callable[[], None]) -> None:
        wanted = [(item.resource, item.identity) for item in tracker.items]
        report, due = UnhealthyReport(self.run), [time.monotonic() + FIRST]
        diagnosing = EvidenceLooks(self.run, self.pace, kept.what, kept.since, self._recorded_before())

        def judge(identity: Identity, live: Object | None) -> bool:
            self._stuck.saw(identity, live)
            return tracker.judge(identity, live)

        def tick() -> list[Identity]:
            beat()
            self._stuck.beat()
            if not report.known:  # an earlier run of this commit has better words for its failure
                news = diagnosing.look(lambda: report.subjects(tracker))
                if news or time.monotonic() >= due[0]:
                    due[0] = time.monotonic() + _REPORT_EVERY
                    kept.report(report.lines(tracker.unhealthy(), diagnosing.texts))
            return tracker.beat()

        why = f"{_UNHEALTHY} after {duration(limits.timeout)}"
        still = f"{_UNHEALTHY}, and nothing has changed for {duration(limits.progress_timeout)}"
        try:
            if self.follow(kept, wanted, judge, limits.timeout, tick):
                self.run.round.unhealthy = self.run.round.unhealthy or ()
                return
        except Ended as ended:
            why = still if ended.stuck else ""
        except StillWaiting:
            stood = self._stands(kept, tracker.digest())
            if stood < limits.progress_timeout:
                diagnosing.once(report.subjects(tracker, stood))
                report.leave(report.lines(tracker.unhealthy(), diagnosing.texts))
                raise
            why = still
        if why == still:
            kept.end()
        raise report.failure(tracker, why, diagnosing.explain)

    def _stands(self, kept: WaitRecord, seen: str) -> float:
        """Return for how many seconds all has been as it is, by what the runs before this one saw of a wait that goes from run to run."""
        now, moved = self.run.clock(), kept.moved(seen)
        if moved is None or moved > now:
            kept.keep({seen: now})
        return max(now - moved, 0.0) if moved is not None else 0.0

    def _recorded_before(self) -> dict[str, str]:
        state = self.run.state
        same = state.waiting is not None and state.waiting.commit == self.run.revision.commit
        lines = [line.partition(": ") for line in state.status.unhealthy] if same else []
        return {subject: said for subject, _, said in lines}

    def follow(
        self, kept: WaitRecord, wanted: Sequence[tuple[Resource, Identity]], judge: Judge, timeout: float, beat: Stop = lambda: None
    ) -> bool:
        """Feed `judge` with each state of these objects until it is content with all; False when the time is over.

        `judge`: see `handler.cluster.wait_until.follow`; `timeout`: seconds in all, over restarts; `beat`: called several times a second,
        may raise, and may return what time alone has made content. Raises NewerHead, StillWaiting, Stopping, Suspended, LeaseLost.
        """
        run, planner = self.run, self.run.deps.planner
        left, selector = time_left(kept, timeout, run.clock()), planner.ours.selector
        with run.queue.resting() as may:
            patience = min(run.deps.patience, may)
            tick = partial(self._beat, kept, time.monotonic(), beat)
            done = follow(planner.api, wanted, judge, min(left, patience), tick, selector, everywhere=planner.scopes is None)
        if not done and left > patience:
            kept.note()
            raise StillWaiting.of(f"target {run.job.target}", f"waits until {kept.what} is healthy, since {stamp(kept.since)}")
        if not done:
            kept.end()
        return done

    def _beat(self, kept: WaitRecord, began: float, beat: Stop) -> Iterable[Identity] | None:
        if time.monotonic() - began >= _RECORD_AFTER:
            kept.note()
        self.look()
        return beat()

    def look(self) -> None:
        """Ask, several times a second, whether we may go on. Raises NewerHead, Stopping, Suspended, LeaseLost: no."""
        self._lookout.look()
