"""A Rollout against its commit's declarations: how the plan treats each object that a step names, and its stage. Pure.

    no step names it            the automatic stages, before the first group
    a step names it             the stage of the first group that does; its own hook annotations, waves and depends-on order it there only
    its step deletes it         no stage: it isn't desired

Law: a step decides over its object alone. An object's Namespace and CRD must come before it, whatever applies them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from handler.config.settings import Target
from handler.model.errors import ManifestInvalid, PlanRefused, Problem
from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.plan import Due
from handler.model.render import Rendered
from handler.model.rollout import API_VERSION, KIND, Group, Mode, Rollout, Step
from handler.plan.admission import Desired
from handler.plan.order import order
from handler.rollout.interfaces import ActionReader, CheckType


@dataclass(frozen=True, slots=True)
class PlannedRollout:
    """The Rollout of a commit. `stages`: one a group; `doomed`: steps delete it; `watched`: by checks; `rest`: objects without a step."""

    rollout: Rollout | None = None
    stages: tuple[tuple[Desired, ...], ...] = ()
    doomed: Mapping[Identity, Desired] = field(default_factory=dict)
    watched: frozenset[Identity] = frozenset()
    rest: int = 0

    @property
    def named(self) -> frozenset[Identity]:
        """Every object that a step names."""
        return frozenset(step.identity for step in self.rollout.steps) if self.rollout else frozenset()

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what a plan says of it."""
        if not self.rest or self.rollout is None:
            return ()
        what = "1 object that no step names is" if self.rest == 1 else f"{self.rest:,} objects that no step names are"
        return (f"{what} applied before the first group",)

    @property
    def places(self) -> Mapping[Identity, tuple[int, int]]:
        """When each object is first acted on, as (group, step), equal for what happens at once."""
        return _places(self.rollout)[0] if self.rollout else {}

    def due(self, done: Collection[tuple[str, str]] = ()) -> tuple[Due, ...]:
        """Return the steps that a rollout carries out, but for what an earlier run of the same one has `done`: (group, step)."""
        return tuple(
            Due(group.name, step.name, step.identity, step.action) for group, step in self._steps() if (group.name, step.name) not in done
        )

    def group_of(self, identity: Identity) -> int:
        """Return the position of the group that deletes an object."""
        groups = self.rollout.groups if self.rollout else ()
        return next(index for index, group in enumerate(groups) if any(step.identity == identity for step in group.steps))

    def _steps(self) -> Iterable[tuple[Group, Step]]:
        return ((group, step) for group in self.rollout.groups for step in group.steps) if self.rollout else ()


def roll(
    rendered: Rendered, admitted: Sequence[Desired], actions: Mapping[str, ActionReader], checks: Mapping[str, CheckType]
) -> tuple[tuple[Desired, ...], PlannedRollout]:
    """Read the Rollout of a rendered commit; return what no step names, and the rest. `admitted`: its documents, in their order.

    Raises ManifestInvalid: every mistake of the Rollout; PlanRefused: every object that would come before what it needs.
    """
    if rendered.rollout is None:
        return tuple(admitted), PlannedRollout()
    if rendered.rollout.hidden:  # its names, checks and queries are shown wherever it is
        seen = f"is shown wherever it is carried out, and holds values that aren't in git: {', '.join(rendered.rollout.hidden[:3])}"
        raise ManifestInvalid.of(str(rendered.rollout.identity), seen, place=rendered.rollout.place, fix="write there only what is in git")
    names = {manifest.identity: item.identity for manifest, item in zip(rendered.manifests, admitted, strict=True)}
    keys = {key: tuple(names[identity] for identity in found) for key, found in rendered.keys.items()}
    from handler.rollout.spec import read  # noqa: PLC0415 - few targets have a Rollout

    rollout = read(rendered.rollout, keys, actions, checks, rendered.where)
    modes = {step.identity: actions[step.action].mode for step in rollout.steps}
    named = {item.identity: replace(item, mode=modes[item.identity]) for item in admitted if item.identity in modes}
    automatic = tuple(item for item in admitted if item.identity not in modes)
    doomed = {identity: item for identity, item in named.items() if item.mode is Mode.DELETE}
    _refuse_kept(rollout, admitted, modes)
    _refuse_late(rollout, automatic, named)
    return automatic, PlannedRollout(rollout, _stages(rollout, named, admitted), doomed, _watched(rollout, checks), len(automatic))


