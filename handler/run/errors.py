"""What only a run meets: a request that is nothing of its target's, a refusal in its middle."""

from __future__ import annotations

from handler.model.errors import AuthorError, SenderError


class RequestRefused(SenderError):
    """What was asked of a target by name can't be done: a commit it never ran, an approval of what isn't held. It stands as before."""

    code = "request-refused"


class ApplyFailed(AuthorError):
    """An object was refused after others were written: those stay as they are, nothing is pruned, and the attempt stays open."""

    code = "apply-failed"
