"""What comes of asking the server about one object, and what its refusals mean: words of their own for all that asks."""

from __future__ import annotations

import re
from dataclasses import replace

from handler.model.errors import AccessDenied, ApiRefused, Problem
from handler.model.plan import Change
from handler.plan.admission import Desired

Finding = Change | Problem | AccessDenied
"""What comes of one object: a change, a mistake of its author's, or a right that the operator must give."""
NO_DRY_RUN = "does not support dry run"
_DENIED = re.compile(r"admission webhook \"|\bdenied (?:the )?request\b")
"""How an admission webhook or policy begins: no schema says that."""
_BY_SCHEMA = frozenset({400, 404, 422})


def placed(error: ApiRefused | AccessDenied, item: Desired) -> list[Finding]:
    """Return a refusal with the place of its object; who must act stays what it was."""
    problems = [Problem(str(item.identity), p.message, item.manifest.place, p.fix) for p in error.problems]
    return [type(error)(*problems)] if isinstance(error, AccessDenied) else [*problems]


def with_fix(finding: Finding, fix: str) -> Finding:
    """Return a mistake with a way out, where it has none of its own."""
    return replace(finding, fix=finding.fix or fix) if isinstance(finding, Problem) else finding


def is_by_schema(error: ApiRefused | AccessDenied, *statuses: int) -> bool:
    """Whether a refusal may be a schema's or a validation's, with one of these statuses (none: any of theirs); admission's isn't."""
    return isinstance(error, ApiRefused) and error.status in (statuses or _BY_SCHEMA) and not _DENIED.search(str(error))
