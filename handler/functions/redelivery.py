"""Messages whose worker fails to start: they come again later and later, up to the queue's own time-out of half an hour.

Law: nothing here needs what may be broken; a queue that can't be reached either leaves a message at its own time-out.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from handler.model.backoff import TRANSIENT
from handler.model.errors import AnnealError
from handler.queues.sqs import URL, Received, SqsQueue

_LOG = logging.getLogger("anneal.queue")
SLOWER = 4  # times the pace of runs that fail: mending a deployment takes minutes, and the last try makes a dead letter


def put_off(event: Any, environ: Mapping[str, str], queue: SqsQueue | None = None) -> None:
    """Let an event's messages come again by the number of their tries. `queue`: theirs; None: the one that ANNEAL_QUEUE_URL names."""
    try:
        received = [Received.of(row) for row in event["Records"]]
        seconds = SLOWER * TRANSIENT.after(max(each.count for each in received))
        (queue or SqsQueue(environ[URL])).postpone(received, seconds)
    except (AnnealError, KeyError, TypeError, ValueError) as error:
        seen = str(error) if isinstance(error, AnnealError) else type(error).__name__
        _LOG.warning("messages aren't postponed", extra={"fields": {"seen": seen}})
    else:
        _LOG.warning("messages come again", extra={"fields": {"messages": [each.id for each in received], "seconds": seconds}})
