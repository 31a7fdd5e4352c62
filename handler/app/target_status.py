"""How targets stand, from their records: what `/api` answers, by one metadata LIST, or one GET a target, and one of the heartbeat's Lease.

Law: a cluster that is slow or broken is a row's trouble, beside what was last seen there and when (`cluster_looks`). The lists of
what leaves here are cut.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from handler.app import record_summaries
from handler.app.cluster_looks import ClusterLooks, LastSeen, LastSeenByPlace, aged, problem
from handler.app.instances.recorded_instances import recorded_instances
from handler.app.record_summaries import PATIENCE, Readable
from handler.app.retired import ClusterRecords, retired
from handler.app.target_row import UNWELL, TargetRow
from handler.config.instance_target import configured_as
from handler.config.settings import Cluster, Settings, Target
from handler.engine.run.promotion_claims import Awaited
from handler.engine.run.readiness import allowing
from handler.model.advice import advice
from handler.model.errors import NoInstance, StateInvalid
from handler.model.event import Job
from handler.model.instance import is_covered, is_instance, template_of
from handler.model.names import state_name, target_of
from handler.model.pull_request import is_pull_request
from handler.model.result import Outcome, Result
from handler.model.to_json import plain
from handler.state import run_history
from handler.state.heartbeat import UNREAD, Heartbeat, Pulse
from handler.state.record import HeldPlan, Progress, Refusal, Run, State, WaitingFor
from handler.state.record_format import stamp
from handler.state.record_values import AS_CONFIGURED, DependencyWait
from handler.state.store import StateStore
from handler.state.summary import Summary

DEADLINE = 0.8
"""Seconds after which a cluster without an answer is in trouble, and its last result is shown: an answer takes a second at most."""
KEPT = 100  # targets whose whole state is kept for when their cluster doesn't answer
MOST = 200  # items of a list that are shown; beside it stands how many there are
HELD = 2000  # of what is held: a person who approves it sees all of it, if that is possible
_SCAN_EVERY = 60.0  # seconds
READABLE = 50  # targets whose deliveries are read for one answer
Json = dict[str, Any]
Awaits = Callable[[Target, State | None], Sequence[Awaited]]


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """What one look at a cluster shows: the metadata of its states by name, and its heartbeat."""

    states: dict[str, dict[str, Any]]
    pulse: Pulse


class TargetStatusReader:
    """Reads records of one configuration's targets by `objects` (raises AnnealError). Safe to share between threads.

    `awaits`: what a target that follows others waits for, by its record; `members`: how many objects of one without a record live.
    """

    def __init__(
        self,
        settings: Settings,
        objects: Callable[[Target], Readable],
        deadline: float = DEADLINE,
        awaits: Awaits = lambda _target, _state: (),
        members: Callable[[Target], int | None] | None = None,
    ) -> None:
        self._settings = settings
        self._objects = objects
        self._awaits, self._members = awaits, LastSeenByPlace["int | None"](KEPT)
        self._scan = members
        self._looks = ClusterLooks(deadline)
        self._clusters, self._states = LastSeenByPlace[ClusterSeen](len(settings.targets)), LastSeenByPlace["State | None"](KEPT)

    def targets(self, names: Sequence[str]) -> list[Json]:
        """Return a row for each of these targets, by one metadata LIST a cluster."""
        chosen = self._chosen(names)
        clusters = {target.cluster: target for target in chosen}
        found = self._clusters.all(self._looks, {cluster: partial(self._summaries, target) for cluster, target in clusters.items()})
        return [_row(target, found[target.cluster], self._settings) for target in chosen]

    def retired(self) -> list[Json]:
        """Return the targets that have a record and aren't configured, as the last LISTs of clusters have shown them."""
        last = self._clusters.last().items()
        seen = {place: ClusterRecords(sight.states, pulse=sight.pulse) for place, sight in last if isinstance(place, Cluster)}
        rows: list[Json] = plain(retired(seen, self._settings))
        return rows

    def row(self, name: str) -> Json:
        """Return the row of one target as `targets` does, by reads of its own: for the few of many that have changed."""
        target = self._target(name)
        sight = self._seen(target)
        if sight.trouble or _is_template(target):
            return self.targets([name])[0]  # what the last LIST has shown, and how many instances it has
        summary = Summary.of(sight.what) if sight.what else Summary()
        shown = replace(summary, suspended=target.suspend or summary.suspension(sight.at) is not None)
        return {**_followed(target), "recorded": sight.what is not None, **_summed(shown), **sight.facts()}

    def target(self, name: str, *, patient: bool = False) -> Json:
        """Return all that is known of one target, or instance. `patient`: for a decision, which waits longer for what is now.

        Raises NoInstance: it has no record.
        """
        target = self._target(name)
        sight = self._now(target) if patient else self._seen(target)
        if is_instance(name) and sight.what is None and not sight.trouble:
            raise NoInstance.of(f"target {name}", "has no record", fix=advice("anneal status {}", template_of(name)))
        awaited = self._awaits(target, sight.what) if target.revision.promoted and not sight.trouble else ()
        counted = {"instances": self._counts(target)} if _is_template(target) else {}
        asks = self._scan is not None and not (sight.what or sight.trouble or _is_template(target))
        lost = {"members": self._living(target)} if asks else {}
        return {**_detail(target, sight), **counted, **lost, "promotion": [each.facts() for each in awaited]}

    def _living(self, target: Target) -> int | None:
        """Return how many objects of a target without a record live, asked once a minute; None: not known."""
        place = ("members", target.name)  # its record is looked for by the name alone
        known = self._members.sight(place)
        if self._scan and time.time() - known.at > _SCAN_EVERY:
            known = self._members.all(self._looks, {place: partial(self._scan, target)})[place]
        return known.what

    def _counts(self, template: Target) -> Json:
        sight = self._clusters.all(self._looks, {template.cluster: partial(self._summaries, template)})[template.cluster]
        return _counted(instance_rows(template, sight, self._settings))

    def instances(self, template: str, globs: Sequence[str], after: str, limit: int, *, worst: bool = False) -> Json:
        """Return rows of those recorded instances of a template that globs cover, a page by name, and how many of all are in trouble.

        `worst`: those that need a person come first.
        """
        target = self._target(template)
        sight = self._clusters.all(self._looks, {target.cluster: partial(self._summaries, target)})[target.cluster]
        rows = instance_rows(target, sight, self._settings)
        mine = sorted(
            (row for row in rows if is_covered(row.target.name, globs)), key=lambda row: (row.level if worst else 0, row.target.name)
        )
        left = [row.target for row in mine if row.target.name > after]
        page = [_row(each, sight, self._settings) for each in left[:limit]]
        following = left[limit - 1].name if len(left) > limit else None
        return {"instances": page, **_counted(mine), **sight.facts(), "next": following}

    def run(self, run: str) -> Json | None:
        """Return a recorded run, None when the record of its target doesn't have it. Raises AnnealError: it can't be read.

        No record keeps the plan of a pull request: its comment does.
        """
        if is_pull_request(run):
            return None
        sight = self._now(self._target(target_of(run)))
        if sight.trouble:
            raise sight.trouble
        found = sight.what
        entry = next((entry for entry in found.history if entry.id == run), None) if found else None
        return recorded(target_of(run), entry, found.held if found else None) if entry else None

    def deliveries(self, names: Sequence[str]) -> Json:
        """Return the deliveries that these targets have recorded, newest first, and whose records were not read, or not now."""
        chosen = self._chosen(names)
        found = self._states.all(self._looks, {target.name: partial(self._read, target) for target in chosen[:READABLE]})
        listed = [{"target": name, **plain(each)} for name, sight in found.items() if sight.what for each in sight.what.deliveries]
        unread = [{"target": name, **problem(sight.trouble), **aged(sight.at)} for name, sight in found.items() if sight.trouble]
        over = [{"target": each.name, "code": "not-read", "message": "ask for it by name", **aged(0.0)} for each in chosen[READABLE:]]
        listed.sort(key=lambda delivery: str(delivery["received"]), reverse=True)
        return {"recorded": listed, "unread": [*unread, *over]}

    def _seen(self, target: Target, patience: float = 0.0) -> LastSeen[State | None]:
        return self._states.all(self._looks, {target.name: partial(self._read, target)}, patience)[target.name]

    def _now(self, target: Target) -> LastSeen[State | None]:
        """Look with patience; what others began to read before we asked is no answer."""
        asked = time.time()
        sight = self._seen(target, PATIENCE)
        return sight if sight.trouble or sight.at >= asked else self._seen(target, PATIENCE)

    def _chosen(self, names: Sequence[str]) -> list[Target]:
        wanted = frozenset(names)
        return [
            *(target for target in self._settings.targets if target.name in wanted),
            *(self._target(name) for name in names if is_instance(name)),
        ]

    def _target(self, name: str) -> Target:
        """Return a target by name; of an instance what its template says. Raises StateInvalid."""
        target = configured_as(self._settings, name)
        if target is None:
            raise StateInvalid.of(f"target {name}", "is not configured")
        return target

    def _read(self, target: Target) -> State | None:
        settings = self._settings
        store = StateStore(self._objects(target), settings.state_namespace, target.name, settings.installation, record_summaries.TOOLING)
        state = store.read().state
        if state is None or (is_instance(target.name) and state.instance is None):
            return None
        beat = None if state.attempt else self._pulse(target).watched
        return replace(state, health=record_summaries.health_now(state.health, state.attempt, beat, time.time(), settings))

    def _summaries(self, target: Target) -> ClusterSeen:
        return ClusterSeen(record_summaries.listed(self._objects(target), self._settings), self._pulse(target))

    def _pulse(self, target: Target) -> Pulse:
        settings = self._settings
        if not settings.health_interval:
            return UNREAD
        return Heartbeat(self._objects(target), settings.state_namespace, settings.installation).read()


