"""What is previewed of a target on a cluster in memory, and the requests of that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from handler.engine.planner.planner import PlanRequest
from handler.engine.planner.preview import Preview, Previewer
from handler.model.manifest import Manifest
from handler.model.names import GroupKind
from handler.plan.admission import Admission
from handler.plan.hooks import separate
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.unit.engine.apply.planned_target import APPLYSET, Body, PlannedTarget

KINDS = frozenset({GroupKind("", "ConfigMap"), GroupKind("", "Secret"), GroupKind("", "Namespace")})


@dataclass
class Previewed:
    """A target on a cluster in memory, and the requests of its previews."""

    shop: PlannedTarget = field(default_factory=PlannedTarget)
    asked: list[Call] = field(default_factory=list)
    now: tuple[Body, ...] = ()
    """What git declares before the merge."""

    def live(self, *bodies: Body) -> None:
        """Let objects live that the target has applied, as git declares them."""
        self.now = bodies
        self.shop.apply(self.shop.plan(*bodies))
        self.shop.written.clear()

    def preview(self, *bodies: Body, judged: bool = False, prune: bool = True, **parts: Any) -> Preview:
        planner, meet = self.shop.planner, self.shop.meet
        admission = Admission(self.shop.target, APPLYSET, "anneal-system", planner.discovery.find, planner.discovery.listable())
        now, declared = (
            admission.admit([Manifest.of(body, f"{index}.yaml:1") for index, body in enumerate(each)]) for each in (self.now, bodies)
        )

        def noted(call: Call, do: Callable[[], Reply]) -> Reply:
            self.asked.append(call)
            return meet(call, do)

        self.shop.meet = noted
        asked = {name: parts.pop(name) for name in ("guarded", "ran") if name in parts}
        rest, hooks = separate(declared)
        ask = PlanRequest("c" * 40, "reads", "settings", (rest,), KINDS, prune=prune, planned_hooks=hooks, due=hooks.due(), **asked)
        found = Previewer(planner, planner.api if judged else None, now={item.identity: item for item in now}, **parts).preview(ask)
        self.shop.meet = meet
        assert self.shop.written == [], "nothing is written"
        return found

    @property
    def sent(self) -> list[str]:
        """The dry-runs, in order of their paths."""
        return sorted(f"{each.asked.method} {each.asked.path.rpartition('/')[2]}" for each in self.asked if each.asked.method != "GET")

    def bodies(self, method: str) -> list[Body]:
        """What was sent in such dry-runs, without our marks."""
        sent = [each.asked.body for each in self.asked if each.asked.method == method]
        return [{key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata")} for body in sent]
