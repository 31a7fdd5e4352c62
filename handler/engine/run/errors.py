"""Errors that only a run meets, and which errors fail a rollout.

An author's mistake and a quota without room do: SyncFail hooks run, and the target goes back where `rollback` asks for it. A missing right
or an unreachable cluster fails no rollout: hooks and the way back would need it too, and the next run goes on.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from handler.model.errors import (
    AnnealError,
    AuthorError,
    ClusterUnavailable,
    OperatorError,
    Problem,
    QuotaExceeded,
    RolloutFailed,
    SenderError,
    TransientError,
)
from handler.model.field_masking import without_credentials
from handler.model.names import Identity

ROLLOUT_FAILURES = (AuthorError, QuotaExceeded)


class RequestRefused(SenderError, code="request-refused"):
    """What was asked of a target by name can't be done: a commit it never ran, an approval of what isn't held. It stands as before."""


class TargetRenamed(OperatorError, code="target-renamed"):
    """Another target, or the same one in another state namespace, has taken over what this record's had; no run of it writes any more."""


class EndUnsure(OperatorError, code="end-unsure"):
    """Whether an object of a target that ends may go can't be seen: nothing of it is deleted or let go, its record stays."""


class NotPromoted(TransientError, code="not-promoted"):
    """The targets that this one follows have proven nothing that it may be on yet, and it has recorded nothing. Nothing was written."""


class ApplyFailed(AuthorError, code="apply-failed"):
    """An object was refused after others were written: those stay as they are, nothing is pruned, and the attempt stays open."""


class DependencyNotReady(TransientError, code="dependency-not-ready"):
    """A new commit, or new settings, wait for targets that this one depends on (`dependsOn`). Nothing was written."""


def rollout_failure(error: AuthorError | QuotaExceeded, *problems: Problem) -> RolloutFailed | QuotaExceeded:
    """Return what fails a rollout with these problems: a quota without room stays its owner's."""
    return QuotaExceeded(*problems) if isinstance(error, QuotaExceeded) else RolloutFailed(*problems)


def masked_error(error: AnnealError, closed: Collection[Identity] = ()) -> AnnealError:
    """Take credentials out of what an error's problems say. It stays the same: its class says who must act; the rest is never shown.

    `closed`: objects that hold what isn't shown: what a server that fails says of these is left out, for a webhook that converts may quote.
    """
    answered = error.answered if isinstance(error, ClusterUnavailable) else ""
    untold = {str(each) for each in closed} if answered else set()

    def said(each: Problem) -> str:
        return f"{answered}; what it says may hold a value that isn't shown" if each.subject in untold else each.message

    error.problems = tuple(
        replace(each, message=without_credentials(said(each)), fix=without_credentials(each.fix)) for each in error.problems
    )
    error.args = error.problems
    return error
