"""The worker process's end: listens on the Unix-domain socket; jobs go into the queue and are acknowledged, questions are answered."""

from __future__ import annotations

import logging
import socket
import socketserver
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from handler.model.failure_trace import raised
from handler.queues import message as codec
from handler.queues import socket_frames
from handler.queues.pending import Work

_LOG = logging.getLogger("anneal.queue")
Accept = Callable[[Work], dict[str, Any]]
"""Takes a job; returns what is acknowledged. Raises Closed."""
Answer = Callable[[dict[str, Any]], dict[str, Any]]
"""Answers a frame that holds no job. It raises nothing."""


class Closed(Exception):
    """Nothing is taken any more: the web process is hung up on, and keeps what it has for the next worker."""


class Inbox:
    """A listener in a directory that only this user can enter."""

    def __init__(self, path: Path, accept: Accept, answer: Answer = lambda _message: {}) -> None:
        """Bind at once, so that the web process finds it. A socket left by a killed worker is replaced. Raises OSError."""
        path.unlink(missing_ok=True)
        self._server = _Server(path, accept, answer)
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
    request_queue_size = 128  # a Unix-domain socket refuses a connection at once (EAGAIN) when it is full, and five come easily together

    def __init__(self, path: Path, accept: Accept, answer: Answer) -> None:
        self.accept = accept
        self.answer = answer
        super().__init__(str(path), _Conversation)


class _Conversation(socketserver.BaseRequestHandler):
    server: _Server
    request: socket.socket

    def handle(self) -> None:
        """Answer frames until the web process hangs up."""
        try:
            while (message := socket_frames.receive(self.request)) is not None:
                socket_frames.send(self.request, self._answer(message), socket_frames.MAX_ANSWER)
        except ValueError as error:
            _LOG.warning("a frame was refused", extra={"fields": {"seen": str(error)}})
        except (OSError, Closed) as error:
            _LOG.debug("the web process hung up", extra={"fields": {"seen": str(error)}})

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Answer one frame; what can't be taken is refused at once, so that the web process goes on with what stands behind it."""
        try:
            if "job" in message:
                return {"taken": True, **self.server.accept(codec.read(message["job"]))}
            return {"taken": True, **self.server.answer(message)}
        except Closed:
            raise
        except Exception as error:  # noqa: BLE001 - one frame's mistake may not hold up the others
            _LOG.exception("a frame was refused")
            return {"refused": raised(error)}
