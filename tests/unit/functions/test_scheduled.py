"""An event each minute: what it asks for, by the clock and by records, and that no cluster delays another's targets."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from handler.app.cluster_looks import ClusterLooks
from handler.app.record_summaries import Readable
from handler.config.git_settings import SecretRef
from handler.config.settings import Cluster, Settings, Target
from handler.functions.scheduled import AGAIN, Minutes, by_clock, by_record, window
from handler.model.errors import AccessDenied, ClusterUnavailable
from handler.model.event import Job
from handler.queues import message
from handler.queues.sqs import SqsQueue
from handler.queues.sqs_client import QueueUnavailable
from handler.state.cluster_port import Body
from handler.state.heartbeat import Heartbeat
from handler.state.record import Attempt, RunStatus, State, Suspend
from handler.state.record_format import stamp
from handler.state.summary import Summary
from handler.triggers.schedule import due_between
from tests.fakes.aws_events import Context, every_minute
from tests.fakes.cluster_looks import OneHangs
from tests.fakes.engine import SHOP
from tests.fakes.objects import FakeObjects
from tests.fakes.signed_webhooks import Kept
from tests.fakes.sqs_fifo import Fifo
from tests.fakes.worker_parts import remember
from tests.patience import PATIENCE
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

END = 1_772_366_400.0
START, NOON = END - 60.0, "2026-03-01T12:00:00Z"
EAST, WEST = Cluster(SecretRef(file="east.yaml")), Cluster(SecretRef(file="west.yaml"))
HOUR = 3600.0


def target(name: str, cluster: Cluster = EAST, **about: Any) -> Target:
    return Target(name, SHOP, ("shop",), cluster=cluster, **about)


def settings(*targets: Target, interval: float = 30 * HOUR, drift_interval: float = 30 * HOUR) -> Settings:
    return Settings(targets, interval=interval, drift_interval=drift_interval)


@each_row(
    ("event", "end"),
    [
        (every_minute(), END),
        (every_minute("2026-03-01T12:00:37Z"), END),
        (every_minute("2026-03-01T13:00:59+01:00"), END),
        (every_minute("2026-03-01T12:01:00Z"), END + 60),
        ({}, END + 600),
        ({"time": 7}, END + 600),
        ({"time": "soon"}, END + 600),
        ({"time": "0001-01-01T00:00:00+23:00"}, END + 600),
        (None, END + 600),
        ([], END + 600),
    ],
)
def test_a_scheduled_event_covers_the_two_minutes_before_it(event: Any, end: float) -> None:
    assert window(event, END + 601.5) == (end - 120.0, end)


def test_all_targets_get_a_tick_an_interval_and_a_drift_run_in_its_place() -> None:
    known = settings(*(target(f"t{number}") for number in range(100)), interval=300.0, drift_interval=1800.0)
    asked = [job for number in range(30) for job in by_clock(known, END + 60.0 * number, END + 60.0 * (number + 1))]
    drifts = [job.target for job in asked if job.trigger == "drift"]
    assert sorted(drifts) == sorted(each.name for each in known.targets)
    assert set(Counter(job.target for job in asked).values()) == {6, 7}, "six ticks each; a drift run in the same minute stands for one"


def test_suspended_targets_get_no_ticks_and_those_that_ignore_drift_no_drift_runs() -> None:
    known = settings(target("paused", suspend=True), target("loose", drift="ignore"), target("tight"), interval=60.0, drift_interval=60.0)
    asked = by_clock(known, START, END)
    assert [(job.target, job.trigger) for job in asked] == [("tight", "drift"), ("loose", "tick")]
    assert all(START <= job.moment < END for job in asked)


OFTEN = next(name for name in (f"t{number}" for number in range(99)) if due_between((name,), AGAIN, START, END))
SELDOM = next(name for name in (f"t{number}" for number in range(99)) if not due_between((name,), AGAIN, START, END))


@each_row(
    ("summary", "at_once", "at_its_turn"),
    [
        (Summary(), False, False),
        (Summary(phase="failed"), False, False),
        (Summary(held=True), False, False),
        (Summary(next_try=stamp(END - 1)), True, True),
        (Summary(next_try=stamp(START)), True, True),
        (Summary(next_try=stamp(START - 1)), False, True),
        (Summary(next_try=stamp(END)), False, False),
        (Summary(drift_due=stamp(END - 30)), True, True),
        (Summary(drift_due=stamp(END - HOUR)), False, True),
        (Summary(attempt="a" * 40), False, True),
        (Summary(asked=True), False, True),
        (Summary(owes=True), False, True),
        (Summary(owes=True, suspended=True), False, True),
        (Summary(attempt="a" * 40, next_try=stamp(END - 1), suspended=True), False, False),
        (Summary(next_try=stamp(END - 1), suspended=True, suspended_until=stamp(END + 1)), False, False),
        (Summary(next_try=stamp(END - 1), suspended=True, suspended_until=stamp(END)), True, True),
    ],
)
def test_a_due_next_try_is_asked_for_once_and_an_overdue_one_now_and_then(summary: Summary, at_once: bool, at_its_turn: bool) -> None:
    for name, due in ((SELDOM, at_once), (OFTEN, at_its_turn)):
        moment = by_record(name, summary, START, END)
        assert bool(moment) is due
        assert not due or START <= moment < END


def state(name: str, **parts: Any) -> State:
    return replace(State(name, "default", "uid", SHOP.url), **parts)


def minutes(known: Settings, queue: Any, records: Callable[[Target], Readable], looks: ClusterLooks | None = None) -> Any:
    return Minutes(known, queue, records, looks or ClusterLooks(PATIENCE))(every_minute(), Context())


def test_what_records_say_is_due_is_asked_for_by_one_list_a_cluster() -> None:
    east, west, asked = FakeObjects(), FakeObjects(), list[str]()
    due, open_attempt = RunStatus("failed", next_try=stamp(END - 5)), Attempt("a" * 40, "b" * 40, "c" * 40, "uid.1", NOON)
    remember(east, state("one", status=due))
    remember(east, state("two", status=RunStatus("applied")))
    remember(west, state(OFTEN, attempt=open_attempt))
    remember(west, state("paused", status=due, suspend=Suspend("ann")))

    def records(asked_for: Target) -> Readable:
        asked.append(asked_for.name)
        return east if asked_for.cluster == EAST else west

    queue = Kept()
    known = settings(target("one"), target("two"), target("never-ran"), target(OFTEN, WEST), target("paused", WEST))
    assert minutes(known, queue, records) == {"ticks": 0, "due": ["one", OFTEN], "unread": {}}
    assert [(job.target, job.trigger) for job in queue.jobs] == [("one", "tick"), (OFTEN, "tick")]
    assert queue.jobs[0].moment == END - 5
    assert sorted(set(asked)) == ["one", OFTEN], "one of each cluster leads there"


def test_the_schedule_is_a_server_that_looks_after_all_targets_of_a_cluster_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "anneal-schedule")
    east, west, queue = FakeObjects(clock=lambda: END), FakeObjects(clock=lambda: END), Kept()
    known = settings(target("asked"), target("resting", suspend=True), target("far", WEST), interval=60.0)

    def records(asked_for: Target) -> Readable:
        if asked_for.cluster == WEST:
            raise ClusterUnavailable.of("cluster west", "can't be reached")
        return east

    minutes(known, queue, records)
    pulse = Heartbeat(east, "anneal-system", "default").read()
    server = pulse.server("asked")
    assert server
    assert (server.name, pulse.server("resting"), pulse.server("far")) == ("anneal-schedule", server, None)
    assert (pulse.looked("asked"), pulse.looked("resting"), pulse.watched) == (END, 0.0, None)
    assert Heartbeat(west, "anneal-system", "default").read().last is None


def test_a_heartbeat_that_cant_be_renewed_keeps_no_schedule_up(caplog: pytest.LogCaptureFixture) -> None:
    objects, queue = FakeObjects(), Kept()

    def denying(verb: str, body: Body) -> None:
        if verb == "create" and body["kind"] == "Lease":
            raise AccessDenied.of("leases", "may not be created")

    objects.before = denying
    told = minutes(settings(target("one"), interval=60.0), queue, lambda _target: objects)
    assert (told["ticks"], [job.target for job in queue.jobs]) == (1, ["one"])
    assert "the heartbeat can't be renewed" in [record.message for record in caplog.records]


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """What a cluster that hangs waits for."""
    event = threading.Event()
    yield event
    event.set()


NORTH = Cluster(SecretRef(file="north.yaml"))


def test_a_cluster_that_hangs_or_refuses_delays_no_other(never: threading.Event) -> None:
    east, queue = FakeObjects(), Kept()
    remember(east, state("one", status=RunStatus("failed", next_try=stamp(END - 5))))

    def records(asked_for: Target) -> Readable:
        if asked_for.cluster == WEST:
            never.wait()
        if asked_for.cluster == NORTH:
            raise AccessDenied.of("configmaps", "may not be listed")
        return east

    told = minutes(settings(target("one"), target("hangs", WEST), target("refuses", NORTH)), queue, records, OneHangs(0.2, WEST))
    assert told["unread"] == {"hangs": "cluster: hasn't answered within 0.2 s", "refuses": "configmaps: may not be listed"}
    assert queue.jobs == [Job("one", "tick", moment=END - 5)]


def test_of_a_silent_cluster_one_target_a_minute_is_asked_about_and_all_have_their_turn() -> None:
    names = [f"w{number}" for number in range(7)]
    known = settings(target("one"), *(target(name, WEST) for name in names), target("refused", NORTH), interval=60.0)

    def records(asked_for: Target) -> Readable:
        if asked_for.cluster == WEST:
            raise ClusterUnavailable.of("cluster west", "can't be reached")
        if asked_for.cluster == NORTH:
            raise AccessDenied.of("configmaps", "may not be listed")
        return FakeObjects()

    turns: list[str] = []
    for number in range(7):
        queue = Kept()
        event = every_minute(f"2026-03-01T12:{number:02}:00Z")
        Minutes(known, queue, records, ClusterLooks(PATIENCE))(event, Context())
        asked = {job.target for job in queue.jobs}
        assert asked > {"one", "refused"}, "who answers, if only that it may not be read, keeps the pace of the clock"
        turns += [job.target for job in queue.jobs if job.target in names][:1]
    assert sorted(turns) == names


def silent(_target: Target) -> Readable:
    raise ClusterUnavailable.of("cluster west", "can't be reached")


def at(number: int) -> dict[str, Any]:
    return every_minute(datetime.fromtimestamp(END + 60.0 * number, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


@each_row("count", [1, 3, 20])
def test_for_a_day_all_targets_of_a_silent_cluster_are_asked_about_equally_often(count: int) -> None:
    known, fifo = Settings(tuple(target(f"w{number}", WEST) for number in range(count))), Line()
    for number in range(24 * 60):
        fifo.tell(Minutes(known, fifo.sqs, silent, ClusterLooks(PATIENCE)), number)
    asked = Counter(fifo.asked)
    assert set(asked) == {each.name for each in known.targets}
    assert max(asked.values()) - min(asked.values()) <= 1 + 0.02 * max(asked.values())
    assert max(asked.values()) <= 24 * 3600 / max(known.interval, 60.0 * count) * 1.2 + 1


class Line:
    """The queue by AWS' text, on the clock of the events: what was asked of it, by target, each once."""

    def __init__(self) -> None:
        self.now = END
        self.fifo = Fifo(now=lambda: self.now)
        self.sqs = SqsQueue(self.fifo.url, self.fifo)

    def tell(self, schedule: Minutes, number: int) -> None:
        self.now = END + 60.0 * number + 3.0
        schedule(at(number), Context())

    @property
    def asked(self) -> list[str]:
        return [each.group for each in self.fifo.messages]


