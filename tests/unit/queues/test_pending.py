"""What waits: plain jobs are coalesced, what was asked by name is done in turn, what is delayed comes back, no answered id is lost."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from handler.model.event import Delivery, Job
from handler.queues.pending import MAX_RUNS, Pending, Work


def pushed(target: str = "shop", hint: str = "") -> Job:
    return Job(target, "push", hint=hint)


def test_a_waiting_job_keeps_its_run_id_when_others_are_merged_into_it() -> None:
    pending = Pending()
    assert pending.accept(Work(pushed(hint="old"), ("1",))).run == "1"
    merged = pending.accept(Work(pushed(hint="new"), ("2",)))
    assert merged == Work(pushed(hint="new"), ("1", "2"))
    assert pending.take() == merged
    assert merged.run == "1"


PUSH = Work(Job("shop", "push", hint="h", actor="ann", deliveries=(Delivery("d", "github", "r", "h", "ann", ""),), asked=1.0), ("p",))
REPLAY = Work(Job("shop", "replay", actor="ops", asked=2.0), ("r",), ("r",))
BOTH = PUSH.merged(REPLAY)


@pytest.mark.parametrize(
    ("known", "left"),
    [
        ((), BOTH),
        (("r",), Work(replace(PUSH.job, asked=2.0), ("p",))),
        (("p",), Work(BOTH.job, ("r",), ("r",))),
        (("p", "r"), None),
    ],
)
def test_requests_of_a_merged_run_known_to_another_leave_the_rest(known: tuple[str, ...], left: Work | None) -> None:
    assert BOTH.without(known) == left


def test_a_delayed_older_push_doesnt_hide_the_newer_one() -> None:
    pending, late, newer = Pending(), Work(pushed(hint="late"), ("1",)), Work(pushed(hint="newer"), ("2",))
    pending.accept(newer)
    assert pending.accept(late, older=True) == late.merged(newer)
    (work,) = drained(pending)
    assert (work.job.hint, work.runs) == ("newer", ("1", "2"))


def test_a_delayed_older_push_goes_before_a_named_request() -> None:
    pending, late, approval = Pending(), Work(pushed(hint="late"), ("1",)), asked("2", approve="h")
    pending.accept(approval)
    pending.accept(late, older=True)
    assert drained(pending) == [late, approval]


def test_a_shared_named_request_stays_without_one_of_its_run_ids() -> None:
    job = Job("shop", "replay", approve="h1", actor="boss")
    assert Work(job, ("1", "2"), ("1", "2")).without(("1",)) == Work(job, ("2",), ("2",))


def asked(run: str, **asks: Any) -> Work:
    return Work(Job("shop", "replay", **{"actor": "boss", **asks}), (run,), (run,))


def drained(pending: Pending) -> list[Work]:
    found: list[Work] = []
    while pending.waiting:
        work = pending.take()
        assert work
        found.append(work)
        pending.done(work.job.target)
    return found


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (asked("1", commit="c", dry_run=True), Work(pushed(hint="h"), ("2",))),
        (asked("1", commit="c"), asked("2", force=True)),
        (asked("1", commit="c"), asked("2", unpin=True)),
        (asked("1", commit="c"), asked("2", commit="d")),
        (asked("1", approve="h1"), asked("2", actor="ci")),
        (asked("1", approve="h1"), asked("2", approve="h2")),
        (asked("1", approve="h1"), asked("2", approve="h1", actor="ci")),
        (asked("1", approve="h1", dry_run=True), asked("2", approve="h1")),
    ],
)
def test_a_named_request_is_run_alone_under_its_own_run_id(first: Work, second: Work) -> None:
    for order in ((first, second), (second, first)):
        pending = Pending()
        for work in order:
            assert pending.accept(work) is work
        assert drained(pending) == list(order)


def test_named_requests_keep_their_order_and_plain_jobs_coalesce_around_them() -> None:
    pending = Pending()
    push, newer = Work(pushed(hint="a"), ("1",)), Work(pushed(hint="b"), ("3",))
    commit, approval = asked("2", commit="c"), asked("4", approve="h")
    for work in (push, commit, newer, approval):
        pending.accept(work)
    assert (pending.waiting, pending.find("4"), pending.find("5")) == (1, approval, None)
    assert drained(pending) == [push.merged(newer), commit, approval]
    assert push.merged(newer).job.hint == "b"


def test_a_repeated_named_request_shares_the_run_unless_another_came_between() -> None:
    pending = Pending()
    for work in (asked("1", force=True, asked=1.0), asked("2", force=True, asked=2.0), asked("3", unpin=True), asked("4", force=True)):
        pending.accept(work)
    first, *others = drained(pending)
    assert (first.runs, first.named, first.job) == (("1", "2"), ("1", "2"), asked("", force=True, asked=2.0).job)
    assert [work.runs for work in others] == [("3",), ("4",)]


def test_a_busy_target_lets_other_targets_run_between() -> None:
    pending = Pending()
    for run in "123":
        pending.accept(asked(run, commit=run))
    pending.accept(Work(pushed("other"), ("o",)))
    assert [work.run for work in drained(pending)] == ["1", "o", "2", "3"]


def test_one_target_is_handed_out_to_one_thread_at_a_time() -> None:
    pending = Pending()
    pending.accept(asked("1", commit="c"))
    pending.accept(asked("2", approve="h"))
    pending.accept(Work(pushed("other"), ("o",)))
    taken = [pending.take(), pending.take()]
    assert [work.run for work in taken if work] == ["1", "o"]
    assert pending.find("1")


def test_a_run_id_that_was_answered_is_kept_however_much_is_pushed() -> None:
    pending = Pending()
    pending.accept(Work(pushed(hint="first"), ("0",)))
    pending.accept(asked("told"))
    for number in range(1, 2 * MAX_RUNS):
        pending.accept(Work(pushed(hint=str(number)), (str(number),)))
    (work,) = drained(pending)
    assert len(work.runs) == MAX_RUNS
    assert (work.runs[:2], work.runs[-1], work.named) == (("0", "told"), str(2 * MAX_RUNS - 1), ("told",))


def test_the_pending_store_is_bounded_however_much_is_asked() -> None:
    pending = Pending()
    for number in range(1000):
        pending.accept(Work(pushed(hint=str(number)), (str(number),)))
    work = pending.take()
    assert work is not None
    assert (len(work.runs), work.job.hint) == (MAX_RUNS, "999")
    assert (work.runs[0], work.runs[-1]) == ("0", "999")
    assert pending.idle(0.0) is False
    pending.done("shop")
    assert pending.idle(0.0) is True


def test_a_closed_pending_store_hands_out_nothing() -> None:
    pending = Pending()
    pending.accept(Work.of(pushed()))
    pending.close()
    assert pending.take() is None


def test_what_happens_to_a_pull_request_while_it_waits_is_one_plan_beside_its_targets_runs() -> None:
    pending = Pending()
    opened, comment = (Work(Job("shop~12", "pull-request", comments=said), (run,)) for said, run in (((), "1"), (("6",), "2")))
    other, push = Work(Job("shop~13", "pull-request"), ("3",)), Work(pushed(hint="a"), ("4",))
    for work in (opened, push, comment, other):
        pending.accept(work)
    found = drained(pending)
    assert [(work.job.target, work.runs, work.job.comments, work.job.changed) for work in found] == [
        ("shop~12", ("1", "2"), ("6",), True),
        ("shop", ("4",), (), False),
        ("shop~13", ("3",), (), False),
    ]


def test_a_plan_that_is_asked_for_while_it_is_made_is_made_again() -> None:
    pending = Pending()
    pending.accept(Work(Job("shop~12", "pull-request"), ("1",)))
    assert pending.take()
    again = pending.accept(Work(Job("shop~12", "pull-request"), ("2",)))
    assert (again.runs, pending.waiting) == (("2",), 1)
    pending.done("shop~12")
    assert drained(pending) == [again]


def test_a_plan_is_taken_in_by_nothing_else_whatever_its_name() -> None:
    pending = Pending()
    plan, other = Work(Job("shop~12", "pull-request"), ("1",)), Work(Job("shop~12", "push"), ("2",))
    assert pending.accept(plan) is plan
    assert pending.accept(other) is other
    assert drained(pending) == [plan, other]


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


@pytest.mark.parametrize("job", [Job("shop", "tick"), Job("shop", "replay"), Job("shop", "replay", force=True)], ids=str)
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
