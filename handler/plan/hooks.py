"""The hooks of a commit, taken out of what it declares: which objects are acts, when each runs, in which order. Pure.

Law: a hook is declared like any other object, but neither its absence nor its content is drift; it is pruned only once git drops it. A
member that becomes one stays a member until a rollout has made its successor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from handler.model.errors import PlanRefused, Problem
from handler.model.names import Identity
from handler.model.plan import Due
from handler.model.rollout import ARGO_HOOK, HELM_HOOK, MAX_STEPS, Hook, Mode, Phase
from handler.plan.admission import Desired
from handler.plan.managed_fields import is_applied, is_ours_alone
from handler.plan.order import DEPENDS_ON, Order, order, readable_depends_on, sort_key
from handler.rollout.hook_annotations import ROLLOUT, HookRead, read

PHASES = (Phase.PRE_SYNC, Phase.SYNC, Phase.POST_SYNC, Phase.SYNC_FAIL)  # the phases that run, in their order
ACTION = "run"  # the action of a hook in a plan and in the record
Waves = tuple[tuple[Identity, ...], ...]
_MARKS = (ARGO_HOOK.encode(), HELM_HOOK.encode())
_DEPENDS = DEPENDS_ON.encode()


@dataclass(frozen=True, slots=True)
class PlannedHooks:
    """The hooks of a commit. `waves`: by phase but `Sync`; `first`: Namespaces and CRDs without which a `PreSync` hook can't live."""

    hooks: Mapping[Identity, Hook] = field(default_factory=dict)
    items: Mapping[Identity, Desired] = field(default_factory=dict)
    waves: Mapping[Phase, Waves] = field(default_factory=dict)
    first: frozenset[Identity] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether any of them ever runs."""
        return any(hook.phases - {Phase.SKIP} for hook in self.hooks.values())

    def of(self, phase: Phase) -> tuple[Identity, ...]:
        """Return the hooks of a phase, in the order of their waves."""
        found = (hook for hook in self.hooks.values() if phase in hook.phases)
        return tuple(hook.identity for hook in sorted(found, key=lambda hook: (hook.wave, sort_key(hook.identity))))

    def due(self, done: Collection[tuple[str, str]] = ()) -> tuple[Due, ...]:
        """Return what a rollout carries out, but for what an earlier run of the same one has `done`: (phase, object)."""
        found = [Due(str(phase), str(identity), identity, ACTION) for phase in PHASES for identity in self.of(phase)]
        return tuple(due for due in found if (due.group, due.step) not in done)


def is_made(live: Mapping[str, Any]) -> bool:
    """Whether a rollout made a live object as a hook: it carries its mark, which our apply wrote, and no other field manager."""
    mark = ("metadata", "annotations", ROLLOUT)
    return bool((live["metadata"].get("annotations") or {}).get(ROLLOUT)) and is_ours_alone(live, mark) and is_applied(live, mark)


def separate(desired: Iterable[Desired], others: Collection[Identity] = ()) -> tuple[tuple[Desired, ...], PlannedHooks]:
    """Take the hooks out of what is declared; those of the `Sync` phase stay, in mode `hook`, for they run among the stages.

    `others`: declared besides, for steps of a Rollout. Raises PlanRefused: every unreadable annotation; a cycle; too many.
    """
    declared = tuple(desired)
    found = {item.identity: _read(item) for item in declared if item.mode is Mode.APPLY}
    problems = [problem for one in found.values() for problem in one.problems]
    if problems:
        raise PlanRefused(*problems)
    hooks = {identity: one.hook for identity, one in found.items() if one.hook}
    _refuse_too_many(hooks.values())
    items = {item.identity: replace(item, mode=Mode.HOOK) for item in declared if item.identity in hooks}
    rest = [items.get(item.identity, item) for item in declared if item.identity not in hooks or Phase.SYNC in hooks[item.identity].phases]
    _refuse_cycles(declared, hooks)
    known = {*others, *(item.identity for item in declared)}
    by_phase: dict[Phase, list[Desired]] = {
        phase: [items[one] for one, hook in hooks.items() if phase in hook.phases] for phase in PHASES if phase is not Phase.SYNC
    }
    orders: dict[Phase, Order] = {
        phase: order(chosen, others=known, later=others if phase is Phase.PRE_SYNC else ()) for phase, chosen in by_phase.items() if chosen
    }
    waves = {phase: tuple(tuple(item.identity for item in stage) for stage in ordered.stages) for phase, ordered in orders.items()}
    needed = {need for item in by_phase[Phase.PRE_SYNC] for need in item.needs}
    notes = [one.note for one in found.values() if one.note] + [note for ordered in orders.values() for note in ordered.notes]
    return tuple(rest), PlannedHooks(hooks, items, waves, frozenset(needed & {item.identity for item in rest} - hooks.keys()), tuple(notes))


def resting(planned: PlannedHooks, items: Iterable[Desired]) -> PlannedHooks:
    """Return the hooks, with those that had their time: declared, so that what lives of them stays, and never run."""
    found = {item.identity: item for item in items}
    hooks = {identity: Hook(identity, frozenset({Phase.SKIP})) for identity in found}
    held = {identity: replace(item, mode=Mode.HOOK) for identity, item in found.items()}
    return replace(planned, hooks={**planned.hooks, **hooks}, items={**planned.items, **held})


def _refuse_too_many(hooks: Iterable[Hook]) -> None:
    runs = sum(len(hook.phases - {Phase.SKIP}) for hook in hooks)
    if runs > MAX_STEPS:
        seen = f"would run {runs:,} times in one rollout; at most {MAX_STEPS:,} are recorded"
        raise PlanRefused.of("hooks", seen, fix="split the target")


def _refuse_cycles(declared: Sequence[Desired], hooks: Mapping[Identity, Hook]) -> None:
    phases = {item.identity: _phase(hooks.get(item.identity)) for item in declared} if hooks else {}
    problems = []
    for item in (item for item in declared if hooks and _DEPENDS in item.manifest.raw):
        one = phases[item.identity]
        for need in readable_depends_on(item.manifest.body()):  # an unreadable one is refused where it is put in order
            other = phases.get(need)
            if one and other and PHASES.index(one) < PHASES.index(other):
                path = f"{item.identity} ({one}) -> {need} ({other}), which comes later"
                fix = "change its depends-on, or the phase of the hook"
                problems.append(Problem(str(item.identity), f"waits for itself: {path}", item.manifest.place, fix))
    if problems:
        raise PlanRefused(*problems)


def _phase(hook: Hook | None) -> Phase | None:
    """Return the first phase in which an object is there; None: that depends."""
    if hook is None:
        return Phase.SYNC
    return next((phase for phase in PHASES if phase in hook.phases and phase is not Phase.SYNC_FAIL), None)


def _read(item: Desired) -> HookRead:
    marked = any(mark in item.manifest.raw for mark in _MARKS)
    return read(item.manifest.body(), item.identity, item.manifest.place) if marked else HookRead()
