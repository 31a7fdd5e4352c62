"""`JobOOMKilled`: a container of a Job's pods was killed for want of memory, as it would be again. Upstream's own failure check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from handler.model.manifest import at, items_at
from handler.rollout.checks.job import must_be_job
from handler.rollout.interfaces import Judged, Object, Options, Probe, Scene, Verdict
from handler.rollout.spec_fields import Fields

_EVERY = 5.0  # seconds between two looks at the pods; a killed container changes nothing of its Job
_LISTS = ("initContainerStatuses", "containerStatuses")


class JobOOMKilled:
    """The row: `checkName: JobOOMKilled`; it has no options."""

    def read(self, raw: Any, field: str) -> Options:
        """Refuse options."""
        Fields(raw, field, ()).done()
        return {}

    def begin(self, options: Options, scene: Scene) -> Probe:  # noqa: ARG002 - every row is asked alike
        """Begin for one step. Raises RolloutFailed: its object is no Job."""
        must_be_job(scene, "JobOOMKilled")
        return _Probe(scene)


@dataclass(slots=True)
class _Probe:
    scene: Scene
    looked: float = float("-inf")
    seen: str = ""

    def look(self, live: Object | None, now: float) -> Judged:
        if not self.seen and live is not None and now - self.looked >= _EVERY:
            self.looked = now
            self.seen = next((each for pod in self.scene.pods() for each in _killed(pod)), "")
        if self.seen:
            return Judged(Verdict.PASSED, self.seen)
        return Judged(Verdict.PENDING, "no container was killed for want of memory", again=_EVERY)


def _killed(pod: Object) -> Iterator[str]:
    for status in (status for name in _LISTS for status in items_at(pod, "status", name)):
        for when in ("state", "lastState"):
            if at(status, when, "terminated", "reason") == "OOMKilled":
                name, container = at(pod, "metadata", "name"), at(status, "name")
                yield f"container {container} of Pod/{name} was killed for want of memory (OOMKilled); raise its memory limit"
