"""The worker process's end: listens on the Unix-domain socket, puts what arrives into the queue, then acknowledges it."""

from __future__ import annotations

import logging
import socket
import socketserver
import threading
from collections.abc import Callable
from pathlib import Path

from handler.queues import wire
from handler.queues.pending import Work

_LOG = logging.getLogger("anneal.queue")


class Inbox:
    """A listener in a directory that only this user can enter."""

    def __init__(self, path: Path, accept: Callable[[Work], None]) -> None:
        """Bind at once, so that the web process finds it. A socket left by a killed worker is replaced. Raises OSError."""
        path.unlink(missing_ok=True)
        self._server = _Server(path, accept)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, name="inbox", daemon=True)

    def start(self) -> None:
        """Take jobs."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more; open connections end with the process."""
        self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path, accept: Callable[[Work], None]) -> None:
        self.accept = accept
        super().__init__(str(path), _Conversation)


class _Conversation(socketserver.BaseRequestHandler):
    server: _Server
    request: socket.socket

    def handle(self) -> None:
        """Answer frames until the web process hangs up."""
        try:
            while (message := wire.receive(self.request)) is not None:
                if "job" in message:
                    self.server.accept(wire.decode(message))
                wire.send(self.request, {"taken": True})
        except ValueError as error:
            _LOG.warning("a frame was refused", extra={"fields": {"seen": str(error)}})
        except OSError as error:
            _LOG.debug("the web process hung up", extra={"fields": {"seen": str(error)}})
