"""The state of many targets at one moment: what `anneal status` shows.

    a cluster        one metadata LIST of its states, its uid, its heartbeat       one read at a time
    a revision       one request to its git host for all targets that follow it    a few at once a host
    a target         its record and its Lease, of the first that are in trouble     a few at once a cluster

Law: it only reads, all of it at once; a cluster or git host without an answer at the deadline is reported as such, and delays no other.
"""

from __future__ import annotations

import logging
import queue
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from handler.app import record_summaries
from handler.app.cluster_looks import LookFailed
from handler.app.instances.recorded_instances import recorded_instances
from handler.app.promotions import promotion_of
from handler.app.retired import ClusterRecords, RetiredTarget, retired
from handler.app.summarised_records import SummarisedRecords, recorded
from handler.app.target_row import TROUBLE, UNWELL, NewestCommit, TargetRow
from handler.app.tick_survey import SurveyThreads
from handler.config.settings import Cluster, Settings, Target
from handler.model.errors import AccessDenied, AnnealError, ClusterUnavailable, GitUnavailable
from handler.model.instance import is_instance, template_of
from handler.model.names import state_name
from handler.model.tree import CommitInfo
from handler.queues.bulkheads import git_host
from handler.state.heartbeat import Pulse
from handler.state.lease import Peek
from handler.state.record import State
from handler.state.summary import Summary, home_of

if TYPE_CHECKING:
    from handler.app.connections import Connections

_LOG = logging.getLogger("anneal.status")
DEADLINE = 4.0
"""Seconds that clusters and git hosts have to answer: with what a start takes, the whole command ends within five."""
EXPLAINED = 20  # targets in trouble whose records are read whole
SCANNED = 3  # targets without a record whose members are looked for: a LIST of every kind each
_AT_ONCE = 8
_TICK = 0.25  # seconds after which what is known so far is shown again


@dataclass(frozen=True, slots=True)
class _Cluster:
    """What one look at a cluster found. `states`: None: they can't be listed, so each is read by name. `uid`: or why it is hidden."""

    states: Mapping[str, dict[str, Any]] | None
    uid: str | AccessDenied
    pulse: Pulse


@dataclass(frozen=True, slots=True)
class _Whole:
    """A target's record and Lease; `error`: why the record isn't one of this target."""

    state: State | None
    lease: Peek | None
    error: AnnealError | None = None


Show = Callable[[list[TargetRow]], None]


