"""Messages that Lambda hands over: what is acknowledged, what comes again and when, and what a run leaves that can't finish in time."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3

from handler.app.build import Handler
from handler.app.run_events import POSTED, RunEvents
from handler.config.feedback_settings import FeedbackSettings
from handler.config.git_settings import Promoted, Revision, SecretRef
from handler.config.settings import Settings
from handler.functions.batch import AFTER, RELEASE, SAFETY, Batch, working
from handler.model import deadline
from handler.model.event import Delivery, Job
from handler.model.pull_request import PullRequest
from handler.model.result import Outcome, Result
from handler.queues import Queue
from handler.queues.message_outcome import Run
from handler.queues.sqs import Received
from handler.queues.sqs_client import QueueUnavailable
from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.aws_events import Context, messages
from tests.fakes.clock import World
from tests.fakes.engine import ONE, SHOP, cluster, engine, pushed, state_of
from tests.fakes.feedback import AtOnce
from tests.fakes.git_host import GitHost
from tests.fakes.pull_request_host import PullRequestHost
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

ALL_TAKEN: dict[str, Any] = {"batchItemFailures": []}


@dataclass
class Asked(Queue):
    """A queue that notes what it is asked: which messages come again in how many seconds, and what is put."""

    postponed: list[tuple[str, float]] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    away: bool = False

    def put(self, job: Job) -> str:
        self._answer()
        self.jobs.append(job)
        return job.run

    def postpone(self, messages: Sequence[Received], seconds: float) -> None:
        self._answer()
        self.postponed += [(each.id, seconds) for each in messages]

    def _answer(self) -> None:
        if self.away:
            raise QueueUnavailable.of("queue", "isn't reached")


@dataclass
class Function:
    """A worker function and what it was seen to do."""

    run: Run
    queue: Asked = field(default_factory=Asked)
    lines: list[Any] = field(default_factory=list)

    def __call__(self, *bodies: str | Job, seconds: float = 300.0, times: int = 1) -> Any:
        events = AtOnce("log")
        events.add("emf", lambda line: self.lines.append(json.loads(line)))
        batch = Batch(self.queue, self.run, events)
        return batch(messages(*bodies, times=times), Context(seconds))


def failures(*names: str) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": name} for name in names]}


def push(sha: str, run: str = "0a1b2c3d4e5f", target: str = "shop") -> Job:
    delivery = Delivery("d1", "github", "refs/heads/main", sha, "ada", "2026-03-01T12:00:00Z")
    return Job(target, "push", hint=sha, actor="ada", deliveries=(delivery,), run=f"{target}.{run}")


def replay(run: str = "0a1b2c3d4e5f", **about: Any) -> Job:
    return Job("shop", "replay", actor="ann", run=f"shop.{run}", **about)


def ending(*outcomes: Outcome, recorded: bool = True) -> Run:
    """Return runs that end like this, one after the other."""
    left = list(outcomes)

    def run(job: Job, stop: threading.Event) -> Result:
        return Result(job.target, left.pop(0), trigger=job.trigger, run=job.run, recorded=recorded)

    return run


@pytest.fixture
def server() -> ApiServer:
    return cluster()


@pytest.fixture
def host() -> GitHost:
    return GitHost()


def test_a_push_is_applied_recorded_and_acknowledged(server: ApiServer, host: GitHost) -> None:
    sha, handler = pushed(host), engine(server, host)
    worker = Function(handler.run)
    assert worker(push(sha)) == ALL_TAKEN
    state = state_of(handler)
    assert (state.commit, state.attempt, state.history[0].id) == (sha, None, "shop.0a1b2c3d4e5f")
    (line,) = worker.lines
    assert (line["target"], line["outcome"], line["anneal_changes"], line["anneal_run_failures"]) == ("shop", "applied", 1, 0)


def test_plans_of_pull_requests_come_after_deployments_and_are_tried_again_by_other_messages_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran = list[str]()

    def run(job: Job, stop: threading.Event) -> Result:
        ran.append(job.target)
        if job.target == "shop~13":
            return Result(job.target, Outcome.FAILED, again=replace(job, looks=job.looks + 1, moment=1_000_600.0), again_at=1_000_600.0)
        return Result(job.target, Outcome.PLANNED if job.is_plan else Outcome.APPLIED, recorded=not job.is_plan)

    now = [1_000_000.0]
    monkeypatch.setattr("handler.queues.message_outcome.time.time", lambda: now[0])
    worker = Function(run)
    plans = [Job(f"shop~{number}", "pull-request", run=f"shop~{number}.0a1b2c3d4e5f") for number in (12, 13)]
    assert worker(*plans, push("a" * 40)) == ALL_TAKEN
    assert ran == ["shop", "shop~12", "shop~13"]
    (again,) = worker.queue.jobs
    assert worker(again) == failures("m0")
    assert (len(ran), worker.queue.postponed[-1]) == (3, ("m0", 600.0))
    now[0] += 600.0
    assert worker(again) == ALL_TAKEN
    assert len(ran) == 4


def test_git_hosts_have_the_end_of_an_invocation_to_show_what_its_runs_owe(monkeypatch: pytest.MonkeyPatch) -> None:
    order, now = list[str](), [1000.0]

    def run(job: Job, stop: threading.Event) -> Result:
        order.append(job.target)
        now[0] += 20.0
        return Result(job.target, Outcome.APPLIED, recorded=True)

    def settle(seconds: float) -> bool:
        order.append(f"{seconds:.0f} s")
        return False

    monkeypatch.setattr("handler.functions.batch.time.monotonic", lambda: now[0])
    batch = Batch(Asked(), run, AtOnce(), settle=settle)
    jobs = [push("a" * 40), push("a" * 40, target="infra")]
    assert batch(messages(*jobs), Context(300.0)) == ALL_TAKEN
    assert batch(messages(jobs[0]), Context(25.0)) == ALL_TAKEN
    assert order == ["shop", "infra", f"{POSTED:.0f} s", "shop", "3 s"]


def test_the_visibility_of_a_message_lasts_while_its_run_lives_and_no_longer(server: ApiServer, host: GitHost) -> None:
    worker = Function(engine(server, host).run)
    worker(push(pushed(host)), seconds=120.0)
    ((name, seconds),) = worker.queue.postponed
    assert name == "m0"
    assert 120.0 < seconds <= 120.0 + AFTER


def test_the_first_failure_ends_the_batch_and_what_stands_behind_it_comes_again_in_its_order() -> None:
    worker = Function(ending(Outcome.UNCHANGED, Outcome.FAILED, Outcome.UNCHANGED))
    worker_run = worker.run

    def run(job: Job, stop: threading.Event) -> Result:
        found = worker_run(job, stop)
        return Result(job.target, found.outcome, run=job.run, recorded=found.outcome is not Outcome.FAILED)

    worker.run = run
    answer = worker(replay("0a"), replay("0b"), replay("0c"), replay("0d"), times=2)
    assert answer == failures("m1", "m2", "m3")
    assert worker.queue.postponed[-3:] == [("m1", 30), ("m2", 0), ("m3", 0)]


@each_row("body", ["", "{", "[]", "{}", '{"v": 1}', "x" * 100_000])
def test_an_unreadable_message_becomes_a_dead_letter_soon(body: str) -> None:
    worker = Function(ending())
    assert worker(body) == failures("m0")
    assert worker.queue.postponed == [("m0", 0)]


def test_a_failed_message_ends_its_group_and_no_other() -> None:
    ran: list[str] = []

    def run(job: Job, stop: threading.Event) -> Result:
        ran.append(job.run)
        return Result(job.target, Outcome.UNCHANGED, run=job.run, recorded=True)

    worker = Function(run)
    here, behind, other = replay("0a"), replay("0b"), push("a" * 40, "0c", "other")
    assert worker(here, "{odd", behind, other) == failures("m1", "m2")
    assert ran == [here.run, other.run]
    assert [each for each in worker.queue.postponed if each[1] == 0] == [("m1", 0), ("m2", 0)]


def test_a_mistake_of_ours_ends_one_run_and_its_message_comes_again() -> None:
    def run(job: Job, stop: threading.Event) -> Result:
        raise ZeroDivisionError

    worker = Function(run)
    assert worker(replay()) == failures("m0")
    assert worker.lines[0]["code"] == "internal"


def test_a_queue_that_is_away_changes_nothing_of_a_run(server: ApiServer, host: GitHost) -> None:
    worker = Function(engine(server, host).run, Asked(away=True))
    assert worker(push(pushed(host))) == ALL_TAKEN


class Cut:
    """A run that is asked to end at its first write of an object."""

    def __init__(self, server: ApiServer, host: GitHost) -> None:
        self.handler = engine(server, host, way=self._way)
        self._stop: threading.Event | None = None

    def run(self, job: Job, stop: threading.Event) -> Result:
        self._stop = stop
        return self.handler.run(job, stop)

    def _way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        found = do()
        if self._stop and call.asked.method == "PATCH" and not call.asked.dry:
            self._stop.set()
        return found


def several(host: GitHost) -> str:
    """Push a commit of two stages."""
    documents = [
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first, namespace: shop}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: then, namespace: shop, annotations: {argocd.argoproj.io/sync-wave: '1'}}\n",
    ]
    sha = host.commit({"shop/all.yaml": "---\n".join(documents)})
    host.push(sha)
    return sha


def test_a_run_that_cant_finish_in_time_is_finished_by_the_next(server: ApiServer, host: GitHost) -> None:
    sha, cut = several(host), Cut(server, host)
    worker = Function(cut.run)
    assert worker(replay(force=True)) == failures("m0")
    assert worker.queue.postponed[-1:] == [("m0", 15)]
    left = state_of(cut.handler)
    assert (left.commit, len(left.history), left.attempt and left.attempt.commit) == ("", 0, sha)
    following = Function(engine(server, host).run)
    assert following(replay(force=True), times=2) == ALL_TAKEN  # at once: the Lease was released
    done = state_of(cut.handler)
    assert (done.commit, done.attempt) == (sha, None)
    assert [entry.outcome for entry in done.history if entry.id == "shop.0a1b2c3d4e5f"] == ["applied"]


def test_a_function_with_no_time_left_begins_nothing_it_would_have_to_break_off(server: ApiServer, host: GitHost) -> None:
    pushed(host)
    worker = Function(engine(server, host).run)
    assert worker(replay("0a", force=True), replay("0b"), seconds=5.0) == failures("m0", "m1")
    assert [line["run"] for line in worker.lines] == ["shop.0a"]


def unreachable(_call: Call, _do: Callable[[], Reply]) -> Reply:
    raise urllib3.exceptions.ProtocolError("connection reset")


@pytest.fixture
def lonely(server: ApiServer, host: GitHost, monkeypatch: pytest.MonkeyPatch) -> Handler:
    """A handler whose cluster can't be reached."""
    world = World()  # in which its requests' patience ends at once
    monkeypatch.setattr("handler.cluster.api.time", SimpleNamespace(monotonic=lambda: world.now, sleep=world.advance))
    pushed(host)
    return engine(server, host, way=unreachable)


