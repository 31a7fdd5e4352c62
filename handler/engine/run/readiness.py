"""Whether a target that others depend on is ready for them, and if not, why and what helps. Pure over what was read.

    never ran, held, failing, under way           not ready, whatever its commit
    pinned by a person, and the pin holds         ready at the pinned commit
    went back by itself                           as pinned for other repositories; not ready for the commit that failed
    suspended                                     ready with what it has for other repositories; else not without that very commit
    else                                          ready at the head of its own revision, made by its settings
    not healthy, as far as is known now           not ready

A dependant of the same repository and revision brings the commit that was meant for both: it waits for that very one; where one of the two
follows other targets, for that one or a newer one (`readiness_look`). No text here holds an age: it stands in a record, which isn't written
again as long as nothing else differs.
"""

from __future__ import annotations

from dataclasses import dataclass

from handler.config.settings import Target
from handler.engine.run.other_records import OtherRecord
from handler.model.advice import advice
from handler.model.health import HealthState
from handler.model.quotation import quoted
from handler.model.result import Outcome
from handler.plan.missing_settings import approving
from handler.state.record import HeldPlan, State, TargetHealth
from handler.state.record_values import Obstacle
from handler.state.run_history import PRUNING
from handler.state.summary import Summary
from handler.state.suspension import CONFIGURED, suspension

_FAILING = (str(Outcome.FAILED), PRUNING)


@dataclass(frozen=True, slots=True)
class SeenDependency:
    """What is known of a dependency. `settings`: the digest of its present ones; `head`: what its revision names now.

    `together`: it follows the same revision of the same repository as the dependant; `pinned`: its pin holds against that head.
    """

    target: Target
    settings: str
    record: OtherRecord
    head: str = ""
    together: bool = False
    pinned: bool = False


def allowing(target: str, held: HeldPlan) -> str:
    """Return the command that allows what is held of a target."""
    return approving(target, held.id, held.once.adopt, prune=held.once.prune)


def at_rest(target: Target, record: OtherRecord) -> Obstacle | None:
    """Return what keeps a dependency from being ready, whatever commit it should have; None: nothing does."""
    name, state = target.name, record.state
    if state is None or not (state.commit or state.attempt or state.status.phase):
        return Obstacle(name, "it never ran", _deploying(target))
    if state.awaits and state.status.phase == Outcome.WAITING:
        names = " and ".join(quoted(each.target) for each in state.awaits.on)
        return Obstacle(name, f"it waits itself for {names}", advice("anneal status {}", name))
    if state.held:
        reason = _first_line("; ".join(state.held.reasons))
        return Obstacle(name, f"its plan is held as {quoted(state.held.id)}: {reason}", allowing(name, state.held))
    if state.status.phase in _FAILING:
        doing = "it fails" if state.status.phase != PRUNING else "what it has pruned isn't gone yet"
        return Obstacle(name, f"{doing}: {_first_line(state.status.message)}", advice("anneal status {}", name))
    if state.attempt:
        return Obstacle(name, f"a run of it isn't through, for {state.attempt.commit[:12]}", advice("anneal status {}", name))
    return None if state.commit else Obstacle(name, "it has applied nothing yet", _deploying(target))


def of_commit(seen: SeenDependency, now: float) -> Obstacle | None:
    """Return why a dependency that is `at_rest` isn't ready with what it has; None: it is. `now`: seconds since the epoch."""
    assert seen.record.state is not None  # noqa: S101 - `at_rest` has judged it
    return _of_revision(seen, seen.record.state, now) or _of_health(seen.target.name, seen.record.health)


def _of_revision(seen: SeenDependency, state: State, now: float) -> Obstacle | None:
    name, has = seen.target.name, state.commit[:12]
    if state.pin and seen.pinned:
        return _of_pin(seen, state)
    if pause := suspension(seen.target, state, now):
        if not seen.together or state.commit == seen.head:
            return None
        by, fix = f"by {quoted(pause.by)}", advice("anneal resume {}", name)
        if pause is CONFIGURED:
            by, fix = "in the configuration", f"set `suspend: false` for {name} in anneal.yaml"
        return Obstacle(name, f"it is suspended {by} at {has}, and doesn't take {seen.head[:12]}", fix)
    if state.commit != seen.head:
        return _of_head(seen, has)
    if state.settings != seen.settings:
        return Obstacle(name, "its settings have changed and aren't applied yet", advice("anneal apply {}", name))
    return None


def _of_head(seen: SeenDependency, has: str) -> Obstacle:
    name, head = seen.target.name, seen.head[:12]
    if not seen.target.revision.promoted:
        return Obstacle(name, f"it has {has}, and git is at {head}", advice("anneal status {}", name))
    more = "comes first, or something newer" if seen.together else "is proven"
    return Obstacle(name, f"it has {has}, and {head} {more}", _deploying(seen.target))


def _of_pin(seen: SeenDependency, state: State) -> Obstacle | None:
    assert state.pin is not None  # noqa: S101 - asked by the caller
    name, pinned = seen.target.name, state.pin.commit[:12]
    if state.pin.automatic and seen.together:
        again = advice("push what mends it; once more: anneal unpin {}", name)
        return Obstacle(name, f"it went back to {pinned}: {_first_line(state.pin.reason)}", again)
    if state.commit != state.pin.commit:
        return Obstacle(name, f"it is pinned to {pinned} and has {state.commit[:12]}", advice("anneal status {}", name))
    return None


def _of_health(name: str, health: TargetHealth) -> Obstacle | None:
    if health.state == HealthState.HEALTHY:
        return None
    worst = f": {_first_line(health.worst[0])}" if health.worst else ""
    if health.state == HealthState.DEGRADED:
        return Obstacle(name, f"it is degraded{worst}", advice("anneal status {}", name))
    if health.state == HealthState.PROGRESSING:
        return Obstacle(name, f"not all of it is healthy yet{worst}", advice("anneal status {}", name))
    return Obstacle(name, f"how it does isn't known{worst}", advice("anneal apply {}", name))


def _deploying(target: Target) -> str:
    return advice("anneal promote {}" if target.revision.promoted else "anneal apply {}", target.name)


def _first_line(text: str) -> str:
    return quoted(text.partition("\n")[0])


def is_certainly_unready(summary: Summary | None, head: str, *, together: bool) -> bool:
    """Whether a dependency's summary alone says that it isn't ready. None: it has no record; `head`: what is waited for `together`."""
    if summary is None or not summary.commit:
        return True
    behind = together and summary.commit != head and not summary.pin
    waits = bool(summary.awaits) and summary.phase == Outcome.WAITING
    stands = bool(summary.attempt) or summary.held or waits or summary.phase in _FAILING
    return stands or behind or summary.health != HealthState.HEALTHY