class Overview:
    """Looks at targets of one configuration, again and again.

    `asks`: git hosts, too. `whole`: all records are read whole, not only those in trouble. `deadline`: seconds that all of them have.
    """

    def __init__(
        self, settings: Settings, ways: Connections, *, asks: bool = True, whole: bool = False, deadline: float = DEADLINE
    ) -> None:
        self._settings = settings
        self._ways = ways
        self._asks = asks
        self._whole = whole
        self._deadline = deadline
        self._crew = SurveyThreads()
        self._news: queue.SimpleQueue[tuple[Hashable, Callable[[Any], None], Any]] = queue.SimpleQueue()
        self._open: set[Hashable] = set()
        self._scanned: set[str] = set()
        self._rows: dict[str, TargetRow] = {}
        self._infos: dict[Hashable, CommitInfo | None] = {}
        self._uids: dict[Cluster, str | AccessDenied] = {}
        self._records = SummarisedRecords(settings, ways)
        self._listed: dict[Cluster, ClusterRecords] = {}

    def look(self, targets: Sequence[Target], show: Show = lambda _: None, heads: float = 0.0) -> list[TargetRow]:
        """Look once and return what was found, trouble first.

        `show`: called with what is known so far, a few times a second. `heads`: how many seconds old an answer of a git host may be.
        """
        self._take(0.0)  # what has come too late for the look before
        end, late = time.monotonic() + self._deadline, set(self._open)
        self._rows = {target.name: self._rows.get(target.name) or TargetRow(target, time.time()) for target in targets}
        self._records = SummarisedRecords(self._settings, self._ways)
        clusters, followed = (
            _grouped(targets, lambda target: target.cluster),
            _grouped([each for each in targets if self._asks and not (each.repository.is_directory or each.revision.promoted)], _question),
        )
        for cluster, group in clusters.items():
            self._ask(("cluster", cluster), 1, partial(self._cluster, group[0]), partial(self._saw_cluster, group))
        for question, group in followed.items():
            head = partial(self._head, group[0], time.monotonic() - heads)
            self._ask(("git host", git_host(group[0]), question), _AT_ONCE, head, partial(self._saw_head, group))
        while self._open - late and (left := end - time.monotonic()) > 0:
            self._take(min(left, _TICK))
            show(self._sorted())
        self._give_up(clusters, followed)
        return self._sorted()

    @property
    def retired(self) -> list[RetiredTarget]:
        """The targets that have a record on these clusters and aren't configured, as the last looks have found them."""
        return retired(self._listed, self._settings)

    def _sorted(self) -> list[TargetRow]:
        return sorted(self._rows.values(), key=lambda row: (row.level, row.target.name))

    def _take(self, seconds: float) -> None:
        """Wait for news, and take all there are."""
        try:
            news = self._news.get(timeout=seconds)
            while True:
                key, then, found = news
                self._open.discard(key)
                then(found)
                news = self._news.get_nowait()
        except queue.Empty:
            self._ask_commits()
            self._explain()

    def _ask(self, key: tuple[Hashable, ...], most: int, look: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Start a read on a thread of its bulkhead, unless it is still under way; the waiting thread takes its result or error."""
        if key in self._open:
            return
        self._open.add(key)

        def seen() -> None:
            try:
                found = look()
            except AnnealError as error:
                found = error
            except Exception as error:  # noqa: BLE001 - whatever it is, it is this place's trouble alone
                _LOG.error("a look failed", exc_info=error)
                found = LookFailed.of("anneal", f"internal error: {type(error).__name__}")
            self._news.put((key, then, found))

        self._crew.add(key[:2], most, seen)

    def _give_up(self, clusters: Mapping[Any, list[Target]], followed: Mapping[Any, list[Target]]) -> None:
        seen = f"hasn't answered within {self._deadline:g} s"
        for cluster, group in clusters.items():
            if ("cluster", cluster) in self._open:
                self._saw_cluster(group, ClusterUnavailable.of(cluster_subject(cluster), seen))
        for question, group in followed.items():
            if ("git host", git_host(group[0]), question) in self._open:
                self._saw_head(group, GitUnavailable.of(group[0].repository.url, f"its host {seen}"))

    # --- clusters
    def _cluster(self, target: Target) -> _Cluster:
        records = self._ways.records(target)
        try:
            states = record_summaries.listed(records, self._settings)
        except AccessDenied:
            states = None
        return _Cluster(states, self._uid(target), self._ways.pulse(target))

    def _uid(self, target: Target) -> str | AccessDenied:
        try:
            return self._ways.cluster_uid(target)
        except AccessDenied as denied:
            return denied

    def _saw_cluster(self, group: list[Target], found: _Cluster | AnnealError) -> None:
        group = [target for target in group if target.name in self._rows]  # a late answer may be about others, too
        for target in group:
            row = self._rows[target.name]
            unread = TargetRow(target, time.time(), trouble=found if isinstance(found, AnnealError) else None, newest=row.newest)
            self._rows[target.name] = unread if isinstance(found, AnnealError) else self._row(target, found)
        if group and not isinstance(found, AnnealError):
            self._saw_instances([target for target in group if target.is_template], found)
            cluster = group[0].cluster
            self._uids[cluster] = found.uid
            if found.states is not None:
                self._listed[cluster] = ClusterRecords(found.states, found.uid if isinstance(found.uid, str) else "", found.pulse)
            for target in [each for each in group if self._asks and each.revision.promoted and found.states is not None]:
                look = partial(self._promoted, target, self._rows[target.name].summary, str(found.uid))
                self._ask(("promotion", target.cluster, target.name), _AT_ONCE, look, partial(self._saw_head, [target]))

    def _saw_instances(self, templates: list[Target], found: _Cluster) -> None:
        """Add a row for each instance that has a record; a template's own says how they do together."""
        for template in templates:
            own = self._rows[template.name]
            for target in recorded_instances(found.states or {}, self._settings, template):
                before = self._rows.get(target.name) or TargetRow(target, own.now, newest=own.newest)
                self._rows[target.name] = before
                self._rows[target.name] = self._row(target, found)
            mine = [row for name, row in self._rows.items() if is_instance(name) and template_of(name) == template.name]
            self._rows[template.name] = replace(own, instances=len(mine), unwell=sum(row.level in UNWELL for row in mine))

    def _row(self, target: Target, found: _Cluster) -> TargetRow:
        before, now = self._rows[target.name], found.pulse.now or time.time()
        doubt = found.uid if isinstance(found.uid, AccessDenied) else None
        row = TargetRow(target, now, pulse=found.pulse, newest=before.newest, doubt=doubt)
        if found.states is None:
            return row
        metadata = found.states.get(state_name(target.name))
        if metadata is None:
            return replace(row, recorded=False, members=before.members)
        summary = record_summaries.summary_of(metadata, self._settings, target.name)
        return replace(
            row, recorded=True, summary=record_summaries.summary_now(summary or Summary(), found.pulse.watched, now, self._settings)
        )

    def _explain(self) -> None:
        """Read the whole record of targets without a usable summary, and of the first in trouble."""
        bad = [row for row in self._sorted() if row.level in TROUBLE][:EXPLAINED]
        for row in self._rows.values() if self._whole else [*bad, *(row for row in self._rows.values() if not self._is_known(row))]:
            uid = self._uids.get(row.target.cluster)
            if uid and not (row.whole or row.trouble):
                key = ("record", row.target.cluster, row.target.name)
                self._ask(key, _AT_ONCE, partial(self._read, row.target, uid), partial(self._saw_whole, row.target))

        for row in [row for row in self._sorted() if row.recorded is False and not row.target.is_template][:SCANNED]:
            if row.target.name not in self._scanned:
                self._scanned.add(row.target.name)
                key = ("members", row.target.cluster, row.target.name)
                self._ask(key, 1, partial(self._ways.members, row.target), partial(self._saw_members, row.target.name))

    def _saw_members(self, name: str, found: int | AnnealError | None) -> None:
        if name in self._rows:
            self._rows[name] = replace(self._rows[name], members=None if isinstance(found, AnnealError) else found)

    def _is_known(self, row: TargetRow) -> bool:
        """Whether a row is known: no record, or a usable summary of this target as it is configured. A pin's reason is in the record."""
        if not row.recorded:
            return row.recorded is False
        if row.summary.pin:
            return False
        uid = self._uids.get(row.target.cluster, "")
        if isinstance(uid, AccessDenied) or not row.summary.commit:
            return bool(row.summary.home)
        return row.summary.home == home_of(row.target.repository.url, self._settings.installation, uid)

    def _read(self, target: Target, uid: str | AccessDenied) -> _Whole:
        store = self._ways.brief_store(target)
        state, lease = store.read().state, self._ways.lock(target).peek()
        try:
            home = state.cluster_uid if state and isinstance(uid, AccessDenied) else str(uid)
            return _Whole(state and store.at_home(state, target.repository.url, home), lease)
        except AnnealError as error:
            return _Whole(state, lease, error)

    def _saw_whole(self, target: Target, found: _Whole | AnnealError) -> None:
        row = self._rows.get(target.name)
        if row is None:  # too late: it isn't looked at any more, or an instance that this look hasn't found yet
            return
        if isinstance(found, AnnealError):
            self._rows[target.name] = replace(row, trouble=found, whole=True)
            return
        row = replace(row, recorded=found.state is not None, lease=found.lease, trouble=found.error, whole=True)
        if found.state:
            state, seen = found.state, (row.pulse.watched, row.now, self._settings)
            health = record_summaries.health_now(state.health, state.attempt, *seen)
            summary = record_summaries.summary_now(Summary.of(state), *seen)
            row = replace(row, state=replace(state, health=health), summary=summary)
        self._rows[target.name] = row

    # --- git hosts
    def _promoted(self, target: Target, summary: Summary, uid: str) -> NewestCommit:
        found = promotion_of(self._ways, self._records, target, recorded(summary, target, uid, self._settings))
        return NewestCommit(found.commit, awaited=found.awaited)

    def _head(self, target: Target, since: float) -> NewestCommit:
        return NewestCommit(self._ways.head(target, since).commit)

    def _saw_head(self, group: list[Target], found: NewestCommit | AnnealError) -> None:
        newest = NewestCommit(trouble=found) if isinstance(found, AnnealError) else found
        names = {target.name for target in group}
        for name, row in self._rows.items():
            if name in names or (is_instance(name) and template_of(name) in names):
                self._rows[name] = replace(row, newest=newest)

    def _ask_commits(self) -> None:
        for row in list(self._rows.values()):
            if not row.is_behind or row.newest is None or row.newest.info:
                continue
            key = ("commit", git_host(row.target), row.target.repository.url, row.newest.commit)
            if key in self._infos:
                self._rows[row.target.name] = replace(row, newest=replace(row.newest, info=self._infos[key]))
            else:
                then = partial(self._saw_commit, key)
                self._ask(key, _AT_ONCE, partial(self._ways.commit, row.target, row.newest.commit), then)

    def _saw_commit(self, key: Hashable, found: CommitInfo | AnnealError | None) -> None:
        self._infos[key] = found if isinstance(found, CommitInfo) else None


def cluster_subject(cluster: Cluster) -> str:
    """Return how a verdict on a cluster begins."""
    return f"cluster {cluster.name}"


def _question(target: Target) -> Hashable:
    return target.repository.url, target.repository.auth, target.repository.tls, target.revision


def _grouped(targets: Sequence[Target], key: Callable[[Target], Hashable]) -> dict[Any, list[Target]]:
    found: dict[Any, list[Target]] = defaultdict(list)
    for target in targets:
        found[key(target)].append(target)
    return dict(found)
