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
from handler.worker import Engine, Parts


@command()
@click.option("--bind", metavar="HOST:PORT", default="127.0.0.1:8080", show_default=True, help="Where to listen.")
def serve(session: Session, bind: str) -> int:
    """Serve webhooks and run targets until SIGTERM: one web process, one worker process, one supervisor."""
    sandbox = Sandbox()

    def build(settings: Settings) -> Parts:
        options = Options(session.kubeconfig, session.context)
        secrets = Rotation(settings, os.environ, fetch=fetcher(settings, os.environ))
        log.configure(secrets.mask)  # the supervisor's, which we have from the fork, knows no rotated value
        handler = Handler(settings, secrets, sandbox, os.environ, options)
        return Parts(handler.run, Reader(settings, handler.records, secrets.mask), handler.requests, secrets.mask)

    return supervised(session.path, bind, Engine(sandbox.start, build))
