"""`anneal work`: a worker without a door, for the queue that several containers share."""

from __future__ import annotations

from handler.cli.engine import engine
from handler.cli.options import command
from handler.cli.session import Session
from handler.serve.supervise import Program, work_alone


@command()
def work(session: Session) -> int:
    """Run what waits in the queue until SIGTERM, and the schedule: a worker without the web process.

    The queue is `queue.sqs.url`, or ANNEAL_QUEUE_URL. Start as many as you like beside `anneal serve` with the same queue: targets
    are shared out among them, each target is worked on by one at a time. What a worker that dies had in hand goes to another one
    after a minute; one that is told to stop gives it back at once. Metrics are at `metrics.bind`, if that is set.
    """
    return work_alone(session.path, engine(session), Program(session.read))
