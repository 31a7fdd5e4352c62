"""What a run of a template lets end, holds, and asks of its instances; and what it makes of the ends of those that run in it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from handler.app import record_summaries
from handler.app.instances import template_run
from handler.app.instances.template_run import TemplateRuns, joined
from handler.app.instances.vanished import TOGETHER, Absence, Kept
from handler.config.git_settings import Repository
from handler.config.instance_target import InstanceTarget, instance_target
from handler.config.settings import HoldAbove, Prune, Settings, Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.errors import ClusterUnavailable, StateInvalid
from handler.model.event import Job
from handler.model.instance import Instance
from handler.model.names import Identity, applyset_id
from handler.model.plan import Plan
from handler.model.result import Outcome, Result
from handler.state.configmap import ID, INSTANCE, TARGET, TOOLING
from handler.state.record import RecordedInstance, State, Suspend
from handler.state.store import StoredState

TRIGGER = TriggerSettings(ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"),)))
LIMIT = Prune(hold_above=HoldAbove(2, 0.3))
TEMPLATE = Target("shop", Repository("https://git.example.com/shop.git"), ("*",), trigger=TRIGGER, prune=LIMIT)


def instance(name: str) -> InstanceTarget:
    return instance_target(TEMPLATE, Instance(Identity("example.com", "Widget", "ns", name), f"u-{name}", {}))


class Store:
    """The record of one target, in memory."""

    def __init__(self, name: str, state: State | None = None) -> None:
        self.name, self.state = name, state

    def read(self) -> StoredState:
        return StoredState(self.state, "u" if self.state else "")

    def blank(self, cluster_uid: str) -> State:
        return State(self.name, "default", cluster_uid)

    def update(self, change: Any, initial: State | None = None) -> StoredState:
        self.state = change(self.state or initial)
        return self.read()


class Runner:
    """A composition root with as much of a cluster as a template's run asks for. `live`: objects; `recorded`: names with a record."""

    def __init__(self, live: str, recorded: str) -> None:
        self.settings = Settings((TEMPLATE,))
        self.live, self.recorded = live, recorded
        self.instances, self.open, self.leaving, self.stores = self, frozenset[str](), dict[str, RecordedInstance](), dict[str, Store]()
        self.slack, self.error, self.meanwhile = 0.0, None, ""
        self.ran: list[Job] = []
        self.suspend: Suspend | None = None

    def look(self, template: Target) -> Mapping[str, InstanceTarget]:
        if self.error:
            raise self.error
        return {each.name: each for each in map(instance, self.live)}

    def of_template(self, name: str) -> list[InstanceTarget]:
        return [instance(each) for each in self.meanwhile]

    def refresh(self, template: Target) -> None:
        """Nothing is kept."""

    def records(self, target: Target) -> Any:
        return self

    def overview(self, kind: str, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        return [{"metadata": self._metadata(name)} for name in self.recorded]

    @staticmethod
    def _metadata(name: str) -> dict[str, Any]:
        mark = f"u-{name}/example.com/Widget:ns/{name}"
        labels = {TARGET: f"shop.ns.{name}", ID: applyset_id(f"anneal-shop.ns.{name}", "anneal-system")}
        return {"name": f"anneal-shop.ns.{name}", "labels": labels, "annotations": {INSTANCE: mark, TOOLING: record_summaries.TOOLING}}

    def store(self, target: Target) -> Store:
        return self.stores.setdefault(target.name, Store(target.name))

    def brief_store(self, target: Target) -> Store:
        own = target.name.rpartition(".")[2]
        known = RecordedInstance(Identity("example.com", "Widget", "ns", own), f"u-{own}")
        return Store(target.name, State(target.name, "default", "c", instance=known, suspend=self.suspend))

    def cluster_uid(self, target: Target) -> str:
        return "c"

    def digest(self, target: Target) -> str:
        return "d" * 64

    def now(self) -> float:
        return 1_000_000.0

    def run(self, job: Job, stop: threading.Event | None = None) -> Result:
        self.ran.append(job)
        return Result(job.target, Outcome.APPLIED, "c1", message="1 object written", counts={"created": 1})


@pytest.fixture
def gone(monkeypatch: pytest.MonkeyPatch) -> dict[str, Absence]:
    """What a look for an object finds, by its name; else it is gone."""
    found: dict[str, Absence] = {}
    monkeypatch.setattr(template_run, "look_for", lambda _ways, _template, _main, known: found.get(known.identity.name, Absence("gone")))
    return found


def run(runner: Runner, job: Job | None = None, runs: TemplateRuns | None = None) -> tuple[Result, list[tuple[str, str]]]:
    asked: list[Job] = []
    runs = runs or TemplateRuns(runner, runner)  # type: ignore[arg-type]  # as much of them as is used
    runs.ask = asked.append
    return runs.run(TEMPLATE, job or Job("shop", "tick"), threading.Event()), [(each.target, each.trigger) for each in asked]


def test_what_isnt_recorded_yet_runs_and_what_is_gone_ends(gone: dict[str, Absence]) -> None:
    runner = Runner("abcd", "bcde")
    result, asked = run(runner)
    assert result.outcome is Outcome.UNCHANGED
    assert asked[0] == ("shop.ns.e", "resource")
    assert ("shop.ns.a", "tick") in asked
    assert runner.leaving == {"shop.ns.e": RecordedInstance(Identity("example.com", "Widget", "ns", "e"), "u-e")}
    state = runner.stores["shop"].state
    assert state
    assert [each.changed for each in state.history] == [("shop.ns.e ended",)], "of what has ended nothing else is left"


def test_what_comes_between_the_look_and_the_first_event_that_is_heard_runs_too(gone: dict[str, Absence]) -> None:
    runner = Runner("a", "a")
    runner.meanwhile = "b"
    runs = TemplateRuns(runner, runner)  # type: ignore[arg-type]  # as much of them as is used
    assert ("shop.ns.b", "tick") in run(runner, runs=runs)[1]
    assert runs.started == {"shop"}


def test_what_may_be_hidden_stays_and_is_named(gone: dict[str, Absence]) -> None:
    gone |= {
        "a": Absence("unknown", Kept("its definition was made anew", "create it again")),
        "b": Absence("anew", Kept("another one lives")),
    }
    runner = Runner("", "ab")
    result, asked = run(runner)
    assert (asked, runner.leaving) == ([], {})
    assert result.message.split("; ") == [
        "0 instances",
        "shop.ns.a stays: its definition was made anew (create it again)",
        "shop.ns.b stays: another one lives",
    ]


def test_a_run_that_prunes_nothing_lets_nothing_end(gone: dict[str, Absence]) -> None:
    runner = Runner("a", "ab")
    result, asked = run(runner, Job("shop", "oneoff", prune=False))
    assert (runner.leaving, asked) == ({}, [("shop.ns.a", "push")])
    assert "shop.ns.b stays: Widget/ns/b is gone, and this run prunes nothing (to let it end: anneal apply shop)" in result.message


def test_what_is_paused_or_may_not_be_touched_any_more_doesnt_end(gone: dict[str, Absence], monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner("a", "ab")
    runner.suspend = Suspend("ada")
    result, asked = run(runner)
    assert (runner.leaving, asked) == ({}, [("shop.ns.a", "tick")])
    assert result.message.endswith("shop.ns.b stays: it is suspended (to let it end: anneal resume shop.ns.b)")
    runner.suspend = None
    monkeypatch.setattr("tests.unit.app.test_instances_template_run.TEMPLATE", replace(TEMPLATE, namespaces=("bank",)))
    result, asked = run(runner)
    assert (runner.leaving, asked) == ({}, [("shop.ns.a", "tick")])
    assert "shop.ns.b stays: target shop may touch nothing in namespace ns any more" in result.message


def test_a_record_that_cant_be_read_keeps_its_instance_and_holds_up_no_other(gone: dict[str, Absence]) -> None:
    class Odd(Runner):
        def brief_store(self, target: Target) -> Store:
            if target.name == "shop.ns.b":
                raise StateInvalid.of("ConfigMap/anneal-system/anneal-shop.ns.b", "is no record")
            return super().brief_store(target)

    runner = Odd("a", "abc")
    result, asked = run(runner)
    assert (list(runner.leaving), asked) == (["shop.ns.c"], [("shop.ns.c", "resource"), ("shop.ns.a", "tick")])
    assert "shop.ns.b stays: ConfigMap/anneal-system/anneal-shop.ns.b: is no record" in result.message


def test_the_first_look_at_all_instances_is_one_that_succeeds(gone: dict[str, Absence]) -> None:
    class Down(Runner):
        def overview(self, kind: str, namespace: str, selector: str = "") -> list[dict[str, Any]]:
            if self.error:
                raise ClusterUnavailable.of("list ConfigMap", "is down")
            return super().overview(kind, namespace, selector)

        def look(self, template: Target) -> Mapping[str, InstanceTarget]:
            return {each.name: each for each in map(instance, self.live)}

    runner = Down("a", "a")
    runs = TemplateRuns(runner, runner)  # type: ignore[arg-type]  # as much of them as is used
    runner.error = ClusterUnavailable.of("cluster", "is down")  # type: ignore[assignment]  # None at first
    assert run(runner, runs=runs)[0].outcome is Outcome.FAILED
    assert runs.started == set()
    runner.error = None
    run(runner, runs=runs)
    assert runs.started == {"shop"}


def test_a_look_that_fails_ends_nothing_and_is_recorded_until_it_is_well(gone: dict[str, Absence]) -> None:
    runner = Runner("a", "ab")
    runner.error = ClusterUnavailable.of("list Widget", "is down")  # type: ignore[assignment]  # None at first
    result, asked = run(runner)
    assert (result.outcome, result.code, asked) == (Outcome.FAILED, "cluster-unavailable", [])
    state = runner.stores["shop"].state
    assert state
    assert (state.status.phase, state.status.code) == ("failed", "cluster-unavailable")
    runner.error = None
    run(runner)
    state = runner.stores["shop"].state
    assert state
    assert state.status.phase == "applied"


def test_instances_that_vanish_together_wait_for_exactly_their_approval(gone: dict[str, Absence]) -> None:
    runner = Runner("a", "abcd")
    result, asked = run(runner)
    assert (result.outcome, runner.leaving) == (Outcome.HELD, {})
    assert all(trigger == "tick" for _, trigger in asked)
    state = runner.stores["shop"].state
    assert state
    assert state.held
    assert state.held.reasons[0].startswith("3 of 4 instances vanished together (75 %), above holdAbove 2 and 30%")
    wrong, _ = run(runner, Job("shop", "replay", approve="0" * 12, actor="ada"))
    assert (wrong.outcome, wrong.code) == (Outcome.FAILED, "request-refused")
    assert not runner.leaving
    runner.recorded = "abcde"  # one more has gone since
    more, _ = run(runner, Job("shop", "replay", approve=state.held.id, actor="ada"))
    assert (more.outcome, runner.leaving) == (Outcome.HELD, {})
    runner.recorded = "abcd"
    done, asked = run(runner)
    assert done.outcome is Outcome.UNCHANGED
    assert [name for name, trigger in asked if trigger == "resource"] == ["shop.ns.b", "shop.ns.c", "shop.ns.d"]


def test_those_that_have_ended_a_moment_ago_count_as_vanishing_together(gone: dict[str, Absence], monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000_000.0]
    runner = Runner("a", "abc")
    monkeypatch.setattr(runner, "now", lambda: now[0])
    assert run(runner)[0].outcome is Outcome.UNCHANGED
    runner.leaving.clear()  # another process, which knows nothing but the record
    runner.recorded = "ad"
    assert run(runner)[0].outcome is Outcome.HELD
    now[0] += TOGETHER + 1
    assert run(runner)[0].outcome is Outcome.UNCHANGED


@pytest.mark.parametrize("by", ["configuration", "ada"])
def test_a_template_that_is_suspended_asks_for_nothing(gone: dict[str, Absence], by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner("a", "ab")
    if by == "ada":
        runner.store(TEMPLATE).state = State("shop", "default", "c", suspend=Suspend("ada"))
    else:
        monkeypatch.setattr("tests.unit.app.test_instances_template_run.TEMPLATE", replace(TEMPLATE, suspend=True))
    result, asked = run(runner)
    assert (result.outcome, asked) == (Outcome.SUSPENDED, [])
    assert by in result.message


def test_what_is_asked_of_one_instance_isnt_asked_of_a_template(gone: dict[str, Absence]) -> None:
    result, asked = run(Runner("a", "a"), Job("shop", "replay", rollback=True))
    assert (result.code, asked) == ("request-refused", [])
    assert result.problems[0].message == "is a template of instances: rollback is asked of one of them"


def test_a_push_and_a_drift_run_are_for_all(gone: dict[str, Absence]) -> None:
    assert run(Runner("ab", "ab"), Job("shop", "push", hint="c" * 40))[1] == [("shop.ns.a", "push"), ("shop.ns.b", "push")]
    assert run(Runner("ab", "ab"), Job("shop", "drift"))[1] == [("shop.ns.a", "drift"), ("shop.ns.b", "drift")]


def test_without_a_process_that_lives_instances_run_in_the_templates_run(gone: dict[str, Absence]) -> None:
    runner = Runner("ab", "")
    result = TemplateRuns(runner, runner).run(TEMPLATE, Job("shop", "oneoff"), threading.Event())  # type: ignore[arg-type]  # as above
    assert sorted(job.target for job in runner.ran) == ["shop.ns.a", "shop.ns.b"]
    assert (result.outcome, result.counts, result.commit) == (Outcome.APPLIED, {"created": 2}, "c1")


def test_the_ends_of_instances_are_one_end_the_worst_of_them() -> None:
    plans = [Plan(f"shop.ns.{name}", "c1", stages=(), prunes=(), notes=(f"of {name}",)) for name in "ab"]
    ends = [
        Result("shop.ns.a", Outcome.APPLIED, "c1", counts={"created": 1}, plan=plans[0]),
        Result("shop.ns.b", Outcome.FAILED, "c1", message="it is broken", counts={"created": 2}, who="author", code="x", plan=plans[1]),
    ]
    found = joined(Result("shop", Outcome.UNCHANGED, message="2 instances"), ends)
    assert (found.outcome, found.counts, found.message) == (
        Outcome.FAILED,
        {"created": 3},
        "2 instances; shop.ns.a: applied; shop.ns.b: it is broken",
    )
    assert found.plan
    assert (found.plan.target, found.plan.notes) == ("shop", ("of a", "of b"))
    assert joined(found, []) is found


def test_a_record_into_which_another_object_was_written_ends_nothing(gone: dict[str, Absence], monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner("a", "ab")
    strange = RecordedInstance(Identity("example.com", "Widget", "ns", "nobody"), "u-b")
    forged = Store("shop.ns.b", State("shop.ns.b", "default", "c", instance=strange))
    monkeypatch.setattr(runner, "brief_store", lambda _target: forged)
    result, _ = run(runner)
    assert (result.outcome, runner.leaving) == (Outcome.UNCHANGED, {})


def test_what_only_looks_like_a_record_neither_ends_nor_counts(gone: dict[str, Absence]) -> None:
    class Crowded(Runner):
        def overview(self, kind: str, namespace: str, selector: str = "") -> list[dict[str, Any]]:
            strange = [{"metadata": {"name": f"anneal-shop.ns.x{n}", "labels": {TARGET: f"shop.ns.x{n}"}}} for n in range(50)]
            return [*super().overview(kind, namespace, selector), *strange]

    runner = Crowded("a", "abcd")
    result, _ = run(runner)
    assert (result.outcome, runner.leaving) == (Outcome.HELD, {}), "3 of 4, not 3 of 54"
