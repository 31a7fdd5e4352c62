"""Which members may get the target's new marks while it takes over: a policy of the cluster may refuse that of one of them.

Law: the plan names what is refused, and doesn't have it: that member keeps its former marks, and nothing else waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeGuard

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.parallel import parallel
from handler.cluster.write import DryRunner
from handler.engine.planner.join_errors import raise_together
from handler.engine.planner.server_answers import NO_DRY_RUN
from handler.model.errors import AccessDenied, ApiRefused, Problem
from handler.model.names import Identity
from handler.model.plan import Change


def sorted_out(api: Api, discovery: Discovery, changes: Sequence[Change]) -> tuple[tuple[Change, ...], dict[Identity, Problem]]:
    """Return those of these changes of marks that the API server accepts, and why it refuses the others. Raises AnnealError."""
    answers = parallel([partial(_tried, api, discovery, change) for change in changes]) if changes else []
    refused = {change.identity: found.problems[0] for change, found in zip(changes, answers, strict=True) if is_refusal(found)}
    raise_together([found for found in answers if not is_refusal(found)], changes)
    return tuple(change for change in changes if change.identity not in refused), refused


def is_refusal(answer: object) -> TypeGuard[ApiRefused | AccessDenied]:
    """Whether an answer is the refusal of a write that is there to be made."""
    return isinstance(answer, AccessDenied) or (isinstance(answer, ApiRefused) and answer.status != 404)


def _tried(api: Api, discovery: Discovery, change: Change) -> None:
    resource = discovery.preferred(change.identity.group_kind)
    if resource is None or change.manifest is None:
        return
    try:
        DryRunner(api).merge(resource, change.manifest.body())
    except ApiRefused as error:
        if error.status != 404 and NO_DRY_RUN not in error.words:
            raise