# --- rows
def _followed(target: Target) -> Json:
    where = {"repository": target.repository.url, "revision": str(target.revision), "path": target.path, "cluster": target.cluster.name}
    return {"target": target.name, **where}


def _row(target: Target, sight: LastSeen[ClusterSeen], settings: Settings) -> Json:
    found, facts = sight.what, sight.facts()
    recorded = found is not None and state_name(target.name) in found.states
    summary = record_summaries.of_target(found.states, settings, target.name) if found and recorded else None
    if recorded and summary is None:
        unread = StateInvalid.of(f"target {target.name}", "the summary of its record can't be read")
        facts["trouble"] = facts["trouble"] or problem(unread)
    now = record_summaries.summary_now(summary, found.pulse.watched, sight.at, settings) if found and summary else Summary()
    of_template = {"instances": _counted(instance_rows(target, sight, settings))} if _is_template(target) else {}
    return {**_followed(target), "recorded": recorded, **_summed(now), "suspended": now.suspended or target.suspend, **of_template, **facts}


def _is_template(target: Target) -> bool:
    return target.is_template and not is_instance(target.name)  # an instance's view has all that its template says


def instance_rows(template: Target, sight: LastSeen[ClusterSeen], settings: Settings) -> list[TargetRow]:
    """Return the recorded instances of a template as a look at its cluster has seen them."""
    found = sight.what
    if found is None or not _is_template(template):
        return []
    rows: list[TargetRow] = []
    for target in recorded_instances(found.states, settings, template):
        summary = record_summaries.of_target(found.states, settings, target.name)
        now = record_summaries.summary_now(summary or Summary(), found.pulse.watched, sight.at, settings)
        rows.append(TargetRow(target, found.pulse.now or sight.at, recorded=True, summary=now, pulse=found.pulse))
    return rows


