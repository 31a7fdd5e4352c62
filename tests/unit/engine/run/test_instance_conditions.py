"""Conditions of an instance's object: what a record comes to, and what stays of a status that stands already."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from handler.config.git_settings import Repository
from handler.config.instance_target import InstanceTarget, instance_target
from handler.config.settings import Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.engine.run.instance_conditions import LONGEST, MOST, InstanceCondition, conditions, generation_of, is_open, is_told, merged
from handler.model.instance import Instance
from handler.model.result import Outcome, Result
from handler.state.record import (
    Attempt,
    HeldPlan,
    Pin,
    Progress,
    Run,
    RunStatus,
    State,
    StepRecord,
    Suspend,
    TargetHealth,
    WaitingFor,
)
from handler.state.record_format import stamp
from handler.state.record_values import DependencyWait, Obstacle

NOW = 1_772_366_400.0
THEN, NOON = stamp(NOW - 60), stamp(NOW)
A, B = "a" * 40, "b" * 40
TYPE = re.compile(r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])")
REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
"""Patterns of a metav1.Condition."""
TEMPLATE = Target(
    "grafana",
    Repository("https://git.example.com/grafana.git"),
    ("shop",),
    trigger=TriggerSettings(ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"),))),
)


def target(**metadata: Any) -> InstanceTarget:
    meta = {"name": "a", "namespace": "shop", "uid": "u-1", "generation": 3, **metadata}
    return instance_target(TEMPLATE, Instance.of({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta}))


NAME = target().name


def state(**parts: Any) -> State:
    return replace(State(NAME, "default", "cluster"), **parts)


def status(phase: str, **parts: Any) -> RunStatus:
    return RunStatus(phase, **parts)


OPEN = Attempt(A, "r", "s", "t", NOON)
HELD = HeldPlan("h1", ("2 deletions",), (), A, "r", "s", NOON)
AWAITS = DependencyWait(A, "d" * 64, NOON, (Obstacle("infra", "it never ran", "anneal apply infra"),))
OVER = Run("run", "push", "superseded", NOON, commit=A, message="overtaken by bbb")
DONE = {"commit": A, "status": status("applied")}


@pytest.mark.parametrize(
    ("ready", "generation", "wanted"),
    [
        (None, 1, True),
        ({"status": "Unknown"}, 1, True),
        ({"status": "True", "observedGeneration": 1}, 2, True),
        ({"status": "True", "observedGeneration": 2}, 2, False),
        ({"status": "False", "observedGeneration": 2}, 2, False),
        ({"status": "True"}, 2, False),  # a kind without a status subresource counts no generations
        ("no condition", 2, True),
    ],
)
def test_a_status_is_open_that_its_writer_may_have_left_behind(ready: Any, generation: int, wanted: bool) -> None:
    found = [{"type": "Other"}, {**ready, "type": "Ready"} if isinstance(ready, dict) else ready]
    assert is_open({"metadata": {"generation": generation}, "status": {"conditions": found}}) is wanted
    assert is_open({"metadata": {}, "status": "no status"})


@pytest.mark.parametrize(
    ("parts", "ready", "reason", "current", "said"),
    [
        ({}, "Unknown", "NotStarted", "Not Started", ""),
        ({"attempt": OPEN, "status": status("applying")}, "Unknown", "InProgress", "In Progress", "is being applied"),
        (
            {"attempt": OPEN, "status": status("waiting", unhealthy=("Deployment/x: 0 of 1",)), "waiting": WaitingFor(A, "stage 1", NOON)},
            "Unknown",
            "WaitingForHealth",
            "In Progress",
            "waits for stage 1: Deployment/x: 0 of 1",
        ),
        ({"attempt": OPEN, "history": (OVER,)}, "Unknown", "Superseded", "In Progress", "overtaken by bbb"),
        ({"awaits": AWAITS, **DONE}, "Unknown", "WaitingForDependency", "Finished", "waiting for infra: “it never ran”"),
        ({"held": HELD, **DONE}, "False", "Held", "Finished", f"“2 deletions”; to allow it: anneal approve {NAME}"),
        (
            {"suspend": Suspend("ada", "a fair"), **DONE},
            "Unknown",
            "Suspended",
            "Finished",
            f"ada: “a fair”; to go on: anneal resume {NAME}",
        ),
        ({"attempt": OPEN, "status": status("pruning", message="ConfigMap/x")}, "False", "Pruning", "In Progress", "gone: ConfigMap/x"),
        ({"status": status("failed", who="author", message="no such key")}, "False", "Refused", "Failed", "no such key; mend it in git"),
        ({"status": status("failed", who="operator", message="no right")}, "False", "NeedsOperator", "Failed", f"anneal apply {NAME}"),
        ({"status": status("failed", who="nobody", message="no answer")}, "False", "Retrying", "Failed", "retried by itself"),
        ({"status": status("failed", who="author", code="rollout-failed")}, "False", "RolloutFailed", "Failed", f"apply {NAME} --force"),
        ({"pin": Pin(A, reason="it failed", automatic=True), **DONE}, "False", "RolledBack", "Failed", "“it failed”; push what mends it"),
        (DONE, "True", "Applied", "Finished", "aaaaaaaaaaaa is applied"),
        ({**DONE, "status": status("drifted", message="1 object differs")}, "True", "Drifted", "Finished", f"anneal gap {NAME}"),
        ({"health": TargetHealth("healthy"), **DONE}, "True", "Applied", "Finished", ""),
        ({"health": TargetHealth("degraded", worst=("Pod/x: fails",)), **DONE}, "False", "Degraded", "Finished", "Pod/x: fails"),
        ({"health": TargetHealth("progressing"), **DONE}, "Unknown", "Progressing", "Finished", "its objects are progressing"),
        ({"health": TargetHealth("nonsense"), **DONE}, "Unknown", "HealthUnknown", "Finished", ""),
        ({"held": HELD, "attempt": OPEN}, "False", "Held", "In Progress", ""),
        ({"held": HELD, "commit": A, "status": status("failed")}, "False", "Held", "Failed", ""),
    ],
)
def test_ready_says_how_an_instance_stands_and_the_way_out(parts: Any, ready: str, reason: str, current: str, said: str) -> None:
    ours, rollout = conditions(target(), state(**parts), NOW)
    assert (ours.type, ours.status, ours.reason, ours.current) == ("Ready", ready, reason, current)
    assert said in ours.message
    assert (rollout.type, rollout.current, rollout.message) == ("Rollout", current, ours.message)
    assert rollout.status == {"Finished": "True", "Failed": "False"}.get(current, "Unknown")
    assert all(REASON.fullmatch(each.reason) for each in (ours, rollout))


def test_without_a_record_nothing_has_begun_unless_a_failure_is_known() -> None:
    assert conditions(target(), None, NOW)[0].reason == "NotStarted"
    failed = Result(NAME, Outcome.FAILED, who="author", code="manifest-invalid", message="a.yaml: no kind")
    ours = conditions(target(), None, NOW, failed)[0]
    assert (ours.reason, ours.current) == ("Refused", "Failed")
    assert "a.yaml: no kind" in ours.message


def test_the_configuration_suspends_and_a_deletion_prunes() -> None:
    paused = conditions(replace(target(), suspend=True), state(), NOW)[0]
    assert (paused.reason, paused.current) == ("Suspended", "Not Started")
    assert "anneal.yaml" in paused.message
    assert conditions(target(deletionTimestamp=NOON), state(**DONE), NOW)[0].reason == "Pruning"


def step(group: str, name: str, outcome: str = "", *, started: bool = False, message: str = "") -> StepRecord:
    return StepRecord(group, name, "web", "CreateOrUpdate", NOON if started or outcome else "", NOON if outcome else "", outcome, message)


def parts_of(*steps: StepRecord, outcome: str = "", **more: Any) -> dict[str, InstanceCondition]:
    rollout = Progress(A, "d", NOON, outcome=outcome, steps=steps)
    return {each.type: each for each in conditions(target(), state(attempt=OPEN, rollout=rollout, **more), NOW)[2:]}


def test_groups_and_steps_have_a_condition_each() -> None:
    found = parts_of(
        step("first", "a", "done"), step("first", "b", "failed", message="broke"), step("second", "a", started=True), step("third", "a")
    )
    assert {kind: (each.status, each.reason, each.current, each.name) for kind, each in found.items()} == {
        "Rollout.Group.first": ("False", "Failed", "Failed", "first"),
        "Rollout.Group.second": ("Unknown", "InProgress", "In Progress", "second"),
        "Rollout.Group.third": ("Unknown", "NotStarted", "Not Started", "third"),
        "Rollout.Step.first.a": ("True", "Finished", "Finished", "a"),
        "Rollout.Step.first.b": ("False", "Failed", "Failed", "b"),
        "Rollout.Step.second.a": ("Unknown", "InProgress", "In Progress", "a"),
        "Rollout.Step.third.a": ("Unknown", "NotStarted", "Not Started", "a"),
    }
    assert found["Rollout.Group.first"].message == "b: broke"
    assert found["Rollout.Group.second"].message == "0 of 1 steps are finished"
    assert found["Rollout.Step.third.a"].message == "CreateOrUpdate web"


def test_a_skipped_step_has_not_started_and_one_that_may_fail_fails_no_group() -> None:
    found = parts_of(step("g", "a", "done"), step("g", "b", "failed"), step("h", "c", "skipped"), outcome="done", digest="d")
    assert {kind: (each.current, each.reason) for kind, each in found.items()} == {
        "Rollout.Group.g": ("Finished", "Finished"),
        "Rollout.Group.h": ("Not Started", "NotStarted"),
        "Rollout.Step.g.a": ("Finished", "Finished"),
        "Rollout.Step.g.b": ("Failed", "Failed"),
        "Rollout.Step.h.c": ("Not Started", "Skipped"),
    }


@pytest.mark.parametrize(
    ("outcome", "more", "shown"),
    [
        ("", {}, True),
        ("done", {"digest": "d"}, True),
        ("done", {"digest": "e"}, False),
        ("skipped", {"digest": "d"}, False),
        ("failed", {}, True),
        ("failed", {"attempt": replace(OPEN, commit=B)}, False),
        ("failed", {"attempt": None}, False),
    ],
)
def test_the_rollout_of_another_set_is_not_shown(outcome: str, more: dict[str, Any], *, shown: bool) -> None:
    known = state(**{"attempt": OPEN, "rollout": Progress(A, "d", NOON, outcome=outcome, steps=(step("g", "a"),)), **more})
    assert (len(conditions(target(), known, NOW)) > 2) is shown


def test_types_are_valid_and_unique_whatever_groups_and_steps_are_called() -> None:
    names = ["a b", "a-b", "a.b", "a_b", " ", "é", "-", "x" * 300, "x" * 301, "a", "Ready"]
    found = parts_of(*(step(group, name) for group in names[:8] for name in names[:8]), *(step("more", name) for name in names))
    whole = [each for each in found.values() if ".Step." in each.type]
    assert all(TYPE.fullmatch(kind) and len(kind) <= 316 for kind in found)
    assert len({kind for kind in found if ".Group." in kind}) == 9
    assert len(whole) == 64 + len(names)
    assert {each.name for each in whole} == set(names)


def test_what_there_is_no_room_for_is_said() -> None:
    rollout = Progress(A, "d", NOON, steps=tuple(step("g", f"s{number}") for number in range(200)))
    found = conditions(target(), state(attempt=OPEN, rollout=rollout), NOW)
    assert len(found) == MOST
    assert f"103 more groups and steps aren't shown; see: anneal status {NAME}" in found[1].message


READY = InstanceCondition("Ready", "True", "Applied", "it is", NAME, "Finished")
GROUP = InstanceCondition("Rollout.Group.g", "True", "Finished", "1 of 1", "g", "Finished")


def plain(text: str) -> str:
    return text


def test_a_status_is_made_once_and_its_times_move_only_with_its_word() -> None:
    first = merged({}, [READY], 3, NOW - 60)
    assert first == {
        "observedGeneration": 3,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Applied",
                "message": "it is",
                "lastTransitionTime": THEN,
                "observedGeneration": 3,
                "name": NAME,
                "currentStatus": "Finished",
            }
        ],
    }
    assert merged({"status": first}, [READY], 3, NOW) == first
    again = merged({"status": first}, [replace(READY, reason="Drifted")], 3, NOW)["conditions"][0]
    assert (again["reason"], again["lastTransitionTime"]) == ("Drifted", THEN)
    assert merged({"status": first}, [replace(READY, status="False")], 3, NOW)["conditions"][0]["lastTransitionTime"] == NOON


def test_conditions_of_others_stay_in_their_places_and_ours_that_are_over_go() -> None:
    foreign, odd = {"type": "Rollout.Elsewhere", "status": "True"}, "no condition"
    live = {"status": {"phase": "Up", "conditions": [{"type": "Rollout.Step.g.old"}, foreign, {"type": "Ready"}, odd, {"type": "Ready"}]}}
    made = merged(live, [READY, GROUP], 0, NOW)
    assert made["phase"] == "Up"
    assert [each["type"] if isinstance(each, dict) else each for each in made["conditions"]] == [
        "Rollout.Elsewhere",
        "Ready",
        odd,
        "Rollout.Group.g",
    ]
    assert "observedGeneration" not in made


def test_an_observed_generation_is_never_lowered() -> None:
    made = merged({"status": {"observedGeneration": 5}}, [READY], 3, NOW)
    assert (made["observedGeneration"], made["conditions"][0]["observedGeneration"]) == (5, 5)
    assert merged({"status": {"observedGeneration": "5"}}, [READY], 3, NOW)["observedGeneration"] == 3


@pytest.mark.parametrize("status", [None, "up", {"conditions": "none"}, {"conditions": None}])
def test_a_status_of_another_form_is_written_over(status: object) -> None:
    assert [each["type"] for each in merged({"status": status}, [READY], 0, NOW)["conditions"]] == ["Ready"]
    assert not is_told({"status": status})


def test_what_is_no_condition_stays_where_it_is() -> None:
    odd: list[Any] = ["text", None, {"type": ["a"]}, {"no": "type"}]
    assert merged({"status": {"conditions": odd}}, [READY], 0, NOW)["conditions"][:4] == odd


def test_only_a_status_with_ready_is_told() -> None:
    assert is_told({"status": {"conditions": [{"type": "Ready"}]}})
    assert not is_told({"status": {"conditions": [{"type": "Other"}, "odd"]}})


def test_messages_are_cut() -> None:
    made = merged({}, [replace(READY, message="x" * 5000)], 0, NOW)
    message = made["conditions"][0]["message"]
    assert message.endswith("…")
    assert len(message) == LONGEST


def test_the_generation_of_a_record_is_known_by_its_settings() -> None:
    assert generation_of(target(), "s", state(settings="s")) == 3
    assert generation_of(target(), "s", state(settings="s", attempt=replace(OPEN, settings="t"))) == 0
    assert generation_of(target(), "s", state(attempt=OPEN)) == 3
    assert generation_of(target(), "s", None) == 0
    assert generation_of(TEMPLATE, "s", state(settings="s")) == 0
