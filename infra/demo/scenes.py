"""The scenes by name: `scripts/demo` plays the base ones, `scripts/demo NAME…` those that are named and what they need.

A new scene is a row here and a function in a file of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from infra.demo import rendered, story
from infra.demo.configuration import USUAL, Clock
from infra.demo.walkthrough import Walkthrough


@dataclass(frozen=True, slots=True)
class Scene:
    """One scene. `needs`: those that are played before it; `clock`: how `anneal serve` runs, None for any; `base`: played unasked.

    `tools`: kustomize or helm renders in it.
    """

    name: str
    shows: str
    play: Callable[[Walkthrough], None]
    needs: tuple[str, ...] = ("push",)
    clock: Clock | None = USUAL
    base: bool = True
    tools: bool = False


SCENES = (
    Scene("push", "a push deploys the whole shop", story.first_push, needs=()),
    Scene("kubectl", "kubectl apply leaves what is no longer declared", story.kubectl_leaves_it),
    Scene("prune", "Anneal deletes it, and its plan says so before", story.anneal_deletes_it),
    Scene("image", "one field changes, one object is written", story.image_changed),
    Scene("redelivery", "the same webhook again writes nothing", story.same_push_again),
    Scene("drift", "what a person changed by hand is repaired", story.edit_healed),
    Scene("lost-webhook", "a push is found without its webhook", story.webhook_lost, clock=None),
    Scene("refused", "a broken push is refused whole", story.broken_refused),
    Scene("held", "a deletion of half the shop waits for approval, and is reverted", story.mass_deletion),
    Scene("kustomize", "an overlay, and a generated ConfigMap whose name rolls", rendered.kustomized, base=False, tools=True),
    Scene("helm", "a chart with values, a hook, and a random key that stays", rendered.charted, base=False, tools=True),
)
ALL = "all"


class UnknownScene(Exception):
    """A name that no scene has, and the names that there are."""


def chosen(names: Sequence[str], scenes: Sequence[Scene] = SCENES) -> list[Scene]:
    """Return the scenes to play, in the order of the table. Raises UnknownScene."""
    known = {scene.name: scene for scene in scenes}
    unknown = [name for name in names if name not in known and name != ALL]
    if unknown:
        raise UnknownScene(f"there is no scene {', '.join(unknown)}; there are {', '.join((*known, ALL))}")
    wanted = {scene.name for scene in scenes if scene.name in names or ALL in names or (scene.base and not names)}
    for scene in reversed(scenes):  # what a scene needs stands above it
        wanted.update(scene.needs if scene.name in wanted else ())
    return [scene for scene in scenes if scene.name in wanted]


def play(demo: Walkthrough, scenes: Sequence[Scene]) -> None:
    """Play them. Raises DemoFailed as soon as something isn't as announced."""
    for scene in scenes:
        if scene.clock:
            demo.at(scene.clock)
        scene.play(demo)
    demo.at(USUAL)


def listing(scenes: Sequence[Scene] = SCENES) -> str:
    """Return the table that `--list` shows."""
    width = max(len(scene.name) for scene in scenes)
    rows = [f"{scene.name:{width}}  {scene.shows}{'' if scene.base else '  (only by name)'}" for scene in scenes]
    return "\n".join((*rows, f"{ALL:{width}}  every scene"))
