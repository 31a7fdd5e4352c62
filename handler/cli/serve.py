"""`anneal serve` and `anneal work`: they hand the configuration to the supervisor, what its worker runs, and what its web process is."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
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

    settings = session.settings  # read once, and first: it decides which file counts
    return supervised(session.path, bind, lambda: worker_engine(session), door, lambda _: settings)


def worker_engine(session: Session) -> Engine:
    """Return what the worker process is made of; nothing of it is loaded before, so that the supervisor stays small."""
    from handler.cli.engine import engine

    return engine(session)


def _serve_door(session: Session, environ: Mapping[str, str]) -> int:
    """Be the web process: a fresh interpreter, without what the command line loads; a program of its own stays the fork, for its parts."""
    if session.added is None and not session.is_beside:  # that file may be another by now than what a person allowed
        ours = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), environ.get("PYTHONPATH"))))
        # -P: a package in the working directory isn't ours
        os.execve(sys.executable, [sys.executable, "-P", "-m", "handler.web"], {**environ, "PYTHONPATH": ours})  # noqa: S606 - no shell
    from handler.web import __main__ as door
    from handler.web.app import Routes

    read = (lambda _: session.settings) if session.is_beside else session.read
    return door.main(environ, read, lambda: Routes(triggers=session.webhooks))


def work(session: Session) -> int:
    """Run what waits in the queue until SIGTERM, and the schedule: a worker without the web process."""
    settings = session.settings
    return work_alone(session.path, lambda: worker_engine(session), lambda _: settings)