def _counted(rows: Sequence[TargetRow]) -> Json:
    return {"count": len(rows), "unwell": sum(row.level in UNWELL for row in rows)}


_FOR_TICKS = ("home", "asked", "judged", "soaks", "suspendedUntil", "directory")


def _summed(summary: Summary) -> Json:
    """Return a summary for display: the digest of its home, pending requests and soaks are for ticks."""
    return {key: value for key, value in plain(summary).items() if key not in _FOR_TICKS}


def _detail(target: Target, sight: LastSeen[State | None]) -> Json:
    state = sight.what
    paused = target.suspend or (state is not None and state.suspension(time.time()) is not None)
    known = {**_followed(target), "recorded": state is not None, "suspended": paused, "suspendedByConfiguration": target.suspend}
    return known | sight.facts() | {"state": None if state is None else shown(state)}


def shown(state: State) -> Json:
    """Return a state as people read it, its long lists cut."""
    kept = ("commit", "renderer", "status", "health", "pin", "suspend", "requested", "drift_due", "deliveries", "history", "namespaces")
    found: Json = plain({name: getattr(state, name) for name in kept})
    found |= {"driftDue": found.pop("drift_due"), "former": plain(state.former), "renamedTo": plain(state.renamed_to)}
    found["deliveries"].reverse()
    del found["health"]["apart"], found["health"]["closed"]
    if state.pin:
        del found["pin"]["beside"]  # names of reads are for runs
    found["status"]["refusal"] = _refusal(state.status.refusal) if state.status.refusal else None
    approval, attempt = state.approval, state.attempt
    return found | {
        "attempt": {"commit": attempt.commit, "since": attempt.since} if attempt else None,
        "waiting": _waiting(state.waiting) if state.waiting else None,
        "awaits": _awaits(state.awaits) if state.awaits else None,
        "rollout": _rollout(state.rollout) if state.rollout else None,
        "held": held(state.target, state.held) if state.held else None,
        "approval": {"id": approval.id, "by": approval.by, "at": approval.at} if approval else None,
        "orphans": _cut(state.orphans),
        "drift": _cut(state.drift),
        "declared": len(state.declared),
        "soaks": [{key: value for key, value in plain(soak).items() if key not in ("reads", "settings")} for soak in state.soaks[:MOST]],
        "kinds": plain(state.kinds),
    }


