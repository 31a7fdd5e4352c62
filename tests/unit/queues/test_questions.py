"""Questions to the worker: how many at once, and whom they may hold up."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from handler.model.errors import WorkerUnavailable
from handler.queues import wire
from handler.queues.inbox import Inbox
from handler.queues.outbox import AT_ONCE, SCRAPES, Outbox

PATIENCE = 60.0


def test_who_comes_together_is_not_turned_away(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "worker.sock", lambda _work: {})  # it listens, and hasn't begun to accept
    connections = [wire.connect(tmp_path / "worker.sock", PATIENCE) for _ in range(AT_ONCE + SCRAPES + 2)]
    for connection in connections:
        connection.close()
    inbox.start()
    inbox.stop()


def test_readers_of_hung_clusters_take_no_place_from_a_scrape(tmp_path: Path) -> None:
    asked, answer = threading.Semaphore(0), threading.Event()

    def answered(message: dict[str, Any]) -> dict[str, Any]:
        if message.get("ask") == "targets":
            asked.release()
            assert answer.wait(PATIENCE)
        return {"text": str(message.get("ask"))}

    inbox = Inbox(tmp_path / "worker.sock", lambda _work: {}, answered)
    inbox.start()
    outbox = Outbox(tmp_path / "worker.sock")
    readers = [threading.Thread(target=outbox.ask, args=("targets",)) for _ in range(AT_ONCE)]
    for reader in readers:
        reader.start()
    try:
        for _ in readers:
            assert asked.acquire(timeout=PATIENCE)
        with pytest.raises(WorkerUnavailable, match="8 questions are open already"):
            outbox.ask("run")
        assert outbox.ask("metrics")["text"] == "metrics"
    finally:
        answer.set()
        for reader in readers:
            reader.join(PATIENCE)
        outbox.close()
        inbox.stop()
