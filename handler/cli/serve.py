"""`anneal serve`: hands the configuration to the supervisor, and what its worker runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import click

from handler.cli.engine import engine
from handler.cli.options import command
from handler.cli.session import Session
from handler.serve.supervise import Program
from handler.serve.supervise import serve as supervised
from handler.web.defaults import BIND, MAX_REQUESTS


@command()
@click.option("--bind", metavar="HOST:PORT", default=BIND, show_default=True, envvar="ANNEAL_BIND", help="Where to listen [ANNEAL_BIND].")
@click.option("--access-log/--no-access-log", envvar="ANNEAL_ACCESS_LOG", help="Log a line of every request [ANNEAL_ACCESS_LOG].")
@click.option(
    "--max-requests",
    metavar="NUMBER",
    type=click.IntRange(min=0),
    default=MAX_REQUESTS,
    show_default=True,
    envvar="ANNEAL_MAX_REQUESTS",
    help="Replace the web process after about so many; 0: never [ANNEAL_MAX_REQUESTS].",
)
def serve(session: Session, bind: str, access_log: bool, max_requests: int) -> int:
    """Serve webhooks and run targets until SIGTERM: one web process, one worker process, one supervisor.

    With a queue (`queue.sqs.url`, or ANNEAL_QUEUE_URL) what arrives waits there, and any worker on the same queue runs it.
    """
    web = {"ANNEAL_ACCESS_LOG": "1" if access_log else "", "ANNEAL_MAX_REQUESTS": str(max_requests)}
    return supervised(session.path, bind, engine(session), web, Program(session.read, _door(session)))


def _door(session: Session) -> Callable[[Mapping[str, str]], int] | None:
    """Return the web process of a program of its own: a fork of it, for a fresh interpreter knows only our triggers."""
    if session.added is None:
        return None
    from handler.web import __main__ as door  # noqa: PLC0415 - only a program of its own needs the web process's parts here
    from handler.web.app import Routes  # noqa: PLC0415 - the same

    routes = Routes(triggers=session.added.triggers)
    return lambda environ: door.main(environ, session.read, routes)
