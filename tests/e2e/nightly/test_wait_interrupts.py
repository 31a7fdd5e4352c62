"""A wait of minutes on the real cluster: what ends it, what outlives the process, and what a function makes of it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from handler.config.settings import Wait
from handler.engine.waits import interrupts
from handler.model.event import Job
from handler.model.names import run_id
from handler.model.queue_view import ALONE
from handler.model.result import Outcome, Result
from handler.queues.inline import Inline
from handler.queues.pending import Work
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map
from tests.e2e.one_target import Shop, told
from tests.e2e.rollback_commits import deployed, good
from tests.e2e.rollback_commits import hanging as endless
from tests.patience import PATIENCE

LONG = Wait(timeout=600.0, progress_timeout=600.0)


class Noticed:
    """A `Meanwhile` that notes when its run waits."""

    def __init__(self) -> None:
        self.waits = threading.Event()

    asked = staticmethod(ALONE.asked)

    @contextmanager
    def resting(self) -> Iterator[float]:
        with ALONE.resting() as patience:
            self.waits.set()
            yield patience


@pytest.fixture
def hanging(open_shop: Open, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A shop whose head never becomes healthy, and is waited for; what the clock alone would find is never looked for."""
    monkeypatch.setattr(interrupts, "HEAD_EVERY", 1e9)
    shop = open_shop(wait=LONG)
    deployed(shop)
    shop.push(*endless(shop))
    return shop


@contextmanager
def working(shop: Shop) -> Iterator[tuple[Inline, queue.Queue[Result]]]:
    """A queue of one thread, and the ends of its runs."""
    stop, ended = threading.Event(), queue.Queue[Result]()

    def run(work: Work) -> None:
        ended.put(shop.handler.run(work.begun(), stop, inline.place(work.job.target)))

    inline = Inline(run, threads=1)
    inline.start()
    try:
        yield inline, ended
    finally:
        stop.set()
        assert not inline.stop(PATIENCE)


def rests(inline: Inline, target: str) -> None:
    """Return once a run of this target rests."""
    with inline._changed:
        assert inline._changed.wait_for(lambda: target in inline._resting, PATIENCE)


def test_a_new_push_ends_a_hanging_wait_and_is_applied_at_once(hanging: Shop) -> None:
    shop, old = hanging, hanging.head
    with working(shop) as (inline, ended):
        inline.put(Job(shop.name, "push", hint=old))
        rests(inline, shop.name)
        inline.put(Job(shop.name, "push", hint=old))  # the same delivery again ends nothing
        mended = shop.push(*good(shop))
        inline.put(Job(shop.name, "push", hint=mended))
        first, second = ended.get(timeout=PATIENCE), ended.get(timeout=PATIENCE)
    assert (first.outcome, first.commit, first.again) == (Outcome.SUPERSEDED, old, None), told(first)
    assert (second.outcome, second.commit) == (Outcome.APPLIED, mended), told(second)
    shop.assert_converged(mended)
    assert [(run.outcome, run.commit) for run in shop.state().history[:2]] == [("applied", mended), ("superseded", old)]


def test_a_rollback_by_hand_ends_a_hanging_wait_whose_worker_slot_was_released(hanging: Shop) -> None:
    shop = hanging
    old = shop.state().commit
    with working(shop) as (inline, ended):
        inline.put(Job(shop.name, "push"))
        rests(inline, shop.name)
        inline.put(Job("nobody", "push"))  # the only thread isn't held up
        assert ended.get(timeout=PATIENCE).target == "nobody"
        inline.put(Job(shop.name, "replay", rollback=True, actor="ann"))
        first, second = ended.get(timeout=PATIENCE), ended.get(timeout=PATIENCE)
    assert first.outcome is Outcome.WAITING, told(first)
    assert (second.outcome, second.commit) == (Outcome.APPLIED, old), told(second)
    assert [(run.outcome, run.commit) for run in shop.state().history[:2]] == [("applied", old), ("superseded", shop.head)]
    shop.documents = tuple(good(shop))
    shop.assert_converged(old)


def test_a_mistaken_rollback_is_refused_and_the_wait_that_it_ended_goes_on(hanging: Shop) -> None:
    shop = hanging
    with working(shop) as (inline, ended):
        inline.put(Job(shop.name, "push"))
        rests(inline, shop.name)
        inline.put(Job(shop.name, "replay", commit="0123456789" * 4, rollback=True, actor="ann"))
        first, second = ended.get(timeout=PATIENCE), ended.get(timeout=PATIENCE)
        assert (first.outcome, second.outcome) == (Outcome.WAITING, Outcome.REFUSED), told(second)
        assert second.again
        inline.put(second.again)
        rests(inline, shop.name)
        state = shop.state()
    assert state.attempt
    assert (state.attempt.commit, state.status.phase, state.pin) == (shop.head, "waiting", None)
    assert "superseded" not in [run.outcome for run in state.history]


def test_a_request_on_the_lease_ends_the_wait_and_is_run_by_the_lease_holder(open_shop: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "HEAD_EVERY", 1e9)
    shop = open_shop(lease=9.0, wait=LONG)
    old = deployed(shop)
    shop.push(*endless(shop))
    around, stop = Noticed(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(shop.handler.run, shop.job(), stop, around)
        try:
            assert around.waits.wait(PATIENCE)
            other = shop.handler_at(shop.kubectl.kubeconfig)
            asked = other.run(shop.job("oneoff", rollback=True, actor="ann"))
            result = waiting.result(PATIENCE)
        finally:
            stop.set()
    assert {result.outcome, asked.outcome} <= {Outcome.APPLIED, Outcome.UNCHANGED, Outcome.BUSY, Outcome.SUPERSEDED}, told(result)
    assert "superseded" in [run.outcome for run in shop.state().history]
    shop.documents = tuple(good(shop))
    shop.assert_converged(old)


def test_a_run_that_is_superseded_and_goes_on_ends_under_its_id_with_what_it_went_on_to(
    open_shop: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Result and record say the same of the id that was announced; what was superseded has an entry of its own."""
    monkeypatch.setattr(interrupts, "HEAD_EVERY", 1e9)
    shop = open_shop(lease=9.0, wait=LONG)
    deployed(shop)
    old, announced = shop.push(*endless(shop)), run_id(shop.name)
    around, stop = Noticed(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(shop.handler.run, shop.job(run=announced, actor="ann"), stop, around)
        try:
            assert around.waits.wait(PATIENCE)
            new = shop.push(*good(shop), config_map(shop.name, "more"))
            assert shop.handler_at(shop.kubectl.kubeconfig).lock(shop.target).request()
            result = waiting.result(PATIENCE)
        finally:
            stop.set()
    assert (result.outcome, result.commit, result.run) == (Outcome.APPLIED, new, announced), told(result)
    first, second, *_ = shop.state().history
    assert (first.id, first.outcome, first.commit, first.actor) == (announced, "applied", new, "ann")
    assert (second.id, second.outcome, second.commit) == (f"{announced}-1", "superseded", old)
