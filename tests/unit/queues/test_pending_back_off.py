"""Delayed requests come back: once, in time, or along with a newer one. And how old a look at the host may be that serves a job."""

from __future__ import annotations

import math

import pytest

from handler.model.event import Delivery, Job
from handler.queues.pending import Pending, Work


def push(hint: str, target: str = "shop") -> Work:
    return Work.of(Job(target, "push", hint=hint, deliveries=(Delivery(hint, "github", "refs/heads/main", hint, "ann", ""),)))


def test_delayed_work_that_is_due_comes_back_once() -> None:
    pending, work = Pending(), push("a")
    assert pending.delay(work, 5.0) is work
    assert (pending.next_due(), pending.due(4.9)) == (5.0, ())
    assert pending.due(5.0) == (work,)
    assert (pending.next_due(), pending.due(9.0)) == (math.inf, ())


def test_a_newer_push_takes_delayed_work_along_under_the_older_id() -> None:
    pending, old, new = Pending(), push("a").again().again(), push("b")
    pending.delay(old, 5.0)
    joined = pending.accept(new)
    assert (joined.run, joined.runs, joined.job.hint, joined.job.looks) == (old.run, (old.run, new.run), "b", 0)
    assert [delivery.id for delivery in joined.job.deliveries] == ["a", "b"]
    assert pending.due(9.0) == ()
    assert pending.take() is joined
    assert pending.accept(new) is new


@pytest.mark.parametrize(
    "job", [Job("shop", "tick"), Job("shop", "replay"), Job("shop", "replay", force=True), Job("shop", "drift")], ids=str
)
def test_a_request_without_a_commit_leaves_delayed_work_and_spends_no_look(job: Job) -> None:
    pending, late, work = Pending(), push("a").again(), Work.of(job)
    pending.delay(late, 5.0)
    assert pending.accept(work) is work
    assert pending.due(5.0) == (late,)


def test_delayed_work_is_one_a_target_and_coalesced() -> None:
    pending, first, second, other = Pending(), push("a"), push("b"), push("c", "web")
    pending.delay(first, 1.0)
    pending.delay(second, 2.0)
    pending.delay(other, 3.0)
    (both,) = pending.due(2.0)
    assert both.runs == (first.run, second.run)
    assert pending.due(3.0) == (other,)


def test_a_job_accepts_a_look_at_the_head_from_the_time_it_was_asked() -> None:
    tick, drift = Job("shop", "tick", asked=100.0), Job("shop", "drift", asked=100.0)
    pushed = Job("shop", "push", hint="a", asked=90.0)
    assert (tick.since(10.0), drift.since(10.0), pushed.since(10.0)) == (90.0, 90.0, 90.0)
    assert Job("shop", "replay", asked=100.0).since(10.0) == 100.0
    assert Job("shop", "tick").since(10.0) == math.inf, "whoever didn't say when he asked has the host asked"
    assert pushed.merged(tick).since(10.0) == 100.0, "a tick that takes a push along is as strict as the push"
    assert push("a").job.merged(tick).since(10.0) == math.inf
