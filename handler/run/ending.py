"""How several requests end as one: their errors, raised together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from handler.model.errors import AccessDenied, AnnealError, ApiRefused, LeaseError, PlanRefused
from handler.model.plan import Change


def raise_together(answers: Iterable[Any], changes: Sequence[Change]) -> None:
    """Raise the errors among answers: a lost Lease or a transient one as it is, refusals together, each with its place in git."""
    errors = [answer for answer in answers if isinstance(answer, AnnealError)]
    errors.sort(key=lambda error: not isinstance(error, LeaseError))
    for error in errors:
        if not isinstance(error, AccessDenied | ApiRefused | PlanRefused):
            raise error
    denied = [error for error in errors if isinstance(error, AccessDenied)]
    refused = [error for error in errors if not isinstance(error, AccessDenied)]
    places = {str(change.identity): change.manifest.place for change in changes if change.manifest}
    problems = [
        replace(problem, place=problem.place or places.get(problem.subject, ""))
        for error in (*denied, *refused)
        for problem in error.problems
    ]
    if denied:
        raise denial(denied)(*problems)
    if problems:
        raise PlanRefused(*problems)


def denial(errors: Sequence[AccessDenied]) -> type[AccessDenied]:
    """Return as what several denials are raised together: a quota's where all are."""
    kinds = {type(error) for error in errors}
    return kinds.pop() if len(kinds) == 1 else AccessDenied
