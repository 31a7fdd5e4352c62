"""Gunicorn as we run it: one process, its settings, and its messages through our log. `gunicorn_worker` is its worker."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, MutableMapping
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from gunicorn.glogging import Logger

from handler.web import MAX_REQUESTS
from handler.web import access_log as access
from handler.web.gunicorn_worker import POOLS

STOP_SECONDS = 15
"""From SIGTERM to the end, killed if need be: what is being served, then the outbox. The supervisor waits five more."""
IN_MEMORY = "/dev/shm"  # noqa: S108 - not a file of a known name: gunicorn makes a new one there and unlinks it

SETTINGS: dict[str, Any] = {
    "workers": 1,  # one process: its outbox coalesces, its memory is small
    "worker_class": "handler.web.gunicorn_worker.DoorWorker",
    "threads": POOLS[""],
    "worker_connections": sys.maxsize,  # gunicorn would accept none beyond; here the oldest gives way
    "timeout": 60,  # of the process's heartbeat; requests have their own deadlines
    "graceful_timeout": STOP_SECONDS,
    "keepalive": 0,  # one request a connection: nothing idle to hold, nothing unread to misread as a next request
    "limit_request_line": 2048,
    "limit_request_fields": 64,
    "limit_request_field_size": 8190,
    "forwarder_headers": "",  # a client's SCRIPT_NAME would move the path, past what a proxy in front publishes
    "forwarded_allow_ips": "",  # nothing is believed of a proxy, not even on this machine
    "logger_class": "handler.web.gunicorn_settings.DoorLogger",
    "accesslog": None,  # each delivery and replay has a line of its own; `anneal serve --access-log`
    "control_socket_disable": True,
}


def settings(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return gunicorn's settings. `environ`: ANNEAL_LISTEN, ANNEAL_ACCESS_LOG, ANNEAL_MAX_REQUESTS, as the supervisor has set them.

    The heartbeat is a file's time stamp: on a disk that hangs it would stop, and a healthy process be killed, so it is kept in memory
    where the system has such a place.
    """
    most = int(environ.get("ANNEAL_MAX_REQUESTS") or MAX_REQUESTS)
    return SETTINGS | {
        "bind": f"fd://{environ['ANNEAL_LISTEN']}",
        "accesslog": "-" if environ.get("ANNEAL_ACCESS_LOG") else None,
        "max_requests": most,
        "max_requests_jitter": most // 10,  # replicas behind one balancer don't all restart at once
        "worker_tmp_dir": IN_MEMORY if os.access(IN_MEMORY, os.W_OK | os.X_OK) else None,
    }


class DoorLogger(Logger):
    """Gunicorn's messages, through the handlers of `handler.app.log`."""

    def setup(self, cfg: Any) -> None:
        """Attach no handlers of its own."""
        super().setup(cfg)
        for log in (self.error_log, self.access_log):
            log.handlers[:] = []
        self.error_log.propagate = True
        self.error_log.setLevel(logging.WARNING)

    def access(self, resp: Any, req: Any, environ: MutableMapping[str, Any], request_time: timedelta) -> None:  # noqa: ARG002 - gunicorn's signature
        """Log a request that was served, if that is wanted."""
        if self.cfg.accesslog and resp.status:
            route, status = environ.get(access.ROUTE, access.OTHER), int(str(resp.status).split()[0])
            remote = environ.get("REMOTE_ADDR", "")
            if status == HTTPStatus.OK and (stream := getattr(environ.get("gunicorn.socket"), "stream", None)):
                stream.route = route  # its line comes at its end
                return
            access.log(environ["REQUEST_METHOD"], route, status, resp.sent, request_time.total_seconds(), remote)