MANY = settings(*(target(f"t{number}") for number in range(30)), interval=300.0, drift_interval=1800.0)


def told(events: list[int]) -> list[tuple[str, str]]:
    """Return what events ask the queue for in an hour: targets and triggers, sorted."""
    line, empty = Line(), FakeObjects()
    schedule = Minutes(MANY, line.sqs, lambda _target: empty, ClusterLooks(PATIENCE))
    for number in events:
        line.tell(schedule, number)
    works = [message.decode(each.body) for each in line.fifo.messages]
    return sorted((work.job.target, work.job.trigger) for work in works)


def test_any_one_event_that_never_comes_loses_nothing_and_one_that_comes_twice_adds_nothing() -> None:
    hour = list(range(60))
    whole = told(hour)
    assert len(whole) >= 30 * 12
    for number in range(1, 59, 7):
        assert told([each for each in hour if each != number]) == whole, number
        assert told(sorted([*hour, number])) == whole, number


def test_a_retry_that_falls_due_while_an_event_is_missing_is_asked_for_once() -> None:
    objects, line = FakeObjects(), Line()
    remember(objects, state("one", status=RunStatus("failed", next_try=stamp(END - 70))))
    schedule = Minutes(settings(target("one")), line.sqs, lambda _target: objects, ClusterLooks(PATIENCE))
    line.tell(schedule, 0)  # the event of the minute before has never come
    line.tell(schedule, 0)
    assert line.asked == ["one"]


def test_a_forged_record_beside_the_records_asks_for_nothing() -> None:
    objects = FakeObjects()
    remember(objects, state("one", status=RunStatus("failed", next_try=stamp(END - 5))))
    listed = objects.overview

    def forged(*about: Any) -> list[Body]:
        found = listed(*about)
        for body in found:
            body["metadata"]["annotations"]["applyset.kubernetes.io/tooling"] = "other/v1"
        return found

    objects.overview = forged  # type: ignore[method-assign,assignment]  # what the cluster says
    assert minutes(settings(target("one")), Kept(), lambda _target: objects)["due"] == []


def test_a_queue_that_takes_nothing_is_an_error_so_that_the_event_comes_again() -> None:
    class Away(Kept):
        def put_all(self, jobs: Any) -> tuple[str, ...]:
            raise QueueUnavailable.of("queue", "isn't reached")

    with pytest.raises(QueueUnavailable):
        minutes(settings(target("one"), interval=60.0), Away(), lambda _target: FakeObjects())