def test_what_was_asked_of_a_cluster_that_is_away_comes_again_and_a_tick_doesnt(lonely: Handler, host: GitHost) -> None:
    worker = Function(lonely.run)
    assert worker(push(host.head)) == failures("m0")
    assert worker(replay(), times=3) == failures("m0")
    assert worker.queue.postponed[-1:] == [("m0", 60)]
    assert worker(Job("shop", "tick", run="shop.0a")) == ALL_TAKEN
    assert worker(Job("shop", "drift", run="shop.0b")) == ALL_TAKEN
    assert [line["anneal_run_failures"] for line in worker.lines] == [1, 1, 1, 1]


@pytest.mark.parametrize("about", [{}, {"dry_run": True}, {"approve": "h1"}])
def test_whatever_was_asked_by_name_is_found_in_the_record(server: ApiServer, host: GitHost, about: dict[str, Any]) -> None:
    handler = engine(server, host)
    worker = Function(handler.run)
    worker(push(pushed(host), "01"))
    assert worker(replay("02", **about)) == ALL_TAKEN
    assert any(entry.id == "shop.02" for entry in state_of(handler).history)


def test_a_target_that_isnt_configured_here_is_a_dead_letter(server: ApiServer, host: GitHost) -> None:
    pushed(host)
    worker = Function(engine(server, host).run)
    assert worker(push(host.head, target="gone")) == failures("m0")
    assert worker.lines[0]["code"] == "config-invalid"


