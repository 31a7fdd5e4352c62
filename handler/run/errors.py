"""What a run meets that is nothing of its target's."""

from __future__ import annotations

from handler.model.errors import SenderError


class RequestRefused(SenderError):
    """What was asked of a target by name can't be done: a commit it never ran, an approval of what isn't held. It stands as before."""

    code = "request-refused"