def _refusal(refusal: Refusal) -> Json:
    return {"commit": refusal.commit, "facts": list(dict.fromkeys(map(str, refusal.facts))), "again": refusal.again}


def held(target: str, waiting: HeldPlan) -> Json:
    """Return what waits for a person. `command`: the one that alone allows it; empty: an approval from anywhere does."""
    return {
        "id": waiting.id,
        "reasons": list(waiting.reasons),
        "changes": _cut([{"action": action, "object": name, "uid": uid} for action, name, uid in waiting.changes], HELD),
        "commit": waiting.commit,
        "since": waiting.since,
        "command": allowing(target, waiting) if waiting.once != AS_CONFIGURED else "",
    }


def _waiting(known: WaitingFor) -> Json:
    """Return what the open run waits for; the digest of how things stood at its last look is for the next one."""
    return {"commit": known.commit, "what": known.what, "since": known.since, "over": known.over, "moved": known.moved}


def _awaits(known: DependencyWait) -> Json:
    """Return which commit waits for which targets, and why each isn't ready."""
    return {"commit": known.commit, "since": known.since, "on": [plain(replace(each, fix=each.testimony.fix)) for each in known.on]}


def _rollout(known: Progress) -> Json:
    """Return how the newest rollout stands; what an action remembers, and what a wait has seen, are for the next run."""
    steps = _cut(known.steps)
    for step in steps["items"]:
        del step["mark"], step["stood"]
    return {"commit": known.commit, "started": known.started, "finished": known.finished, "outcome": known.outcome, "steps": steps}


def _cut(items: Sequence[Any], most: int = MOST) -> Json:
    return {"count": len(items), "items": plain(items[:most])}


# --- runs
def recorded(target: str, entry: Run, waiting: HeldPlan | None) -> Json:
    """Return a run as the record has it."""
    mine = waiting if waiting and entry.outcome == Outcome.HELD and waiting.commit == entry.commit else None
    return _run(target, entry, held(target, mine) if mine else None) | {"status": "ended", "source": "record", "requests": [entry.id]}


def ended(result: Result, job: Job, started: float) -> Json:
    """Return how a run of this process ended, for its memory. `started`: seconds since the epoch."""
    entry = run_history.run_of(result, None, job.actor, started)
    hold = result.plan.hold if result.plan and result.outcome is Outcome.HELD else None
    waiting = None
    if hold:
        waiting = held(result.target, HeldPlan(hold.id, hold.reasons, hold.changes[:MOST], result.commit, "", "", stamp(started)))
        waiting["changes"]["count"] = len(hold.changes)
    facts = {
        "problems": plain([each.bare() for each in result.problems[:MOST]]),
        "who": result.who,
        "nextTry": stamp(result.next_try) if result.next_try else "",
    }
    return _run(result.target, replace(entry, trigger=job.cause, message=entry.message[:4000]), waiting) | facts


def _run(target: str, entry: Run, waiting: Json | None) -> Json:
    found: Json = plain(entry)
    run = found.pop("id")
    return {"run": run, "target": target, **found, "held": waiting, "problems": [], "who": "", "nextTry": ""}
