"""`anneal serve` and `anneal work`: they hand the configuration to the supervisor, and what its worker runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from handler.cli.session import Session
from handler.worker.supervisor import Program, work_alone
from handler.worker.supervisor import serve as supervised

if TYPE_CHECKING:
    from handler.worker.worker import Engine


def serve(session: Session, bind: str, access_log: bool, max_requests: int) -> int:
    """Serve webhooks and run targets until SIGTERM: one web process, one worker process, one supervisor."""
    web = {"ANNEAL_ACCESS_LOG": "1" if access_log else "", "ANNEAL_MAX_REQUESTS": str(max_requests)}
    return supervised(session.path, bind, lambda: worker_engine(session), web, Program(session.read, _door(session)))


def worker_engine(session: Session) -> Engine:
    """Return what the worker process is made of; nothing of it is loaded before, so that the supervisor stays small."""
    from handler.cli.engine import engine

    return engine(session)


def _door(session: Session) -> Callable[[Mapping[str, str]], int] | None:
    """Return the web process of a program of its own: a fork of it, for a fresh interpreter knows only our triggers."""
    if session.added is None:
        return None

    def serve_door(environ: Mapping[str, str]) -> int:
        from handler.web import __main__ as door
        from handler.web.app import Routes

        return door.main(environ, session.read, lambda: Routes(triggers=session.triggers))

    return serve_door


def work(session: Session) -> int:
    """Run what waits in the queue until SIGTERM, and the schedule: a worker without the web process."""
    return work_alone(session.path, lambda: worker_engine(session), Program(session.read))
