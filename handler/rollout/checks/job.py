"""`jobComplete`: a Job has completed; one that has failed fails the check at once, with the Job's own reason.

A Job that its time to live removed had ended; one that was removed otherwise never completes, and that is a failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from handler.health.kinds.reading import condition
from handler.health.kstatus import JOB, judge
from handler.model.errors import RolloutFailed
from handler.model.health import Status
from handler.model.manifest import at
from handler.rollout.interfaces import Judged, Object, Options, Probe, Scene, Verdict
from handler.rollout.spec_fields import TIMEOUT, Fields


class JobComplete:
    """The row: `jobComplete: {timeout: 30m}`."""

    def read(self, raw: Any, field: str) -> Options:
        """Read its time limit."""
        fields = Fields(raw, field, ("timeout",))
        found = {"timeout": fields.seconds("timeout", TIMEOUT, least=1.0)}
        fields.done()
        return found

    def begin(self, options: Options, scene: Scene) -> Probe:  # noqa: ARG002 - every row is asked alike
        """Begin for one step. Raises RolloutFailed: its object is no Job."""
        must_be_job(scene, "jobComplete")
        return _Probe(scene)


def must_be_job(scene: Scene, name: str) -> None:
    """Raise RolloutFailed unless a check's object is a Job."""
    if scene.identity.group_kind != JOB:
        raise RolloutFailed.of(str(scene.identity), f"is no Job, and {name} is about Jobs", fix="write `healthy: {}` for other kinds")


@dataclass(frozen=True, slots=True)
class _Probe:
    scene: Scene

    def look(self, live: Object | None, now: float) -> Judged:
        """Judge by the Job's conditions, stricter than its health: a suspended Job hasn't completed."""
        scene = self.scene
        found = judge(live, scene.generation, now, scene.declared)
        message = found.message and found.told(closed=scene.closed)
        if found.status is Status.NOT_FOUND:
            return Judged(Verdict.FAILED, "was removed before it was seen to complete, and has no ttlSecondsAfterFinished")
        if found.status is Status.FAILED:
            return Judged(Verdict.FAILED, message)
        if live is None or condition(live, "Complete").true:
            return Judged(Verdict.PASSED, message or f"completed, {at(live, 'status', 'succeeded') or 0} succeeded")
        return Judged(Verdict.PENDING, message or "hasn't completed")
