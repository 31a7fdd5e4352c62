"""What a run waits for outside ends by the time that its function has, and a cluster that doesn't answer is given up soon."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import pytest

from handler.cluster.parallel import parallel
from handler.config.secrets import Secret
from handler.functions.batch import RELEASE, SAFETY, Batch
from handler.model import deadline as hurry
from handler.model.errors import GitUnavailable, Problem, RenderFailed, Stopping
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.queues.sqs import Received
from handler.render import Sandbox
from handler.source.git_host import GitHost as Host
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.aws_events import Context, messages
from tests.fakes.engine import ONE, SHOP, cluster, engine, pushed, state_of
from tests.fakes.feedback import AtOnce
from tests.fakes.git_host import GitHost
from tests.fakes.signed_webhooks import Kept

FAR = 1e6


def test_the_deadline_is_the_invocations_less_a_moment() -> None:
    assert hurry.left(60.0) == 60.0
    with hurry.until(time.monotonic() + FAR):
        assert hurry.left(60.0) == 60.0
        with hurry.until(time.monotonic() + 500.0):
            assert hurry.LEAST < hurry.left(FAR) <= 500.0
            assert hurry.left(0.5) == 0.5
        assert hurry.left(60.0) == 60.0
    with hurry.until(time.monotonic() - 1.0):
        assert hurry.left(60.0) == hurry.LEAST


def test_threads_that_do_a_part_of_it_know_the_time_too() -> None:
    with hurry.until(time.monotonic() - 1.0):
        assert parallel([lambda: hurry.left(60.0)] * 3) == [hurry.LEAST] * 3


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
    with hurry.until(time.monotonic() - 1.0):
        assert handler.run(Job("shop", "tick")).outcome is Outcome.APPLIED
    here = [call for call in seen.calls if call.asked.method in ("GET", "PATCH", "POST")]
    assert len(here) > 5
    assert {call.silence for call in here} == {hurry.LEAST}


def test_a_fetch_ends_by_the_deadline() -> None:
    host = Host(SHOP, lambda _reference: Secret(""), mask=str)
    with hurry.until(time.monotonic() - 1.0):
        assert host._operation(lambda deadline: deadline.seconds) == hurry.LEAST


def test_a_render_that_had_less_time_than_it_may_take_is_not_its_authors_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object) -> None:
        raise RenderFailed(Problem("render", "took longer than 1 s"), reason="timeout")

    sandbox = Sandbox()
    monkeypatch.setattr(sandbox, "_run", slow)
    with pytest.raises(RenderFailed):
        sandbox.run("f", {}, (), bytes.decode)
    with hurry.until(time.monotonic() - 1.0), pytest.raises(Stopping):
        sandbox.run("f", {}, (), bytes.decode)


def test_one_that_had_all_its_processor_time_is_however_little_was_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        raise RenderFailed(Problem("render", "needed more processor time than it may have"), reason="cpu")

    sandbox = Sandbox()
    monkeypatch.setattr(sandbox, "_run", busy)
    with hurry.until(time.monotonic() - 1.0), pytest.raises(RenderFailed):
        sandbox.run("f", {}, (), bytes.decode)


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


class Queue(Kept):
    """One that knows nothing of messages."""

    def postpone(self, messages: Sequence[Received], seconds: float) -> None:
        assert messages or seconds


def test_the_deadline_of_a_function_is_its_invocations_less_a_margin() -> None:
    seen: list[float] = []

    def run(job: Job, _stop: threading.Event) -> Result:
        seen.append(hurry.left(FAR))
        return Result(job.target, Outcome.APPLIED, recorded=True)

    assert Batch(Queue(), run, AtOnce("emf", "log"))(messages(Job("shop", "push", run="shop.1")), Context(300.0)) == {
        "batchItemFailures": []
    }
    assert seen[0] <= 300.0 - SAFETY - RELEASE
    assert hurry.left(FAR) == FAR
