"""How several requests end as one: their errors, raised together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from handler.model.errors import AnnealError, ApiRefused, LeaseError, PlanRefused
from handler.model.plan import Change


def raise_together(answers: Iterable[Any], changes: Sequence[Change]) -> None:
    """Raise the errors among answers: a lost Lease or a transient one as it is, refusals together, each with its place in git."""
    errors = [answer for answer in answers if isinstance(answer, AnnealError)]
    errors.sort(key=lambda error: not isinstance(error, LeaseError))
    for error in errors:
        if not isinstance(error, ApiRefused | PlanRefused):
            raise error
    problems = [problem for error in errors for problem in error.problems]
    places = {str(change.identity): change.manifest.place for change in changes if change.manifest}
    if problems:
        raise PlanRefused(*(replace(problem, place=problem.place or places.get(problem.subject, "")) for problem in problems))