def test_a_push_not_shown_in_time_is_left_to_a_new_message(server: ApiServer, host: GitHost) -> None:
    handler = engine(server, host)
    handler.run(Job("shop", "tick"))
    first = pushed(host)
    handler.run(Job("shop", "tick"))
    later = host.commit({"shop/web.yaml": "kind: List\napiVersion: v1\nitems: []\n"})
    worker = Function(handler.run)
    assert worker(push(later), seconds=21.0) == ALL_TAKEN
    (job,) = worker.queue.jobs
    assert (job.hint, job.looks, host.head) == (later, 1, first)
    worker.queue.away = True
    assert worker(push(later), seconds=21.0) == failures("m0")


def test_the_deadline_of_a_function_is_its_invocations_less_a_margin() -> None:
    seen: list[float] = []

    def run(job: Job, _stop: threading.Event) -> Result:
        seen.append(deadline.left(1e6))
        return Result(job.target, Outcome.APPLIED, recorded=True)

    assert Batch(Asked(), run, AtOnce("emf", "log"))(messages(Job("shop", "push", run="shop.1")), Context(300.0)) == {
        "batchItemFailures": []
    }
    assert seen[0] <= 300.0 - SAFETY - RELEASE
    assert deadline.left(1e6) == 1e6


def test_what_waits_for_a_target_is_put_into_the_queue_once_that_has_recorded(server: ApiServer, host: GitHost) -> None:
    shop = ONE.targets[0]
    after = replace(shop, name="after", path="after", depends_on=("shop",))
    follower = replace(shop, name="follower", revision=Revision(promoted=Promoted(("shop",), 60.0)))
    handler, queue = engine(server, host, Settings((shop, after, follower))), Asked()
    declared = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own", "namespace": "shop"}}
    sha = host.commit({"shop/web.yaml": json.dumps(declared), "after/web.yaml": json.dumps(declared)})
    host.push(sha)
    worker = working(handler, queue, RunEvents())
    assert worker(messages(push(sha, target="after")), Context(300.0)) == ALL_TAKEN
    assert (queue.jobs, state_of(handler, "after").status.phase) == ([], "waiting")
    assert worker(messages(push(sha)), Context(300.0)) == ALL_TAKEN
    assert sorted((job.target, job.trigger) for job in queue.jobs) == [("after", "tick"), ("follower", "tick")]


