"""A worker that serves in a thread of the test's process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from handler.worker.worker import Worker
from tests.patience import PATIENCE


@contextmanager
def serving(worker: Worker, path: Path) -> Iterator[Worker]:
    """Let a worker serve at this socket during the block; it has ended after it."""
    thread = threading.Thread(target=worker.serve, args=(path,))
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()
