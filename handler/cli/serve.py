"""`anneal serve` and `anneal work`: they hand the configuration to the supervisor, what its worker runs, and what its web process is."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from handler.cli.session import Session
from handler.worker.supervisor import serve as supervised
from handler.worker.supervisor import work_alone

if TYPE_CHECKING:
    from handler.worker.worker import Engine


def serve(session: Session, bind: str, access_log: bool, max_requests: int) -> int:
    """Serve webhooks and run targets until SIGTERM: one web process, one worker process, one supervisor."""
    asked = {"ANNEAL_ACCESS_LOG": "1" if access_log else "", "ANNEAL_MAX_REQUESTS": str(max_requests)}

    def door(environ: Mapping[str, str]) -> int:
        return _serve_door(session, {**environ, **asked})

    return supervised(session.path, bind, lambda: worker_engine(session), door, session.read)


def worker_engine(session: Session) -> Engine:
    """Return what the worker process is made of; nothing of it is loaded before, so that the supervisor stays small."""
    from handler.cli.engine import engine

    return engine(session)


def _serve_door(session: Session, environ: Mapping[str, str]) -> int:
    """Be the web process: a fresh interpreter, without what the command line loads; a program of its own stays the fork, for its parts."""
    if session.added is None:
        os.execve(sys.executable, [sys.executable, "-m", "handler.web"], environ)  # noqa: S606 - our own module, no shell
    from handler.web import __main__ as door
    from handler.web.app import Routes

    return door.main(environ, session.read, lambda: Routes(triggers=session.webhooks))


def work(session: Session) -> int:
    """Run what waits in the queue until SIGTERM, and the schedule: a worker without the web process."""
    return work_alone(session.path, lambda: worker_engine(session), session.read)
