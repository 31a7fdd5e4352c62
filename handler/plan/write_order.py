"""When each declared object is written in a run, so that one can be known to exist before another. Pure.

    part 0   Namespaces and CRDs that a PreSync hook needs     part 3   the Rollout's groups, step after step
    part 1   PreSync hooks, wave after wave                    part 4   PostSync hooks
    part 2   the automatic stages, each with its Sync hooks    part 5   SyncFail hooks

Law: the order is that of `handler.engine.rollout_runner.runner`. Objects written at once aren't before each other; in doubt none is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from handler.model.names import Identity
from handler.model.plan import Due
from handler.model.rollout import Mode, Phase, Policy
from handler.plan.admission import Desired
from handler.plan.hooks import PlannedHooks
from handler.plan.order import sort_key
from handler.plan.rollout import PlannedRollout
from handler.rollout.hook_annotations import lasts

Place = tuple[int, int, tuple[Any, ...]]
_PARTS = {Phase.PRE_SYNC: 1, Phase.SYNC: 2, Phase.POST_SYNC: 4, Phase.SYNC_FAIL: 5}


@dataclass(frozen=True, slots=True)
class WriteOrder:
    """The place of each object in a run; `brief`: hooks that are deleted again at the end of their phase."""

    places: Mapping[Identity, Place] = field(default_factory=dict)
    brief: Collection[Identity] = frozenset()

    @classmethod
    def of(
        cls, stages: Sequence[Sequence[Desired]], planned_hooks: PlannedHooks, planned_rollout: PlannedRollout, due: Iterable[Due]
    ) -> WriteOrder:
        """Place what a run writes: `stages`, the last of them the Rollout's groups, and the hooks and steps that are `due`."""
        acts = {(one.group, one.identity) for one in due}
        groups = {group.name for group in planned_rollout.rollout.groups} if planned_rollout.rollout else set()
        steps = planned_rollout.places if any(group in groups for group, _ in acts) else {}
        places = dict(_stage_places(stages, planned_hooks, len(stages) - len(planned_rollout.stages), steps))
        for identity in planned_hooks.hooks:
            found = [place for phase, place in _hook_places(identity, stages, planned_hooks) if (phase, identity) in acts]
            places |= {identity: min(found)} if found else {}
        succeeding = [hook.identity for hook in planned_hooks.hooks.values() if Policy.SUCCEEDED in hook.policies]
        return cls(places, frozenset(identity for identity in succeeding if not lasts(identity.group_kind)))

    def is_before(self, need: Identity, item: Identity) -> bool:
        """Whether the one certainly stands when the other is written."""
        first, then = self.places.get(need), self.places.get(item)
        if first is None or then is None or (need in self.brief and first[0] != then[0]):
            return False
        return first < then


def _stage_places(
    stages: Sequence[Sequence[Desired]], planned_hooks: PlannedHooks, automatic: int, steps: Mapping[Identity, tuple[int, int]]
) -> Iterator[tuple[Identity, Place]]:
    for number, stage in enumerate(stages):
        for identity in (item.identity for item in stage if item.mode is not Mode.HOOK):
            group, step = steps.get(identity, (number - automatic, 0))
            part = 0 if planned_hooks.first and not number else 2
            yield identity, (part, number, ()) if number < automatic else (3, group, (step,))


def _hook_places(identity: Identity, stages: Sequence[Sequence[Desired]], planned_hooks: PlannedHooks) -> Iterator[tuple[str, Place]]:
    kind = sort_key(identity)[:3]
    for phase, part in _PARTS.items():
        waves = [[item.identity for item in stage] for stage in stages] if phase is Phase.SYNC else planned_hooks.waves.get(phase, ())
        yield from ((str(phase), (part, number, kind)) for number, wave in enumerate(waves) if identity in wave)
