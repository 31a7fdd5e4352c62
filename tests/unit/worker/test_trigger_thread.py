"""A trigger of a program's own: what it asks for, and that its mistakes end nothing."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from handler.model.backoff import Backoff
from handler.model.event import Job
from handler.model.run_trigger import AskingWatch
from handler.worker.trigger_thread import NamedTrigger, TriggerThread
from tests.patience import PATIENCE, until

AT_ONCE = Backoff(0.0, 0.0)
TARGETS = ("infra", "shop")
Ask = Callable[[str], None]


@contextmanager
def begun(watch: AskingWatch, take: Callable[[Job], None] = lambda _: None, pauses: Backoff = AT_ONCE) -> Iterator[None]:
    """A thread that has the trigger ask; it is gone after the block."""
    before = set(threading.enumerate())
    thread = TriggerThread(NamedTrigger("spool", watch), TARGETS, take, pauses)
    thread.start()
    started = set(threading.enumerate()) - before
    try:
        yield
    finally:
        thread.stop()
        for each in started:
            each.join(PATIENCE)
            assert not each.is_alive()


def test_what_it_asks_for_is_a_run_that_reports_call_by_its_name() -> None:
    jobs: list[Job] = []

    def watch(targets: tuple[str, ...], ask: Ask, stop: threading.Event) -> None:
        ask(targets[1])
        stop.wait()

    with begun(watch, jobs.append):
        until(lambda: jobs)
    (job,) = jobs
    assert (job.target, job.trigger, job.cause, job.acts, job.drift) == ("shop", "spool", "spool", (), False)
    assert job.asked > 0, "an older look at the git host isn't enough"


def cancelled() -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize("ends", [lambda: 1 / 0, sys.exit, cancelled, lambda: None], ids=["raises", "exits", "is cancelled", "returns"])
def test_one_that_ends_is_logged_and_begun_again(ends: Callable[[], object], caplog: pytest.LogCaptureFixture) -> None:
    jobs: list[Job] = []
    calls: list[int] = []

    def watch(_targets: tuple[str, ...], ask: Ask, stop: threading.Event) -> None:
        calls.append(1)
        if len(calls) < 3:
            ends()
            return
        ask("shop")
        stop.wait()

    with caplog.at_level(logging.WARNING, "anneal.trigger"), begun(watch, jobs.append):
        until(lambda: jobs)
    lines = [(each.getMessage(), each.__dict__["fields"]["trigger"]) for each in caplog.records]
    assert len(lines) == 2, "that it was stopped is no mistake"
    assert all("is begun again" in message and name == "spool" for message, name in lines)


def test_a_name_that_is_no_target_is_refused_with_those_that_are(caplog: pytest.LogCaptureFixture) -> None:
    jobs: list[Job] = []

    def watch(_targets: tuple[str, ...], ask: Ask, _stop: threading.Event) -> None:
        ask("shpo")

    with caplog.at_level(logging.ERROR, "anneal.trigger"), begun(watch, jobs.append, Backoff(PATIENCE, PATIENCE)):
        until(lambda: caplog.records)
    assert jobs == []
    assert "'shpo' is no target of this process; its targets are infra, shop" in str(caplog.records[0].exc_info)


def test_the_pause_grows_until_it_has_asked_again() -> None:
    pauses: list[int] = []

    class Counted(Backoff):
        def after(self, failures: int) -> float:
            pauses.append(failures)
            return 0.0

    def watch(_targets: tuple[str, ...], ask: Ask, stop: threading.Event) -> None:
        if len(pauses) == 3:
            ask("shop")
        elif len(pauses) >= 5:
            stop.wait()

    with begun(watch, pauses=Counted(0.0, 0.0)):
        until(lambda: len(pauses) >= 5)
    assert pauses[:5] == [1, 2, 3, 0, 1]
