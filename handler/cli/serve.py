"""`anneal serve` and `anneal work`: they hand the configuration to the supervisor, and what its worker runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from handler.cli.engine import engine
from handler.cli.session import Session
from handler.worker.supervisor import Program, work_alone
from handler.worker.supervisor import serve as supervised


def serve(session: Session, bind: str, access_log: bool, max_requests: int) -> int:
    """Serve webhooks and run targets until SIGTERM: one web process, one worker process, one supervisor."""
    web = {"ANNEAL_ACCESS_LOG": "1" if access_log else "", "ANNEAL_MAX_REQUESTS": str(max_requests)}
    return supervised(session.path, bind, engine(session), web, Program(session.read, _door(session)))


def _door(session: Session) -> Callable[[Mapping[str, str]], int] | None:
    """Return the web process of a program of its own: a fork of it, for a fresh interpreter knows only our triggers."""
    if session.added is None:
        return None
    from handler.web import __main__ as door
    from handler.web.app import Routes

    routes = Routes(triggers=session.added.triggers)
    return lambda environ: door.main(environ, session.read, routes)


def work(session: Session) -> int:
    """Run what waits in the queue until SIGTERM, and the schedule: a worker without the web process."""
    return work_alone(session.path, engine(session), Program(session.read))
