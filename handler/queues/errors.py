"""What goes wrong with a queue: it can't be reached now, or it isn't what we need."""

from __future__ import annotations

from handler.model.errors import OperatorError, SenderError


class QueueUnavailable(SenderError):
    """The queue takes or gives nothing now; the text says why. A delivery is answered 503: send it again."""

    code = "queue-unavailable"
    status = 503


class QueueInvalid(OperatorError):
    """No queue is configured, or the one that is has no dead-letter queue."""

    code = "queue-invalid"
