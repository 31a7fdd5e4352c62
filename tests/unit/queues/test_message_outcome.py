"""Which ends acknowledge a message, when it comes again, and how one is worked on until its deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from handler.model.event import Delivery, Job
from handler.model.result import Outcome, Result
from handler.queues import message_outcome
from handler.queues.message_outcome import DeadlineEvent, handle, settles
from handler.queues.pending import Work
from tests.patience import PATIENCE

SHA = "a" * 40
PUSH = Job("shop", "push", hint=SHA, deliveries=(Delivery("d1", "github", "refs/heads/main", SHA, "ada", "t"),))
TICK, DRIFT, ASKED = Job("shop", "tick"), Job("shop", "drift"), Job("shop", "replay", commit=SHA, actor="ops")
DRY = Job("shop", "replay", dry_run=True, actor="ci")
RECORDED = {Outcome.APPLIED, Outcome.UNCHANGED, Outcome.HELD, Outcome.DRIFTED, Outcome.FAILED, Outcome.PRUNING}


def ended(outcome: Outcome, job: Job = PUSH, **more: object) -> bool:
    return settles(Work.of(job), Result("shop", outcome, **more))  # type: ignore[arg-type]  # of several types


# --- settles
@pytest.mark.parametrize("outcome", sorted(RECORDED))
@pytest.mark.parametrize("job", [PUSH, ASKED], ids=["push", "asked"])
def test_a_recorded_outcome_acknowledges_its_message_and_an_unrecorded_comes_again(outcome: Outcome, job: Job) -> None:
    assert ended(outcome, job, recorded=True)
    assert not ended(outcome, job)


@pytest.mark.parametrize("outcome", [Outcome.SUPERSEDED, Outcome.SUSPENDED])
def test_an_unchanged_run_acknowledges_a_push_but_a_named_request_needs_an_entry(outcome: Outcome) -> None:
    assert ended(outcome)
    assert ended(outcome, ASKED, recorded=True)
    assert not ended(outcome, ASKED)


def test_a_dry_run_is_settled_when_its_entry_is_written() -> None:
    assert ended(Outcome.PLANNED, DRY, recorded=True)
    assert not ended(Outcome.PLANNED, DRY)


@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("job", [TICK, DRIFT], ids=["tick", "drift"])
def test_ticks_and_drift_runs_are_acknowledged_whatever_their_outcome(outcome: Outcome, job: Job) -> None:
    assert ended(outcome, job)


def test_a_drift_run_that_took_a_push_in_is_a_push() -> None:
    assert not ended(Outcome.FAILED, DRIFT.merged(PUSH))
    assert DRIFT.merged(PUSH).trigger == "drift"


def test_a_busy_lease_acknowledges_a_push_and_a_request_noted_on_it() -> None:
    assert ended(Outcome.BUSY, code="busy")
    assert ended(Outcome.BUSY, ASKED, code="busy", recorded=True)
    assert not ended(Outcome.BUSY, ASKED, code="busy")


@pytest.mark.parametrize("code", ["stopping", "lease-lost"])
def test_a_run_cut_short_leaves_its_message(code: str) -> None:
    assert not ended(Outcome.BUSY, code=code)


def test_a_look_at_a_held_lease_that_was_cut_short_leaves_its_message() -> None:
    assert not settles(Work.of(PUSH), Result("shop", Outcome.BUSY, code="busy"), cut=True)


def test_a_push_that_the_host_doesnt_show_yet_is_not_acknowledged() -> None:
    assert not ended(Outcome.LAGGING)


@pytest.mark.parametrize("who", ["author", "nobody"])
def test_a_dry_run_that_fails_has_ended_when_that_is_recorded(who: str) -> None:
    assert ended(Outcome.FAILED, DRY, who=who, recorded=True)
    assert not ended(Outcome.FAILED, DRY, who=who)


PLAN = Job("shop~12", "pull-request", comments=("6",))


@pytest.mark.parametrize("outcome", [Outcome.PLANNED, Outcome.FAILED])
def test_a_plan_has_ended_without_a_record_unless_it_was_cut_short(outcome: Outcome) -> None:
    assert ended(outcome, PLAN)
    assert ended(outcome, PLAN, again=PLAN, again_at=1.0)
    assert not ended(outcome, PLAN, code="stopping")


# --- handle
@dataclass
class Script:
    """A run that ends as scripted, one end after the other, on a clock that only waiting moves."""

    ends: list[Callable[[Job], Result]]
    ran: list[Job] = field(default_factory=list)
    put: list[Job] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    now: float = 1000.0
    takes: float = 0.0

    def run(self, job: Job, stop: threading.Event) -> Result:
        self.ran.append(job)
        self.now += self.takes
        assert isinstance(stop, DeadlineEvent)
        return self.ends.pop(0)(job)

    def handle(self, job: Job, seconds: float) -> bool:
        return handle(Work(job, ("shop.1",)), self.run, self.put.append, self.now + seconds)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    made = Script([])

    class Clock:
        @staticmethod
        def time() -> float:
            return made.now

        monotonic = time

    def wait(deadline: DeadlineEvent, timeout: float | None = None) -> bool:
        assert timeout is not None
        made.waited.append(round(timeout, 3))
        made.now = min(made.now + timeout, max(deadline.at, made.now))
        return deadline.is_set()

    monkeypatch.setattr(message_outcome, "time", Clock)
    monkeypatch.setattr(DeadlineEvent, "wait", wait)
    return made


def lagging(script: Script, seconds: float) -> Callable[[Job], Result]:
    return lambda job: Result("shop", Outcome.LAGGING, next_try=script.now + seconds)


def applied(_job: Job) -> Result:
    return Result("shop", Outcome.APPLIED, recorded=True)


def failed(_job: Job) -> Result:
    return Result("shop", Outcome.FAILED, who="nobody")


def test_a_push_that_the_host_doesnt_show_yet_is_looked_for_again_in_place(script: Script) -> None:
    script.ends = [lagging(script, 1.0), lagging(script, 2.0), applied]
    assert script.handle(PUSH, 300.0)
    assert [job.looks for job in script.ran] == [0, 1, 2]
    assert {job.run for job in script.ran} == {"shop.1"}
    assert script.waited == [1.0, 2.0]
    assert script.put == []


def test_each_look_for_a_late_push_has_the_present_time(script: Script) -> None:
    script.ends = [lagging(script, 4.0), applied]
    script.handle(PUSH, 300.0)
    assert [job.asked for job in script.ran] == [1000.0, 1004.0]


def test_without_time_left_another_message_looks_for_the_late_push_under_the_same_id(script: Script) -> None:
    script.ends = [lagging(script, 8.0)]
    assert script.handle(PUSH, message_outcome.MARGIN + 5.0)
    assert [(job.looks, job.run, job.deliveries) for job in script.put] == [(1, "shop.1", PUSH.deliveries)]


def test_a_late_push_left_by_a_run_is_looked_for_in_place_under_its_own_id(script: Script) -> None:
    again = Job("shop", "push", hint=SHA, looks=1)
    script.ends = [lambda _: Result("shop", Outcome.APPLIED, recorded=True, again=again, again_at=script.now + 1.0), failed]
    assert script.handle(PUSH, 300.0)  # the message's own end is recorded
    assert [job.looks for job in script.ran] == [0, 1]
    assert script.ran[1].run not in ("", "shop.1")
    assert script.put == [replace(again, run=script.ran[1].run)]  # the look that failed isn't: it is a message of its own


def test_a_late_push_that_is_found_leaves_no_message(script: Script) -> None:
    again = Job("shop", "push", hint=SHA, looks=1)
    script.ends = [lambda _: Result("shop", Outcome.APPLIED, recorded=True, again=again, again_at=script.now + 1.0), applied]
    assert script.handle(PUSH, 300.0)
    assert script.put == []


def test_a_merged_run_knows_all_its_named_requests(script: Script) -> None:
    script.ends = [applied]
    ann, bob = (Work.of(Job("shop", "replay", actor=name)) for name in ("ann", "bob"))
    both = Work(PUSH, ("shop.1",)).merged(ann).merged(bob)
    handle(both, script.run, script.put.append, script.now + 300.0)
    assert script.ran[0].run == "shop.1"
    assert script.ran[0].named == ((ann.run, "ann"), (bob.run, "bob"))


def test_a_late_push_left_by_a_run_without_time_is_another_message(script: Script) -> None:
    again = Job("shop", "push", hint=SHA, looks=1)
    script.ends = [lambda _: Result("shop", Outcome.APPLIED, recorded=True, again=again, again_at=script.now + 9.0)]
    assert script.handle(PUSH, message_outcome.MARGIN + 5.0)
    assert [replace(job, run="") for job in script.put] == [again]


def test_a_failure_without_a_record_comes_again(script: Script) -> None:
    script.ends = [failed]
    assert not script.handle(PUSH, 300.0)


def test_a_busy_target_at_the_deadline_comes_again(script: Script) -> None:
    script.takes = 290.0
    script.ends = [lambda _: Result("shop", Outcome.BUSY, code="busy")]
    assert not script.handle(PUSH, 300.0)


def test_a_queue_that_takes_no_other_message_leaves_this_one(script: Script) -> None:
    def refuses(_job: Job) -> None:
        raise RuntimeError("the queue")

    script.ends = [lagging(script, 8.0)]
    with pytest.raises(RuntimeError):
        handle(Work.of(PUSH), script.run, refuses, script.now + message_outcome.MARGIN + 5.0)


def test_a_plan_is_tried_again_by_another_message_and_keeps_no_function_waiting(script: Script) -> None:
    again = replace(PLAN, looks=1, moment=script.now + 15.0)
    script.ends = [lambda job: Result(job.target, Outcome.FAILED, again=again, again_at=again.moment)]
    assert script.handle(PLAN, 300.0)
    assert (len(script.ran), [replace(job, run="") for job in script.put], script.waited) == (1, [again], [])


# --- the deadline
def test_a_deadline_event_is_set_by_time_alone() -> None:
    far, near = DeadlineEvent(time.monotonic() + 1000.0), DeadlineEvent(time.monotonic() + 0.05)
    assert not far.is_set()
    assert not far.wait(0.001)
    assert near.wait(PATIENCE)
    assert near.wait()
    far.set()
    assert far.wait(PATIENCE)
    assert far.is_set()


def test_a_refused_request_acknowledges_a_message_without_a_waiting_client() -> None:
    refused = Result("shop", Outcome.REFUSED, code="request-refused")
    assert settles(Work.of(Job("shop", "push", commit=SHA)), refused)
    assert not settles(Work.of(Job("shop", "replay", commit=SHA, run="shop.asked")), refused)
