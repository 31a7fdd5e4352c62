"""What is kept is asked about in pages, and a target that can't be read holds up no other."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from handler.model.event import Job
from handler.queues import message as codec
from handler.queues import outbox as outboxes
from handler.queues.inbox import Inbox
from handler.queues.outbox import Outbox
from handler.queues.pending import Work
from tests.patience import PATIENCE, until

pytestmark = pytest.mark.slow


class Lives:
    """A worker that dies and comes back under another name; it can't read the records of `hung`."""

    def __init__(self) -> None:
        self.boot = "one"
        self.taken: set[str] = set()
        self.over = False
        self.asked: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def accept(self, work: Work) -> dict[str, Any]:
        with self._lock:
            self.taken.add(work.run)
            return {"run": work.run, "boot": self.boot}

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self.asked.append(message)
            if message["ask"] == "ends":
                known = {run: (run, self.over) for run in message["requests"] if run in self.taken}
                return {"boot": self.boot, "known": known}
        work = codec.read(message["work"])
        return {"trouble": {"code": "cluster-unavailable"}} if work.job.target == "hung" else self.accept(work)

    def die(self) -> None:
        with self._lock:
            self.boot, self.taken = "two", set()

    def again(self) -> list[str]:
        return [codec.read(message["work"]).job.target for message in list(self.asked) if message["ask"] == "again"]


def test_a_target_that_cant_be_read_is_left_alone_for_a_while(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lives, now = Lives(), [0.0]
    monkeypatch.setattr(outboxes, "time", SimpleNamespace(monotonic=lambda: now[0]))
    inbox, outbox = Inbox(path, lives.accept, lives.answer), Outbox(path)
    inbox.start()
    for target in (*["hung"] * 6, "good"):
        outbox.put(Job(target, "replay", approve=str(outbox.kept), actor="boss"))
    until(lambda: len(lives.taken) == 7)
    lives.die()
    until(lambda: "good" in lives.again())
    assert lives.again() == ["hung", "good"]
    now[0] += outboxes.LATER.longest
    until(lambda: lives.again().count("hung") > 1)
    assert outbox.kept == 7
    assert outbox.close(PATIENCE)
    inbox.stop()


def test_the_ends_of_many_are_asked_for_in_pages(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outboxes, "PAGE", 2)
    lives = Lives()
    inbox, outbox = Inbox(path, lives.accept, lives.answer), Outbox(path)
    for number in range(5):
        outbox.put(Job("shop", "replay", commit=str(number), actor="boss"))
    inbox.start()
    until(lambda: len(lives.taken) == 5)
    lives.over = True
    until(lambda: outbox.kept == 0)
    assert max(len(message["requests"]) for message in lives.asked) == 2
    assert outbox.close(PATIENCE)
    inbox.stop()
