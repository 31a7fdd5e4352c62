"""`anneal work`: a worker without a door, for the queue that several containers share."""

from __future__ import annotations

from handler.cli.engine import engine
from handler.cli.session import Session
from handler.worker.supervisor import Program, work_alone


def work(session: Session) -> int:
    """Run what waits in the queue until SIGTERM, and the schedule: a worker without the web process."""
    return work_alone(session.path, engine(session), Program(session.read))