def test_a_function_shows_an_end_before_it_returns_and_plans_a_pull_request_once(server: ApiServer, host: GitHost) -> None:
    feedback = FeedbackSettings(pull_requests=True, host="gitea", token=SecretRef(env="PATH"))
    shop = replace(ONE.targets[0], repository=replace(SHOP, feedback=feedback))
    handler, queue, api = engine(server, host, Settings((shop,)), fetched=True), Asked(), PullRequestHost(lambda base, _: base)
    handler.git_api = lambda target: api  # type: ignore[method-assign]  # the host is in memory
    worker = working(handler, queue, RunEvents())
    sha = pushed(host)
    assert worker(messages(push(sha)), Context(300.0)) == ALL_TAKEN
    assert [(each.commit, each.text.partition(" in ")[0]) for each in api.statuses] == [(sha, "1 created")]
    assert state_of(handler).commit_statuses[0].posted
    head = host.commit({})
    host.commits[head] = {
        "shop/web.yaml": json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new", "namespace": "shop"}})
    }
    api.found[12] = PullRequest(12, head, "main", "bob")
    assert worker(messages(Job("shop~12", "pull-request", run="shop~12.0a1b2c3d4e5f")), Context(300.0)) == ALL_TAKEN
    assert "- delete ConfigMap/shop/web" in api.text
    assert (api.statuses[-1].commit, api.statuses[-1].text) == (head, "1 to delete, 1 to create")
    assert queue.jobs == []
