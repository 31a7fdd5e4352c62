"""Surveys targets for a tick: which certainly have nothing to do. One metadata LIST a cluster, one look a revision.

Law: only what its summary and the head prove to be in sync is spared its run, or to wait for one that isn't ready; nothing here writes.
A hanging cluster or git host delays its own targets alone, to the deadline. The LIST is consistent and requested after the tick fell due;
a head may be older by the runs' slack.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from handler.app.record_summaries import TOOLING, listed
from handler.app.summarised_records import SummarisedRecords, holding
from handler.config.settings import Settings, Target
from handler.engine import summary_shortcuts
from handler.engine.run.promotion_claims import soonest
from handler.engine.run.readiness import is_certainly_unready
from handler.model.errors import AnnealError, ClusterUnavailable, GitUnavailable
from handler.model.event import Job
from handler.model.names import state_name
from handler.model.result import Outcome, Result, TargetStanding
from handler.state.record_format import seconds_of
from handler.state.summary import Summary, home_of

if TYPE_CHECKING:
    from handler.app.build import Handler

_LOG = logging.getLogger("anneal.survey")
DEADLINE = 30.0  # seconds after which a tick that nothing is known about gets its run
AT_ONCE = 4  # questions to one git host that are under way at once
Report = Callable[[Job, Result | None, str], None]
"""Called once for each job: with the end of a quiet tick, or with None where it needs a run; then the text says what didn't answer:
`cluster`, `git host`, or nothing."""


@dataclass
class SurveyTally:
    """What one survey found. `quiet` targets have nothing to do; `late` ones weren't judged in time; `lists`, `looks`: requests."""

    targets: int
    quiet: int = 0
    late: int = 0
    lists: int = 0
    looks: int = 0


