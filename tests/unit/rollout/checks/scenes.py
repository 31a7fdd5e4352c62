"""Scenes for checks: what one may know, said by a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from handler.model.names import Identity
from handler.model.rollout import Moments, Sample
from handler.rollout.checks import CHECKS
from handler.rollout.interfaces import Probe, Scene, SpecError

SINCE = 1_700_000_000.0


def identity(group: str = "apps", kind: str = "Deployment") -> Identity:
    return Identity(group, kind, "shop", "web")


class Metrics:
    """Answers from a list; what was asked is kept. An answer may be an error, or None: it's under way."""

    def __init__(self, *answers: Moments | Exception | None) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, float, float]] = []

    def __call__(self, url: str, query: str, seconds: float = 0.0, step: float = 0.0) -> Moments | None:
        self.asked.append((url, query, seconds, step))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def moment(*values: float) -> Sequence[Sample]:
    return [Sample({"pod": f"web-{number}"}, value) for number, value in enumerate(values)]


def begun(name: str, raw: Any, found: Identity | None = None, **scene: Any) -> Probe:
    """Read a check as it's written, and begin it."""
    row = CHECKS[name]
    return row.begin(row.read(raw, "check"), Scene(found or identity(), **{"since": SINCE, **scene}))


def mistakes(name: str, raw: Any) -> Mapping[str, str]:
    """Return what is wrong with a check, by its place."""
    try:
        CHECKS[name].read(raw, "check")
    except SpecError as error:
        return {each.field: each.message for each in error.mistakes}
    return {}