def refuse_strays(manifests: Iterable[Manifest], target: Target) -> None:
    """Raise ManifestInvalid of Rollouts among the objects, with the line that makes each the target's: no API server serves them."""
    seen = "is a Rollout: it says how objects are applied, and is none of them"
    strays = [manifest for manifest in manifests if (manifest.identity.kind, manifest.api_version) == (KIND, API_VERSION)]
    if strays:
        raise ManifestInvalid(*(Problem(str(stray.identity), seen, stray.place, _way_out(stray, target)) for stray in strays))


def _way_out(manifest: Manifest, target: Target) -> str:
    path = manifest.place.rpartition(":")[0]
    if target.rollout:
        return f"target {target.name} has another one, {target.rollout}: exclude this file, or add it to .annealignore"
    return f"add to target {target.name}: rollout: {path}"


def _stages(rollout: Rollout, named: Mapping[Identity, Desired], admitted: Sequence[Desired]) -> tuple[tuple[Desired, ...], ...]:
    taken: set[Identity] = set()
    known = {item.identity for item in admitted}
    found = []
    for group in rollout.groups:
        mine = {step.identity for step in group.steps} - taken
        taken |= mine
        items = [named[identity] for identity in sorted(mine) if named[identity].mode is not Mode.DELETE]
        found.append(tuple(item for stage in order(items, others=known).stages for item in stage))
    return tuple(found)


def _watched(rollout: Rollout, checks: Mapping[str, CheckType]) -> frozenset[Identity]:
    blind = {name for name, kind in checks.items() if getattr(kind, "without_object", False)}
    return frozenset(step.identity for step in rollout.steps if any(one.type not in blind for one in (*step.success, *step.failure)))


def _refuse_late(rollout: Rollout, automatic: Sequence[Desired], named: Mapping[Identity, Desired]) -> None:
    places, steps = _places(rollout)
    problems = [
        _late(item, need, steps[need], named[need].mode)
        for item in (*automatic, *named.values())
        for need in item.needs
        if need in places and item.mode is not Mode.DELETE and not _is_before(need, item.identity, places, named)
    ]
    if problems:
        raise PlanRefused(*problems)


def _refuse_kept(rollout: Rollout, admitted: Sequence[Desired], modes: Mapping[Identity, Mode]) -> None:
    _, steps = _places(rollout)
    problems = [
        Problem(
            str(item.identity),
            f"{item.reason}, keeps it from what {steps[item.identity]} would do",
            item.manifest.place,
            "remove the annotation, or that step"
            if item.mode is Mode.LEAVE
            else "remove the annotation, or write action: CreateIfNotExist",
        )
        for item in admitted
        if item.reason and modes.get(item.identity, item.mode) is not item.mode
    ]
    if problems:
        raise PlanRefused(*problems)


def _is_before(need: Identity, identity: Identity, places: Mapping[Identity, tuple[int, int]], named: Mapping[Identity, Desired]) -> bool:
    return named[need].mode is not Mode.DELETE and places[need] < places.get(identity, (-1, -1))


def _places(rollout: Rollout) -> tuple[dict[Identity, tuple[int, int]], dict[Identity, str]]:
    """Return when each object is first acted on, as (group, step), equal for what happens at once; and by which step."""
    places: dict[Identity, tuple[int, int]] = {}
    steps: dict[Identity, str] = {}
    for first, group in enumerate(rollout.groups):
        for second, step in enumerate(group.steps):
            places.setdefault(step.identity, (0 if rollout.parallel else first, 0 if group.parallel or rollout.parallel else second))
            steps.setdefault(step.identity, f"step {step.name} in {group.name}")
    return places, steps


def _late(item: Desired, need: Identity, step: str, mode: Mode) -> Problem:
    if mode is Mode.DELETE:
        seen, fix = f"can't be without {need}, which {step} deletes", "remove it, or that step"
        return Problem(str(item.identity), seen, item.manifest.place, fix)
    seen = f"can't be without {need}, which {step} applies too late for it"
    fix = f"let a step after that one name {item.identity}, or no step {need}: what no step names comes first"
    return Problem(str(item.identity), seen, item.manifest.place, fix)
