"""Questions to the worker that take long: they have their own patience, and few are asked at once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from handler.model.errors import WorkerUnavailable
from handler.queues import outbox as outboxes
from handler.queues.inbox import Inbox
from handler.queues.outbox import Outbox
from tests.patience import PATIENCE


@pytest.fixture
def slow(path: Path) -> Any:
    """A worker that answers only once it is let go; how many questions it has."""
    held, begun = threading.Event(), threading.Semaphore(0)

    def answer(message: dict[str, Any]) -> dict[str, Any]:
        if message.get("ask") != "targets":
            begun.release()
            assert held.wait(PATIENCE)
        return {"asked": message.get("ask")}

    inbox = Inbox(path, lambda _work: {}, answer)
    inbox.start()
    yield held, begun
    held.set()
    inbox.stop()


def test_a_plan_is_waited_for_longer_than_a_record(path: Path, slow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    held, begun = slow
    monkeypatch.setattr(outboxes, "READ_TIMEOUT", 0.05)
    outbox, answers = Outbox(path), list[dict[str, Any]]()
    asking = threading.Thread(target=lambda: answers.append(outbox.ask("gap", name="shop")))
    asking.start()
    assert begun.acquire(timeout=PATIENCE)
    with pytest.raises(WorkerUnavailable, match="doesn't answer"):
        outbox.ask("run", run="x")
    held.set()
    asking.join(PATIENCE)
    assert answers == [{"taken": True, "asked": "gap"}]
    outbox.close(0.0)
