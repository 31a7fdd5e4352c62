"""Requests that come back: once, in time, or along with a newer one. And how old a look at the host may be that serves a job."""

from __future__ import annotations

import math

import pytest

from handler.model.event import Delivery, Job
from handler.queues.delayed import DelayedWork
from handler.queues.pending import Work


def push(hint: str, target: str = "shop") -> Work:
    return Work.of(Job(target, "push", hint=hint, deliveries=(Delivery(hint, "github", "refs/heads/main", hint, "ann", ""),)))


def test_what_is_due_comes_back_once() -> None:
    deferred, work = DelayedWork(), push("a")
    assert deferred.put(work, 5.0) is work
    assert (deferred.next(), deferred.due(4.9)) == (5.0, ())
    assert deferred.due(5.0) == (work,)
    assert (deferred.next(), deferred.due(9.0)) == (math.inf, ())


def test_a_newer_request_takes_it_along_under_the_older_id() -> None:
    deferred, old, new = DelayedWork(), push("a").again().again(), push("b")
    deferred.put(old, 5.0)
    joined = deferred.joined(new)
    assert (joined.run, joined.runs, joined.job.hint, joined.job.looks) == (old.run, (old.run, new.run), "b", 0)
    assert [delivery.id for delivery in joined.job.deliveries] == ["a", "b"]
    assert deferred.due(9.0) == ()
    assert deferred.joined(new) is new


@pytest.mark.parametrize(
    "job", [Job("shop", "tick"), Job("shop", "replay"), Job("shop", "replay", force=True), Job("shop", "drift")], ids=str
)
def test_what_names_no_commit_goes_alone_and_spends_no_look(job: Job) -> None:
    deferred, late, work = DelayedWork(), push("a").again(), Work.of(job)
    deferred.put(late, 5.0)
    assert deferred.joined(work) is work
    assert deferred.due(5.0) == (late,)


def test_targets_and_two_requests_of_one_are_kept_apart_and_together() -> None:
    deferred, first, second, other = DelayedWork(), push("a"), push("b"), push("c", "web")
    deferred.put(first, 1.0)
    deferred.put(second, 2.0)
    deferred.put(other, 3.0)
    (both,) = deferred.due(2.0)
    assert both.runs == (first.run, second.run)
    assert deferred.due(3.0) == (other,)


def test_which_look_at_the_host_serves_a_job() -> None:
    tick, drift = Job("shop", "tick", asked=100.0), Job("shop", "drift", asked=100.0)
    pushed = Job("shop", "push", hint="a", asked=90.0)
    assert (tick.since(10.0), drift.since(10.0), pushed.since(10.0)) == (90.0, 90.0, 90.0)
    assert Job("shop", "replay", asked=100.0).since(10.0) == 100.0
    assert Job("shop", "tick").since(10.0) == math.inf, "whoever didn't say when he asked has the host asked"
    assert pushed.merged(tick).since(10.0) == 100.0, "a tick that takes a push along is as strict as the push"
    assert push("a").job.merged(tick).since(10.0) == math.inf
