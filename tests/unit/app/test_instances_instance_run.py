"""A run of an instance whose object isn't there, and its end: what keeps it from that, and what each way out of it leaves behind."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from handler.app import retiring
from handler.app.instances import instance_run
from handler.app.instances.instance_run import end, may_not_end, planned_end
from handler.config.git_settings import Repository
from handler.config.settings import Settings, Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.engine.retire import Retired
from handler.engine.run.errors import EndUnsure
from handler.model.errors import AnnealError, Busy, ClusterUnavailable, GitUnavailable, NoInstance, Suspended
from handler.model.event import Job
from handler.model.names import Identity
from handler.model.plan import Action, Change, Plan
from handler.model.result import Outcome, Result
from handler.state.record import RecordedInstance, State, Suspend


class Gone:
    """A registry that knows no instance."""

    leaving: dict[str, Any] = {}  # noqa: RUF012 - it stays empty

    def find(self, name: str) -> None:
        raise NoInstance.of(f"target {name}", "is no instance: there is no Widget of that name")


def ran(trigger: Any) -> Result:
    job = Job("shop.ns.a", trigger)
    return instance_run.run(None, Gone(), job, threading.Event(), lambda _: Result("shop.ns.a", Outcome.APPLIED))  # type: ignore[arg-type]  # unused


@pytest.mark.parametrize("trigger", ["resource", "tick", "drift"])
def test_an_object_that_went_before_its_run_began_is_no_failure(trigger: str) -> None:
    assert (ran(trigger).outcome, "went before" in ran(trigger).message) == (Outcome.UNCHANGED, True)


def test_who_names_an_instance_that_there_is_none_of_is_told() -> None:
    with pytest.raises(NoInstance):
        ran("replay")


TRIGGER = ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"),), service_account="maker")
TEMPLATE = Target("shop", Repository("https://git.example.com/shop.git"), ("ns",), trigger=TriggerSettings(TRIGGER))
KNOWN = RecordedInstance(Identity("example.com", "Widget", "ns", "a"), "u-a")
NAME, NOW = "shop.ns.a", 1_000_000.0
JOB = Job(NAME, "resource")


class Runner:
    """A composition root with as much as an end asks for; `namespaces`: those that live."""

    settings = Settings((TEMPLATE,))

    def __init__(self, *namespaces: str) -> None:
        self.namespaces, self.leaving, self.over = namespaces, {NAME: KNOWN}, list[str]()
        self.noted: list[str] = []

    def target(self, name: str) -> Target:
        assert name == "shop"
        return TEMPLATE

    def api(self, target: Target, *, impersonated: bool = True) -> Runner:
        return self

    def get(self, path: str, subject: str = "") -> Any:
        return {} if path.rpartition("/")[2] in self.namespaces else None

    def now(self) -> float:
        return NOW

    def store(self, target: Target) -> Runner:
        return self

    def read(self) -> Any:
        return type("Stored", (), {"state": None})

    def update(self, change: Any) -> None:
        self.noted.append(change(State(NAME, "default", "c")).status.code)

    def ended(self, name: str) -> None:
        self.over.append(name)


class Retirement:
    """What `Retire` shows and does, or what it raises."""

    def __init__(self, ends: bool | AnnealError) -> None:
        self.ends = ends
        change = Change(Action.PRUNE, Identity("", "ConfigMap", "ns", "a-1"), "u-1")
        self.going, self.staying = (change,), ()
        self.planned = type("Planned", (), {"plan": Plan(NAME, "", ())})

    def look(self) -> Retirement:
        if isinstance(self.ends, AnnealError):
            raise self.ends
        return self

    def carry_out(self, shown: Retirement, stop: threading.Event) -> Retired:
        return Retired(shown.going, (), self.ends is True)


def run(ends: bool | AnnealError, monkeypatch: pytest.MonkeyPatch, job: Job = JOB) -> tuple[Runner, Any]:
    runner = Runner("ns")
    monkeypatch.setattr(instance_run, "_retire", lambda *_: Retirement(ends))
    return runner, end(runner, runner, job, KNOWN, threading.Event())  # type: ignore[arg-type]  # as much of them as is used


def test_an_instance_ends_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, result = run(True, monkeypatch)
    assert (result.outcome, result.message, runner.over) == (
        Outcome.APPLIED,
        "Widget/ns/a is gone: 1 object of it deleted or let go",
        [NAME],
    )
    runner, result = run(False, monkeypatch)
    assert (result.outcome, result.next_try > NOW, runner.over, runner.leaving) == (Outcome.PRUNING, True, [], {NAME: KNOWN})


def test_what_a_person_has_paused_meanwhile_is_left_until_a_look_finds_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, result = run(Suspended.of("target shop.ns.a", "doesn't end"), monkeypatch)
    assert (result.outcome, result.next_try, runner.leaving, runner.over) == (Outcome.SUSPENDED, 0.0, {}, [])


def test_a_run_that_prunes_nothing_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, result = run(True, monkeypatch, replace(JOB, prune=False))
    assert (result.outcome, result.message) == (Outcome.UNCHANGED, "Widget/ns/a is gone, and this run prunes nothing")
    assert (runner.leaving, runner.over) == ({NAME: KNOWN}, [])


def test_an_end_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, result = run(ClusterUnavailable.of("cluster", "down"), monkeypatch)
    assert (result.outcome, result.code, result.next_try > NOW) == (Outcome.FAILED, "cluster-unavailable", True)
    assert (runner.noted, runner.leaving) == (["cluster-unavailable"], {NAME: KNOWN})
    runner, result = run(Busy.of("target shop.ns.a", "another runs"), monkeypatch)
    assert (result.outcome, result.next_try > NOW, runner.noted) == (Outcome.BUSY, True, [])


def test_a_plan_shows_what_an_end_would_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner("ns")
    monkeypatch.setattr(instance_run, "_retire", lambda *_: Retirement(True))
    result = planned_end(runner, TEMPLATE, NAME, KNOWN)  # type: ignore[arg-type]  # as much of it as is used
    assert result.plan
    assert [str(change.identity) for change in result.plan.prunes] == ["ConfigMap/ns/a-1"]
    monkeypatch.setattr(instance_run, "_retire", lambda *_: Retirement(ClusterUnavailable.of("cluster", "down")))
    result = planned_end(runner, TEMPLATE, NAME, KNOWN)  # type: ignore[arg-type]  # as much of it as is used
    assert (result.outcome, result.code) == (Outcome.FAILED, "cluster-unavailable")


@pytest.mark.parametrize(
    ("namespaces", "suspend", "why"),
    [
        (("ns",), None, "None"),
        (("*",), Suspend("ada", until="1970-01-01T00:00:01Z"), "None"),
        (("ns",), Suspend("ada"), "it is suspended (to let it end: anneal resume shop.ns.a)"),
        (
            ("bank",),
            None,
            (
                "target shop may touch nothing in namespace ns any more "
                "(to see what its end deletes: anneal retire shop.ns.a --prune --dry-run)"
            ),
        ),
    ],
)
def test_what_keeps_an_instance_from_its_end(namespaces: tuple[str, ...], suspend: Suspend | None, why: str) -> None:
    state = State(NAME, "default", "c", instance=KNOWN, suspend=suspend)
    assert str(may_not_end(replace(TEMPLATE, namespaces=namespaces), state, KNOWN, NOW)) == why


@pytest.mark.parametrize(("lives", "across", "account"), [(("ns",), False, "ns/maker"), ((), False, ""), ((), True, "ns/maker")])
def test_the_rights_of_an_account_are_left_only_with_the_one_namespace_that_there_was(
    lives: tuple[str, ...], across: bool, account: str
) -> None:
    template = replace(TEMPLATE, trigger=TriggerSettings(replace(TRIGGER, across_namespaces=across)))
    target = instance_run._gone(Runner(*lives), template, KNOWN)  # type: ignore[arg-type]  # as much of it as is used
    assert (target.impersonate.service_account if target.impersonate else "") == account


def test_what_another_target_may_declare_unseen_is_let_go_by_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Target("other", TEMPLATE.repository, ("ns",))

    def unseen(*_: Any) -> dict[Identity, str]:
        raise GitUnavailable.of("https://git.example.com/shop.git", "its host refuses connections")

    monkeypatch.setattr(retiring, "_declared", unseen)
    monkeypatch.setattr(retiring, "is_here", lambda *_: True)
    written, member = Settings((TEMPLATE, other)), Identity("", "ConfigMap", "ns", "a-1")
    asked: Any = (Runner(), written, replace(TEMPLATE, name=NAME), [member])
    with pytest.raises(EndUnsure, match=r"target other may declare ConfigMap/ns/a-1.*refuses connections; `anneal check other`"):
        retiring.certain_claims(*asked)
