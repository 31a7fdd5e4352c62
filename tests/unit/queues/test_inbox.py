"""Questions to the worker, which come together."""

from __future__ import annotations

from pathlib import Path

from handler.queues import socket_frames
from handler.queues.inbox import Inbox
from handler.web.gunicorn_worker import THREADS
from tests.patience import PATIENCE


def test_simultaneous_connections_to_the_worker_socket_are_accepted(path: Path) -> None:
    inbox = Inbox(path, lambda _work: {})  # it listens, and hasn't begun to accept
    connections = [socket_frames.connect(path, PATIENCE) for _ in range(2 * THREADS)]
    for connection in connections:
        connection.close()
    inbox.start()
    inbox.stop()