class TickSurvey:
    """Surveys the targets of one configuration. Several may be under way. Safe to share between threads."""

    def __init__(self, settings: Settings, ways: Handler, deadline: float = DEADLINE) -> None:
        self._settings = settings
        self._targets = {target.name: target for target in settings.targets}
        self._ways = ways
        self._deadline = deadline
        self._crew = SurveyThreads()

    def look(self, jobs: Sequence[Job], report: Report) -> SurveyTally:
        """Judge each job, and report it as soon as it is known; returns when all are."""
        asked = _Round(jobs, report, SummarisedRecords(self._settings, self._ways))
        clusters: dict[Hashable, list[Target]] = defaultdict(list)
        for target in [target for target in self._settings.targets if asked.waits_for(target)]:
            clusters[target.cluster].append(target)
        asked.clusters = frozenset(clusters)
        for cluster, targets in clusters.items():
            self._crew.add(("cluster", cluster), 1, partial(_or_runs, asked, targets, partial(self._cluster, asked, targets)))
        asked.ended.wait(self._deadline)
        asked.give_up()
        return asked.tally

    def _cluster(self, asked: _Round, targets: list[Target]) -> None:
        """Read a cluster's summaries; what is settled waits for its head, the rest needs a run."""
        try:
            self._read(asked, targets)
        finally:
            asked.records.listed.setdefault(targets[0].cluster, None)

    def _read(self, asked: _Round, targets: list[Target]) -> None:
        if not any(asked.waits_for(target) for target in targets):
            return
        try:
            asked.count(lists=1)
            found = listed(self._ways.records(targets[0]), self._settings)
            uid = self._ways.cluster_uid(targets[0])
        except AnnealError as error:
            _LOG.warning("a survey can't see a cluster", extra={"fields": {"targets": len(targets), "why": str(error), "code": error.code}})
            asked.pass_on(targets, "cluster" if isinstance(error, ClusterUnavailable) else "")
            return
        asked.records.listed[targets[0].cluster] = found, uid
        self._follow(asked, targets, found, uid)

    def _follow(self, asked: _Round, targets: list[Target], found: dict[str, dict[str, Any]], uid: str) -> None:
        followed: dict[tuple[str, Hashable], list[tuple[Target, Summary]]] = defaultdict(list)
        promoted: list[tuple[Target, Summary]] = []
        for target in targets:
            try:
                summary = None if target.is_template else self._settled(target, found.get(state_name(target.name)), uid)
                place = self._ways.place(target) if summary and not target.revision.promoted else None
            except AnnealError:
                summary = place = None
            if summary and place:
                followed[place].append((target, summary))
            elif summary and target.revision.promoted:
                promoted.append((target, summary))
            else:
                asked.pass_on([target])
        if promoted:
            look = partial(self._promoted, asked, promoted)
            self._crew.add(("promoted", promoted[0][0].cluster), 1, partial(_or_runs, asked, [target for target, _ in promoted], look))
        for (host, _), group in followed.items():
            members = [target for target, _ in group]
            asked.awaits(members, "git host")
            self._crew.add(("git host", host), AT_ONCE, partial(_or_runs, asked, members, partial(self._revision, asked, group)))

    def _promoted(self, asked: _Round, group: list[tuple[Target, Summary]]) -> None:
        """Judge targets that follow others, by the summaries of those."""
        for target, summary in group:
            awaited = holding(asked.records, self._settings, target, summary.commit)
            if awaited is None:
                asked.pass_on([target])
            else:
                asked.quiet(target, summary, soonest(awaited))

    def _settled(self, target: Target, metadata: dict[str, Any] | None, uid: str) -> Summary | None:
        settings = self._settings
        if metadata is None:
            return None
        summary = summary_shortcuts.own_summary(metadata, settings.state_namespace, target.name, TOOLING)
        if summary is None:
            return None
        home, nowhere = (home_of(url, settings.installation, uid) for url in (target.repository.url, ""))
        digest, now = self._ways.digest(target), time.time()
        if summary.awaits and target.depends_on:
            return summary if summary_shortcuts.is_waiting(summary, digest, (home, nowhere), now) else None
        return summary if summary_shortcuts.is_settled(summary, digest, home, now) else None

    def _revision(self, asked: _Round, group: list[tuple[Target, Summary]]) -> None:
        if not any(asked.waits_for(target) for target, _ in group):
            return
        asked.count(looks=1)
        try:
            head = self._ways.head(group[0][0], asked.since(self._ways.slack)).commit
        except AnnealError as error:
            asked.pass_on([target for target, _ in group], "git host" if isinstance(error, GitUnavailable) else "")
            return
        for target, summary in group:
            if summary.awaits and target.depends_on:
                self._waiting(asked, target, summary, head)
            elif summary_shortcuts.is_quiet(summary, head):
                asked.quiet(target, summary)
            else:
                asked.pass_on([target])

    def _waiting(self, asked: _Round, target: Target, summary: Summary, head: str) -> None:
        """Judge a target whose head waits, once all clusters of this survey that it depends on have answered, or can't be seen."""
        needed = (self._targets[name].cluster for name in target.depends_on)
        unknown = next((each for each in needed if each in asked.clusters and each not in asked.records.listed), None)
        if unknown is not None:  # behind that cluster's LIST
            self._crew.add(
                ("cluster", unknown), 1, partial(_or_runs, asked, [target], partial(self._waiting, asked, target, summary, head))
            )
        elif summary.awaits == head and any(self._is_unready(asked, target, name, head) for name in target.depends_on):
            asked.quiet(target, summary)
        else:
            asked.pass_on([target])

    def _is_unready(self, asked: _Round, dependant: Target, name: str, head: str) -> bool:
        """Whether a dependency certainly isn't ready; one whose cluster can't be seen isn't, and what wasn't asked for isn't known."""
        dependency = self._targets[name]
        if dependency.cluster not in asked.records.listed:
            return False
        found = asked.records.listed[dependency.cluster]
        if found is None:
            return True
        metadata, is_fixed = found[0].get(state_name(name)), not dependency.revision.promoted  # else it may be newer
        together = is_fixed and dependency.revision.is_like(dependant.revision) and dependency.repository.is_same(dependant.repository)
        summary = None
        if metadata is not None:
            summary = summary_shortcuts.own_summary(metadata, self._settings.state_namespace, name, TOOLING)
            if summary is None:
                return False
        return is_certainly_unready(summary, head, together=together)


