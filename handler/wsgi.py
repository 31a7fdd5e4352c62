"""The web process: `python -m handler.wsgi` is gunicorn with our settings, started by the supervisor with an open socket.

It imports no kubernetes, dulwich or renderer: what it does is verify, match, enqueue, answer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication

from handler import log
from handler.config.load import load
from handler.config.secrets import resolve_all
from handler.model.errors import AnnealError
from handler.queues.outbox import Outbox
from handler.web.app import create_app
from handler.web.server import SETTINGS


def application(environ: Mapping[str, str]) -> tuple[Flask, Outbox]:
    """Make the WSGI application and the outbox it fills, in the process that serves it: the outbox has a thread.

    `environ`: ANNEAL_CONFIG names the configuration, ANNEAL_SOCKET the worker's socket; secrets are found there, too.
    Raises ConfigInvalid, SecretUnavailable.
    """
    settings = load(Path(environ["ANNEAL_CONFIG"]))
    secrets = resolve_all(settings, environ)
    log.configure(secrets.mask)
    outbox = Outbox(Path(environ["ANNEAL_SOCKET"]))
    return create_app(settings, secrets, outbox, outbox.ready), outbox


class Door(BaseApplication):
    """Gunicorn serving the door on a socket that is open already."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._outbox: Outbox | None = None
        super().__init__()

    def load_config(self) -> None:
        """Take our settings; no file and no command line changes them."""
        for key, value in SETTINGS.items():
            self.cfg.set(key, value)
        self.cfg.set("bind", f"fd://{self._environ['ANNEAL_LISTEN']}")
        self.cfg.set("worker_exit", self._exit)

    def load(self) -> Any:  # Flask's and gunicorn's types spell start_response differently
        """Make the application; called once in gunicorn's worker, after its fork."""
        app, self._outbox = application(self._environ)
        return app

    def _exit(self, _arbiter: Any, _worker: Any) -> None:
        if self._outbox is not None:
            self._outbox.close()


def main() -> int:
    """Serve until SIGTERM; return the exit status."""
    try:
        settings = load(Path(os.environ["ANNEAL_CONFIG"]))
        log.configure(resolve_all(settings, os.environ).mask)
    except AnnealError as error:
        sys.stderr.write(f"{error}\n")
        return 64
    Door(os.environ).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
