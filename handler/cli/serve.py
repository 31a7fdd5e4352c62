"""`anneal serve`: hands the configuration to the supervisor, and composes what its worker runs."""

from __future__ import annotations

import os

import click

from handler import log
from handler.build import Handler, Options
from handler.cli.options import command
from handler.cli.session import Session
from handler.config.rotation import Rotation
from handler.config.settings import Settings
from handler.reading import Reader
from handler.render import Sandbox
from handler.stores import fetcher
from handler.supervise import serve as supervised
from handler.survey import Survey
from handler.web.defaults import BIND, MAX_REQUESTS
from handler.worker import Engine, Parts


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
    """Serve webhooks and run targets until SIGTERM: one web process, one worker process, one supervisor."""
    sandbox = Sandbox()

    def build(settings: Settings) -> Parts:
        options = Options(session.kubeconfig, session.context)
        secrets = Rotation(settings, os.environ, fetch=fetcher(settings, os.environ))
        log.configure(secrets.mask)  # the supervisor's, which we have from the fork, knows no rotated value
        handler = Handler(settings, secrets, sandbox, os.environ, options)
        reader, survey = Reader(settings, handler.records, secrets.mask), Survey(settings, handler)
        return Parts(handler.run, reader, handler.requests, secrets.mask, survey.look)

    web = {"ANNEAL_ACCESS_LOG": "1" if access_log else "", "ANNEAL_MAX_REQUESTS": str(max_requests)}
    return supervised(session.path, bind, Engine(sandbox.start, build), web)