class _Round:
    """The jobs of one survey. Each is reported once, by the first judge. `records`: what its LISTs show."""

    def __init__(self, jobs: Sequence[Job], report: Report, records: SummarisedRecords) -> None:
        self.records = records
        self._open = {job.target: job for job in jobs}
        self._left = len(self._open)
        self._report = report
        self._asked = min((job.asked for job in jobs), default=0.0)
        self._awaited = dict.fromkeys(self._open, "cluster")
        self._lock = threading.Lock()
        self.tally = SurveyTally(len(self._open))
        self.clusters: frozenset[Hashable] = frozenset()
        self.ended = threading.Event()
        """Set once all are reported."""
        if not self._open:
            self.ended.set()

    def waits_for(self, target: Target) -> bool:
        """Whether a target isn't reported yet."""
        with self._lock:
            return target.name in self._open

    def since(self, slack: float) -> float:
        """Return from when on a look at a git host serves all of these."""
        return self._asked - slack

    def count(self, *, lists: int = 0, looks: int = 0) -> None:
        """Count what was asked."""
        with self._lock:
            self.tally.lists += lists
            self.tally.looks += looks

    def awaits(self, targets: Sequence[Target], what: str) -> None:
        """Note whose answer these wait for now."""
        with self._lock:
            self._awaited.update(dict.fromkeys((target.name for target in targets), what))

    def quiet(self, target: Target, summary: Summary, due: float = 0.0) -> None:
        """Report that a target has nothing to do. `due`: when it may have, in seconds since the epoch; 0: not known."""
        self._say(target.name, summary, due=due)

    def pass_on(self, targets: Sequence[Target], mute: str = "") -> None:
        """Let targets have their runs. `mute`: what didn't answer."""
        for target in targets:
            self._say(target.name, None, mute)

    def give_up(self) -> None:
        """Let all that are left have their runs."""
        with self._lock:
            left = [(name, self._awaited[name]) for name in self._open]
            self.tally.late += len(left)
        for name, awaited in left:
            self._say(name, None, awaited)

    def _say(self, name: str, summary: Summary | None, mute: str = "", due: float = 0.0) -> None:
        with self._lock:
            job = self._open.pop(name, None)
            if job is None:
                return
            self.tally.quiet += summary is not None
        try:
            self._report(job, _unchanged(job, summary, due) if summary else None, mute)
        finally:
            with self._lock:
                self._left -= 1
                if not self._left:
                    self.ended.set()


def _or_runs(asked: _Round, targets: Sequence[Target], look: Callable[[], None]) -> None:
    """Look; an unexpected error starts the runs at once, which meet it, too, and report it."""
    try:
        look()
    except Exception:
        asked.pass_on(targets)
        raise


def _unchanged(job: Job, summary: Summary, again: float) -> Result:
    due = min(filter(None, (seconds_of(summary.drift_due) if summary.drift_due else 0.0, again)), default=0.0)
    if summary.awaits:
        return Result(job.target, Outcome.WAITING, summary.awaits, job.trigger, summary.why, next_try=due, owes=summary.owes)
    standing = TargetStanding(succeeded=time.time(), orphans=summary.orphans, drifted=summary.drifted, health=summary.health)
    message = f"{summary.commit[:12]} is applied"
    found = Result(job.target, Outcome.UNCHANGED, summary.commit, job.trigger, message, next_try=due, standing=standing)
    return replace(found, owes=summary.owes)


@dataclass
class _Bulkhead:
    calls: deque[Callable[[], None]] = field(default_factory=deque)
    threads: int = 0


class SurveyThreads:
    """Runs calls on a few threads a bulkhead, started when needed: a bulkhead that hangs holds up its own calls alone."""

    def __init__(self) -> None:
        self._bulkheads: dict[Hashable, _Bulkhead] = defaultdict(_Bulkhead)
        self._lock = threading.Lock()

    def add(self, name: Hashable, most: int, call: Callable[[], None]) -> None:
        """Let a call be made, after those of its bulkhead that came before, by at most so many threads at once."""
        with self._lock:
            bulkhead = self._bulkheads[name]
            bulkhead.calls.append(call)
            if bulkhead.threads >= most:
                return
            bulkhead.threads += 1
        threading.Thread(target=self._work, args=(bulkhead,), name="survey", daemon=True).start()

    def _work(self, bulkhead: _Bulkhead) -> None:
        while True:
            with self._lock:
                if not bulkhead.calls:
                    bulkhead.threads -= 1
                    return
                call = bulkhead.calls.popleft()
            try:
                call()
            except Exception:  # noqa: BLE001 - each unreported target gets its run
                _LOG.exception("a part of a survey failed")
