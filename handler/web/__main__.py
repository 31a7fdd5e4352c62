"""The web process: `python -m handler.web` is gunicorn with our settings, on a socket that the supervisor has opened.

What the application needs is imported in gunicorn's worker, after its fork, so that the arbiter stays small.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gunicorn.app.base import BaseApplication

from handler.app import log
from handler.app.external_services import fetcher
from handler.app.run_events import SETTLE, RunEvents
from handler.config.load import load
from handler.config.secrets import DOOR, resolve_all
from handler.config.settings import Settings
from handler.model import prctl
from handler.model.errors import AnnealError
from handler.web.gunicorn_settings import settings

if TYPE_CHECKING:
    from handler.queues.outbox import Outbox
    from handler.web.app import Routes
    from handler.web.connection_limits import FrontLimits

_LOG = logging.getLogger("anneal.queue")


class Door(BaseApplication):
    """Gunicorn serving the door. `environ`: ANNEAL_LISTEN is the socket's file descriptor; the rest is read by `settings`, `bootstrap`."""

    def __init__(
        self, environ: Mapping[str, str], read: Callable[[Path], Settings] = load, routes: Callable[[], Routes] | None = None
    ) -> None:
        self._environ = environ
        self._read = read
        self._routes = routes
        self._outbox: Outbox | None = None
        self._events: RunEvents | None = None
        super().__init__()

    def load_config(self) -> None:
        """Take our settings; no file and no command line changes them."""
        for key, value in settings(self._environ).items():
            self.cfg.set(key, value)
        self.cfg.set("worker_exit", self._exit)

    def load(self) -> Any:  # Flask's and gunicorn's types spell start_response differently
        """Make the application; called once in gunicorn's worker, after its fork."""
        from handler.web.app import Routes
        from handler.web.bootstrap import EVENTS, FRONT, application

        app, self._outbox = application(self._environ, self._read, self._routes() if self._routes else Routes())
        self.front: FrontLimits = app.extensions[FRONT]
        self._events = app.extensions[EVENTS]
        return app

    def idle(self) -> bool:
        """Whether the worker process has all that was answered, and no named request is kept here."""
        return self._outbox is None or not (self._outbox.waiting or self._outbox.kept)

    def _exit(self, _arbiter: Any, _worker: Any) -> None:
        if self._events is not None:
            self._events.close(SETTLE)
        if self._outbox is not None and not self._outbox.close():
            fields = {"targets": self._outbox.waiting}
            _LOG.warning("not all that arrived was handed to a worker; its first look finds what was pushed", extra={"fields": fields})


def main(environ: Mapping[str, str], read: Callable[[Path], Settings] = load, routes: Callable[[], Routes] | None = None) -> int:
    """Serve until SIGTERM; return the exit status. `read` and what `routes` makes: as in `handler.web.bootstrap.application`."""
    prctl.keep_private()
    try:
        known = read(Path(environ["ANNEAL_CONFIG"]))
        log.configure()
        resolve_all(known, environ, needs=DOOR, fetch=fetcher(environ))
    except AnnealError as error:
        sys.stderr.write(f"{error}\n")
        return 64
    Door(environ, read, routes).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ))
