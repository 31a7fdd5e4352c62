"""`healthy`: the object does what it is for, by kstatus' rules and whatever its kind says of itself, or by the operator's expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from handler.health.kstatus import JOB, judge
from handler.model.health import Status
from handler.rollout.interfaces import Judged, Object, Options, Probe, Scene, Verdict
from handler.rollout.spec_fields import KEYS, Fields, limits

_VERDICTS = {Status.CURRENT: Verdict.PASSED, Status.FAILED: Verdict.FAILED}


class Healthy:
    """The row: `healthy: {timeout: 10m}`."""

    def read(self, raw: Any, field: str) -> Options:
        """Read its time limits."""
        fields = Fields(raw, field, KEYS)
        found = limits(fields)
        fields.done()
        return found

    def begin(self, options: Options, scene: Scene) -> Probe:  # noqa: ARG002 - every row is asked alike
        """Begin for one step."""
        return _Probe(scene)


@dataclass(frozen=True, slots=True)
class _Probe:
    scene: Scene

    def look(self, live: Object | None, now: float) -> Judged:
        """Judge by health; a running Job shows no progress, so only its time ends it."""
        scene = self.scene
        expressed = scene.expressed(live, scene.generation) if live is not None else None
        found = expressed or judge(live, scene.generation, now, scene.declared)
        message = found.told(closed=scene.closed)
        progress = "" if scene.identity.group_kind == JOB else message
        return Judged(_VERDICTS.get(found.status, Verdict.PENDING), message, progress, found.again)
