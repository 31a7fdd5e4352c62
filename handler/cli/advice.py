"""What to do next about a target: the one sentence, and the exact command where there is one, that `status` leads with. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from handler.cli.times import ago, until
from handler.config.settings import Target
from handler.model.health import HealthState
from handler.model.plan import Action
from handler.model.words import many
from handler.rollout.kinds.pods import WITH_PODS
from handler.state.history import ROLLING
from handler.state.lease import Peek
from handler.state.record import State, Status, TargetHealth
from handler.state.rules import seconds_of

MOVED = "target-moved"
_GONE = ": is not there"
_WITH_LOGS = frozenset(each.kind for each in WITH_PODS)


@dataclass(frozen=True, slots=True)
class View:
    """All that is known of a target: its record (None: it never ran), its Lease, what is wrong with the record, the time."""

    target: Target
    state: State | None
    lease: Peek | None
    now: float
    code: str = ""
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """One next step. `command` is empty where nothing can be typed; `urgent`: a person must act."""

    text: str
    command: str = ""
    urgent: bool = True


def is_suspended(state: State, now: float) -> bool:
    """Whether a pause holds now."""
    return state.suspend is not None and not (state.suspend.until and seconds_of(state.suspend.until) <= now)


def next_step(view: View) -> Advice:
    """Return what to do next, the most urgent thing first."""
    name = view.target.name
    if view.code == MOVED:
        return Advice("it belongs to another repository, installation or cluster; if that is meant:", f"anneal retarget {name}")
    if view.trouble:
        return Advice(view.trouble)
    if view.target.suspend:
        return Advice("the configuration suspends it; to go on, set `suspend: false` in anneal.yaml")
    if view.state is None:
        return Advice("it never ran", f"anneal apply {name}")
    return (
        _from_people(name, view.state, view.now)
        or _from_lease(name, view)
        or _from_status(name, view.state.status, view.now)
        or _from_health(name, view.state.health)
        or _from_leftovers(view.target, view.state)
        or _from_time(view.state, view.now)
        or Advice("nothing to do", urgent=False)
    )


def _from_people(name: str, state: State, now: float) -> Advice | None:
    """What waits for somebody's word."""
    if is_suspended(state, now):
        return Advice("it is suspended; to go on:", f"anneal resume {name}")
    if state.held and state.approval and state.approval.id == state.held.id:
        return Advice("its deletion is approved and runs next", f"anneal apply {name}", urgent=False)
    if state.held:
        going = sum(action != Action.UPDATE for action, _, _ in state.held.changes)
        what = f"{many(going, 'deletion')} {_verb(going, 'waits', 'wait')} for approval; to allow exactly {_verb(going, 'it', 'them')}:"
        return Advice(what, f"anneal approve {name} {state.held.id}")
    return None


def _from_lease(name: str, view: View) -> Advice | None:
    """What a worker is doing, or died doing."""
    assert view.state is not None  # noqa: S101 - asked by the caller
    if view.lease and view.lease.renewing:
        return Advice(f"{view.lease.holder} works on it now", urgent=False)
    if view.lease:
        return Advice(
            f"{view.lease.holder} holds it and hasn't renewed for {view.lease.age:.0f} s; the next run takes over, or:",
            f"anneal unlock {name}",
        )
    status = view.state.status
    if view.state.attempt and not status.next_try and (status.who != "author" or status.phase == ROLLING):
        return Advice("a run didn't finish; the next one goes on from there, or now:", f"anneal apply {name}")
    return None


def _from_status(name: str, status: Status, now: float) -> Advice | None:
    """What the last run left."""
    if status.phase in ("waiting", ROLLING):
        again = f"; it is looked at again {until(status.next_try, now)}" if status.next_try else ""
        seen = "its rollout goes on" if status.phase == ROLLING else "what was applied isn't healthy yet"
        return Advice(f"{seen}, as said below{again}", urgent=False)
    if status.phase not in ("failed", "pruning"):
        return None
    if status.who == "author":
        return Advice("fix the commit as said below, and push")
    if status.who == "nobody" and status.next_try:
        return Advice(f"it is tried again {until(status.next_try, now)}; to try now:", f"anneal apply {name}", urgent=False)
    return Advice("do what is said below, then:", f"anneal apply {name}")


def _from_health(name: str, health: TargetHealth) -> Advice | None:
    """What stands, and isn't well, whatever the last run came to."""
    if health.state == HealthState.DEGRADED and all(line.endswith(_GONE) for line in health.worst):
        return Advice("what git declares is gone from the cluster; to bring it back:", f"anneal apply {name}")
    if health.state == HealthState.DEGRADED and any(line.partition("/")[0] in _WITH_LOGS for line in health.worst):
        return Advice("it is degraded, as said below; to see what its containers wrote:", f"anneal status {name} --logs")
    if health.state == HealthState.DEGRADED:
        return Advice("it is degraded, as said below")
    if health.state == HealthState.UNKNOWN and health.since:
        return Advice("how it does isn't known, as said below; to judge it now:", f"anneal apply {name}")
    if health.state == HealthState.PROGRESSING:
        return Advice("not all of it is healthy yet, as said below", urgent=False)
    return Advice("it is healthy, with what is noted below", urgent=False) if health.notes else None


def _from_leftovers(target: Target, state: State) -> Advice | None:
    """What stands, but isn't quite what git says."""
    if state.drift:
        fields = len(state.drift)
        seen = f"{many(fields, 'field')} {_verb(fields, 'differs', 'differ')} from git; to bring {_verb(fields, 'it', 'them')} back:"
        return Advice(seen, f"anneal apply {target.name}")
    if state.pin and state.pin.automatic:
        return Advice(
            "its newest commit failed and was rolled back: push what mends it; to try the same once more:", f"anneal unpin {target.name}"
        )
    if state.pin:
        return Advice("it is pinned; to follow the branch again:", f"anneal unpin {target.name}", urgent=False)
    siblings = sorted({orphan.sibling for orphan in state.orphans if orphan.sibling})
    if siblings:
        return Advice(f"what it has given up isn't taken yet; to let {siblings[0]} take it:", f"anneal apply {siblings[0]}", urgent=False)
    if state.orphans:
        left = len(state.orphans)
        seen = f"{many(left, 'object')} {_verb(left, 'is', 'are')} no longer declared; to see whether {_verb(left, 'it', 'they')} may go:"
        return Advice(seen, f"anneal prune {target.name} --dry-run", urgent=False)
    return None


def _from_time(state: State, now: float) -> Advice | None:
    """What will be looked at, although the record is as git says: something is being deleted, was left on the wire, or was just found."""
    due = state.drift_due
    return Advice(f"nothing to do; live is looked at again {until(due, now)}", urgent=False) if due else None


def _verb(number: int, one: str, more: str) -> str:
    return one if number == 1 else more


def pinned_text(state: State, now: float) -> str:
    """Say to what a target is pinned, by whom and since when."""
    pin = state.pin
    return f"{pin.commit[:12]} by {pin.by or 'somebody'} {ago(pin.at, now)}: {pin.reason}" if pin else ""
