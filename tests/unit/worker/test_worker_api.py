"""The question for what changes of the targets under way."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from handler.app.instances.registry import Instances
from handler.app.run_events import RunEvents
from handler.app.target_status import TargetStatusReader
from handler.feedback.live_runs import LiveRuns
from handler.inspect.inspector import Inspector
from handler.model.result import Outcome, Result
from handler.model.run_event import OpenWait, RunPhase
from handler.queues.run_index import RunIndex
from handler.worker.worker import Worker
from handler.worker.worker_api import WorkerApi
from tests.fakes.engine import cluster, engine
from tests.fakes.git_host import GitHost
from tests.fakes.signed_webhooks import door_settings
from tests.fakes.worker_parts import asking, parts_of
from tests.patience import PATIENCE


def worker(events: RunEvents, *, live: bool) -> Worker:
    parts = parts_of(lambda job, *_: Result(job.target, Outcome.UNCHANGED))
    return Worker(door_settings(), replace(parts, events=events, live=live))


def test_what_changes_is_answered_from_where_the_reader_is() -> None:
    events = RunEvents()
    ask = asking(worker(events, live=True))
    events.announce(RunPhase("shop-prod", "shop-prod.1", "c1", "applying", waits=(OpenWait("everything", ("ConfigMap/shop/a",)),)))
    assert events.drained(PATIENCE, "live")
    found = ask("changes", boot="", since=0, wait=0.0)
    assert found["targets"]["shop-prod"]["waits"] == [{"what": "everything", "missing": ["ConfigMap/shop/a"]}]
    assert ask("changes", boot=found["boot"], since=found["version"], wait=0.0)["targets"] == {}
    events.close(PATIENCE)


def test_an_instance_that_is_known_no_more_leaves_no_picture() -> None:
    events, known = RunEvents(), Instances.of(engine(cluster(), GitHost(), door_settings()))
    parts = parts_of(lambda job, *_: Result(job.target, Outcome.UNCHANGED))
    watch: Any = SimpleNamespace(instances=known)
    ask = asking(Worker(door_settings(), replace(parts, events=events, live=True, instances=watch)))
    events.announce(RunPhase("shop.ns.a", "shop.ns.a.1", "c1", "applying"))
    known.drop("shop.ns.a")
    assert events.drained(PATIENCE, "live")
    assert ask("changes", boot="", since=0, wait=0.0)["targets"] == {"shop.ns.a": None}
    events.close(PATIENCE)


def test_a_pause_is_a_change_that_all_who_look_hear_of() -> None:
    handler, live = engine(cluster(), GitHost(), door_settings()), LiveRuns()
    reader = TargetStatusReader(handler.settings, handler.records)
    api = WorkerApi(RunIndex(), reader, lambda _work: {}, str, inspector=lambda: Inspector(handler), live=live)
    for number, question in enumerate(("suspend", "resume"), 1):
        assert "done" in api.answer({"ask": question, "name": "shop-prod", "by": "ada"})
        found = api.answer({"ask": "changes", "boot": "", "since": 0, "wait": 0.0})
        assert (found["version"], found["targets"]) == (number, {"shop-prod": None})
    assert "trouble" in api.answer({"ask": "suspend", "name": "shop-prod", "by": "ada", "until": "never"})
    assert api.answer({"ask": "changes", "boot": "", "since": 0, "wait": 0.0})["version"] == 2


def test_without_a_page_nothing_is_kept_and_the_question_has_no_answer() -> None:
    events = RunEvents()
    ask = asking(worker(events, live=False))
    events.announce(RunPhase("shop-prod", "shop-prod.1", "c1", "applying"))
    assert ask("changes", boot="", since=0, wait=60.0) == {}
    events.close(PATIENCE)


def test_retired_targets_are_looked_for_where_they_are_asked_for_alone() -> None:
    handler = engine(cluster(), GitHost(), door_settings())
    api = WorkerApi(RunIndex(), TargetStatusReader(handler.settings, handler.records), lambda _work: {}, str)
    asked = {"ask": "targets", "names": ["shop-prod"]}
    assert api.answer({**asked, "retired": True})["retired"] == []
    assert [row["target"] for row in api.answer({**asked, "each": True})["targets"]] == ["shop-prod"]
    assert "retired" not in api.answer({**asked, "each": True})
