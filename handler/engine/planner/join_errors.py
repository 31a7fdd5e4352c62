"""Errors of several questions to the API server, raised together as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from handler.model.errors import AccessDenied, AnnealError, ApiRefused, LeaseError, PlanRefused, Problem
from handler.model.plan import Change
from handler.plan.missing_settings import joined
from handler.plan.quoted_refusal import told_refusal

T = TypeVar("T")


@dataclass(slots=True)
class JoinedErrors:
    """All that speaks against one plan, found by several questions: `problems` are the author's, `denied` the operator's to cure."""

    problems: list[Problem] = field(default_factory=list)
    denied: list[AccessDenied] = field(default_factory=list)

    def of(self, ask: Callable[[], T]) -> T | None:
        """Ask; keep a refusal, and return None then."""
        try:
            return ask()
        except AccessDenied as error:
            self.denied.append(error)
        except PlanRefused as error:
            self.problems += error.problems
        return None

    def raise_any(self) -> None:
        """Raise all of them, each once: PlanRefused if there are mistakes in git, else AccessDenied."""
        found = dict.fromkeys((*self.problems, *(problem for error in self.denied for problem in error.problems)))
        if self.problems:
            raise PlanRefused(*joined(found))
        if found:
            raise denial(self.denied)(*found)


def denial(errors: Sequence[AccessDenied]) -> type[AccessDenied]:
    """Return the class that several denials are raised as: theirs if it is one, else AccessDenied."""
    kinds = {type(error) for error in errors}
    return kinds.pop() if len(kinds) == 1 else AccessDenied


def raise_together(answers: Iterable[Any], changes: Sequence[Change]) -> None:
    """Raise the errors among answers: a lost Lease or a transient one as it is, refusals together, each with its place in git."""
    errors = [answer for answer in answers if isinstance(answer, AnnealError)]
    errors.sort(key=lambda error: not isinstance(error, LeaseError))
    for error in errors:
        if not isinstance(error, AccessDenied | ApiRefused | PlanRefused):
            raise error
    denied = [error for error in errors if isinstance(error, AccessDenied)]
    refused = [error for error in errors if not isinstance(error, AccessDenied)]
    declared = {str(change.identity): change.manifest for change in changes if change.manifest}
    told = [told_refusal(each, declared.get(each.problems[0].subject)) if isinstance(each, ApiRefused) else each for each in refused]
    problems = [
        replace(problem, place=problem.place or (declared[problem.subject].place if problem.subject in declared else ""))
        for error in (*denied, *told)
        for problem in error.problems
    ]
    if denied:
        raise denial(denied)(*problems)
    if problems:
        raise PlanRefused(*joined(problems))
