"""The entry point of any WSGI server: what receives webhooks, put together. It imports no kubernetes, dulwich or renderer.

`python -m handler.web` serves it with gunicorn.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from flask import Flask

from handler import log
from handler.config.load import load
from handler.config.secrets import resolve_all
from handler.queues.outbox import Outbox
from handler.web.app import create_app


def application(environ: Mapping[str, str]) -> tuple[Flask, Outbox]:
    """Make the application and the outbox it fills, in the process that serves it: the outbox has a thread.

    `environ`: ANNEAL_CONFIG names the configuration, ANNEAL_SOCKET the worker's socket; secrets are found there, too.
    Raises ConfigInvalid, SecretUnavailable.
    """
    settings = load(Path(environ["ANNEAL_CONFIG"]))
    secrets = resolve_all(settings, environ)
    log.configure(secrets.mask)
    outbox = Outbox(Path(environ["ANNEAL_SOCKET"]))
    return create_app(settings, secrets, outbox, outbox.ready), outbox
