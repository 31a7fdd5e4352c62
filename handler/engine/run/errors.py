"""What only a run meets: a request that is nothing of its target's, a refusal in its middle; and which errors fail a rollout.

the author's                 SyncFail hooks run, the rollout has failed, the target goes back where `rollback` asks for it
a quota without room         the same: the commit doesn't fit, and the commit before did. Who must act stays the quota's owner
another missing right, 401   nothing of that: it is our access that fails, hooks and the way back need it too; the next run goes on
nobody's                     nothing of that: the next run goes on
"""

from __future__ import annotations

from handler.model.errors import AuthorError, Problem, QuotaExceeded, RolloutFailed, SenderError

ROLLOUT_FAILURES = (AuthorError, QuotaExceeded)


class RequestRefused(SenderError):
    """What was asked of a target by name can't be done: a commit it never ran, an approval of what isn't held. It stands as before."""

    code = "request-refused"


class ApplyFailed(AuthorError):
    """An object was refused after others were written: those stay as they are, nothing is pruned, and the attempt stays open."""

    code = "apply-failed"


def rollout_failure(error: AuthorError | QuotaExceeded, *problems: Problem) -> RolloutFailed | QuotaExceeded:
    """Return what fails a rollout with these problems: a quota without room stays its owner's."""
    return QuotaExceeded(*problems) if isinstance(error, QuotaExceeded) else RolloutFailed(*problems)
