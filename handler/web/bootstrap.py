"""What receives webhooks, put together in the process that serves it. It imports no kubernetes, dulwich or renderer."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from flask import Flask

from handler import __version__
from handler.app import log
from handler.app.external_services import fetcher
from handler.app.run_events import SETTLE, RunEvents
from handler.config.load import load
from handler.config.secret_rotation import Rotation
from handler.config.secrets import DOOR
from handler.config.settings import Settings
from handler.feedback.exposition import Exposition
from handler.feedback.prometheus import DoorMetrics
from handler.queues import Queue
from handler.queues.outbox import Outbox
from handler.queues.sqs import SqsQueue, queue_url
from handler.web.access_log import OTHER
from handler.web.app import Routes, create_app
from handler.web.connection_limits import FrontLimits
from handler.web.status_api import WorkerLink, exposed

EVENTS = "anneal.events"  # the extension of the application that holds its `RunEvents`
FRONT = "anneal"  # the extension of the application that holds its `FrontLimits`


def application(environ: Mapping[str, str], read: Callable[[Path], Settings] = load, routes: Routes = Routes()) -> tuple[Flask, Outbox]:  # noqa: B008 - frozen
    """Make the application and the outbox it fills, in the process that serves it: the outbox has a thread.

    With a queue that is shared with others what is asked for goes there; the worker beside us is still asked how things stand.

    `environ`: ANNEAL_CONFIG names the configuration, ANNEAL_SOCKET the worker's socket, ANNEAL_METRICS_LISTEN the file descriptor of a
    listener for metrics, if there is one; secrets are found there, too. `read`: how the configuration is read.
    Raises ConfigInvalid, SecretUnavailable.
    """
    settings = read(Path(environ["ANNEAL_CONFIG"]))
    secrets = Rotation(settings, environ, needs=DOOR, fetch=fetcher(environ))
    log.configure()
    outbox = Outbox(Path(environ["ANNEAL_SOCKET"]))
    events = RunEvents()
    settle = partial(events.drained, SETTLE, "door")
    metrics: DoorMetrics = events.add("door", __version__, lambda: outbox.waiting, lambda: outbox.kept, settle)
    events.add("log")
    if listener := environ.get("ANNEAL_METRICS_LISTEN"):
        Exposition(socket.socket(fileno=os.dup(int(listener))), lambda: exposed(metrics, outbox.ask)).start()
    url = queue_url(settings, environ)
    queue: Queue = SqsQueue(url) if url else outbox
    worker, most = WorkerLink(outbox.ask, outbox.waits, sees=not url), settings.webhooks.max_body
    app = create_app(settings, secrets, queue, outbox.ready, worker=worker, metrics=metrics, events=events, routes=routes)
    app.extensions[EVENTS] = events
    app.extensions[FRONT] = FrontLimits(
        settings.webhooks.trusted_proxies, most, partial(metrics.request, OTHER), streams=settings.page is not None
    )
    return app, outbox
