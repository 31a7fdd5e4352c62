"""Requests of a run end by its deadline, and a cluster that doesn't answer is given up soon."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from handler.model import deadline
from handler.model.errors import GitUnavailable
from handler.model.event import Job
from handler.model.result import Outcome
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.engine import ONE, cluster, engine, pushed, state_of
from tests.fakes.git_host import GitHost


class Seen:
    """What was asked of the cluster, and how long each answer was waited for."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __call__(self, call: Call, do: Callable[[], Reply]) -> Reply:
        self.calls.append(call)
        return do()


def test_requests_of_a_run_end_by_its_deadline() -> None:
    seen, host = Seen(), GitHost()
    pushed(host)
    handler = engine(cluster(), host, way=seen)
    with deadline.until(time.monotonic() - 1.0):
        assert handler.run(Job("shop", "tick")).outcome is Outcome.APPLIED
    here = [call for call in seen.calls if call.asked.method in ("GET", "PATCH", "POST")]
    assert len(here) > 5
    assert {call.silence for call in here} == {deadline.LEAST}


def test_a_fetch_cut_short_by_the_deadline_is_no_failed_run(monkeypatch: pytest.MonkeyPatch) -> None:
    host = GitHost()
    pushed(host)
    handler, stop = engine(cluster(), host), threading.Event()
    handler.run(Job("shop", "tick"))
    pushed(host, "2")

    def away(*_: object) -> None:
        stop.set()
        raise GitUnavailable.of("repository", "took longer than 3 s")

    monkeypatch.setattr(handler.dependencies("shop").preparer.source, "fetch", away)
    before = state_of(handler)
    ended = handler.run(Job("shop", "replay", run="shop.asked", actor="ann"), stop)
    assert (ended.outcome, ended.code) == (Outcome.BUSY, "stopping")
    assert state_of(handler) == before


@pytest.mark.parametrize(("notes", "silence"), [(True, 5.0), (False, 60.0)], ids=["of a queue", "alone"])
def test_where_others_wait_for_the_worker_a_silent_cluster_is_given_up_soon(notes: bool, silence: float) -> None:
    seen, host = Seen(), GitHost()
    pushed(host)
    engine(cluster(), host, ONE, notes=notes, way=seen).run(Job("shop", "tick"))
    first = seen.calls[0]
    assert first.asked.path.endswith("/configmaps/anneal-shop")
    assert first.silence == silence
