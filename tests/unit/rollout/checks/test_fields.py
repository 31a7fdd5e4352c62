"""`fieldComparisons`: both dialects are read alike, what is compared is JSON, and nothing is compared too early."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.names import Identity
from handler.rollout.checks import CHECKS
from handler.rollout.interfaces import Verdict
from tests.unit.rollout.checks.scenes import SINCE, begun, identity, mistakes

READY = {"name": "ready", "path": "{.status.ready}", "value": {"static": 1}}
JOB = identity("batch", "Job")


def told(raw: Any, live: Any, found: Identity | None = None, **scene: Any) -> tuple[Verdict, str]:
    judged = begun("fieldComparisons", raw, found, **scene).look(live, SINCE)
    return judged.verdict, judged.message


def test_both_dialects_are_read_alike_with_the_same_defaults() -> None:
    row = CHECKS["fieldComparisons"]
    old = row.read([READY], "check")
    assert old == row.read({"expectedValues": [READY]}, "check")
    assert (old["timeout"], old["progressTimeout"], old["pollInterval"]) == (3600.0, 300.0, 5.0)
    whole = row.read({"expectedValues": [READY | {"value": {"staticInt64": 1}}], "timeout": "10m", "progressTimeout": "30s"}, "check")
    assert whole == {**old, "timeout": 600.0, "progressTimeout": 30.0}


@pytest.mark.parametrize(
    ("status", "value", "passes"),
    [
        ({"ready": 1}, {"static": 1}, True),
        ({"ready": 1}, {"static": 1.0}, True),
        ({"ready": True}, {"static": 1}, False),
        ({"ready": "1"}, {"static": 1}, False),
        ({"ready": [1, {"a": None}]}, {"static": [1, {"a": None}]}, True),
        ({"ready": [True]}, {"static": [1]}, False),
        ({"ready": {"a": 1}}, {"static": {"a": 1, "b": 2}}, False),
        ({"ready": 3, "wanted": 3}, {"path": "{.status.wanted}"}, True),
        ({"ready": 3, "wanted": 4}, {"path": "{.status.wanted}"}, False),
        ({"ready": 3}, {"path": "{.status.wanted}"}, False),
        ({}, {"static": 1}, False),
        ({}, {"path": "{.status.ready}"}, False),
        ({"ready": None}, {"static": 0}, False),
    ],
)
def test_values_are_compared_as_json(status: dict[str, Any], value: dict[str, Any], passes: bool) -> None:
    verdict, _ = told([READY | {"value": value}], {"status": status})
    assert (verdict is Verdict.PASSED) is passes


def test_a_default_stands_where_nothing_is_found() -> None:
    comparison = {"path": "{.status.unavailable}", "default": 0, "value": {"static": 0}}
    assert told([comparison], {})[0] is Verdict.PASSED
    assert told([comparison], {"status": {"unavailable": 2}}) == (Verdict.PENDING, "{.status.unavailable} is 2, expected 0")
    assert told([READY | {"default": "none", "value": {"static": "none"}}], {})[0] is Verdict.PASSED
    assert told([READY | {"default": None}], {}) == (Verdict.PENDING, "ready: {.status.ready} is missing, expected 1"), "null is no default"


def test_a_field_comparison_reports_all_differences_and_only_those() -> None:
    other = {"name": "same", "path": "{.spec.n}", "value": {"path": "{.status.n}"}}
    live = {"spec": {"n": 2}, "status": {"n": 1, "ready": 0}}
    said = "ready: {.status.ready} is 0, expected 1; same: {.spec.n} is 2, expected 1 ({.status.n})"
    assert told([READY, other], live) == (Verdict.PENDING, said)
    assert told([READY, other], {"spec": {"n": 1}, "status": {"n": 1, "ready": 0}})[1] == "ready: {.status.ready} is 0, expected 1"


def test_several_values_are_no_value() -> None:
    verdict, said = told([READY | {"path": "{.items[*]}"}], {"items": [1, 1]})
    assert (verdict, said) == (Verdict.PENDING, "ready: {.items[*]} finds 2 values; one is compared")


def test_another_value_is_progress_though_the_message_is_cut() -> None:
    probe = begun("fieldComparisons", [READY])
    first, second = (probe.look({"status": {"ready": "x" * 500 + end}}, SINCE) for end in "ab")
    assert first.message == second.message
    assert first.progress != second.progress
    assert first.progress == probe.look({"status": {"ready": "x" * 500 + "a"}, "metadata": {"resourceVersion": "2"}}, SINCE).progress


@pytest.mark.parametrize(
    ("live", "said"),
    [
        (None, "is not there"),
        ({"metadata": {"generation": 1}, "status": {"ready": 1}}, "is shown as of generation 1, 2 was written"),
        ({"metadata": {"generation": 2}, "status": {"ready": 1, "observedGeneration": 1}}, "hasn't seen the newest change yet"),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"ready": 1}}, "is being deleted"),
    ],
)
def test_nothing_is_compared_before_it_is_about_what_was_written(live: Any, said: str) -> None:
    verdict, message = told([READY], live, generation=2)
    assert verdict is Verdict.PENDING
    assert said in message


SEED = [
    {"name": "Generation correct", "path": "{.metadata.generation}", "value": {"path": "{.status.observedGeneration}"}},
    {"name": "All replicas updated", "path": "{.status.replicas}", "value": {"path": "{.status.updatedReplicas}"}},
    {"name": "No replica unavailable", "path": "{.status.unavailableReplicas}", "default": 0, "value": {"static": 0}},
]
"""Upstream's own example."""


def workload(wanted: int, **status: Any) -> dict[str, Any]:
    return {"metadata": {"generation": 1}, "spec": {"replicas": wanted}, "status": status}


@pytest.mark.parametrize("raw", [SEED, {"expectedValues": SEED}])
def test_a_deployment_of_no_replicas_passes_in_both_dialects_though_the_server_omits_its_zeros(raw: Any) -> None:
    assert told(raw, workload(0, observedGeneration=1), generation=1)[0] is Verdict.PASSED
    _, said = told([SEED[1]], workload(0, observedGeneration=1))
    assert said == "All replicas updated: {.status.replicas} is 0"


@pytest.mark.parametrize(
    "live",
    [
        workload(0),
        workload(0, conditions=[{"type": "Progressing", "status": "True"}]),
        workload(2, observedGeneration=1),
        workload(2, observedGeneration=1, unavailableReplicas=2),
        workload(2, observedGeneration=1, replicas=2),
        {"metadata": {"generation": 1}, "status": {"observedGeneration": 1}},
    ],
)
def test_no_zero_is_taken_for_equal_before_the_controller_has_counted(live: dict[str, Any]) -> None:
    assert told([SEED[1]], live)[0] is Verdict.PENDING


@pytest.mark.parametrize(
    ("kind", "live", "path", "zero"),
    [
        (("apps", "Deployment"), workload(0, observedGeneration=1), "{.status.readyReplicas}", 0),
        (("apps", "Deployment"), workload(0, observedGeneration=1), "{.status['availableReplicas']}", 0),
        (("apps", "Deployment"), workload(2, observedGeneration=1, replicas=2), "status.unavailableReplicas", 0),
        (("apps", "Deployment"), workload(0, observedGeneration=1), "{.spec.paused}", False),
        (("apps", "StatefulSet"), workload(0, observedGeneration=1, replicas=0), "{$.status.currentReplicas}", 0),
        (("apps", "ReplicaSet"), workload(0, observedGeneration=1, replicas=0), "{.status.fullyLabeledReplicas}", 0),
        (("", "ReplicationController"), workload(0, observedGeneration=1, replicas=0), "{.spec.minReadySeconds}", 0),
        (
            ("apps", "DaemonSet"),
            {"status": {"observedGeneration": 1, "desiredNumberScheduled": 0, "currentNumberScheduled": 0}},
            "{.status.numberAvailable}",
            0,
        ),
        (("batch", "Job"), {"status": {"startTime": "2026-01-01T00:00:00Z", "active": 1}}, "{.status.failed}", 0),
        (("batch", "Job"), {"status": {"conditions": [{"type": "Suspended", "status": "True"}]}}, "{.status.active}", 0),
    ],
)
def test_what_a_kind_omits_at_zero_is_its_zero(kind: tuple[str, str], live: dict[str, Any], path: str, zero: Any) -> None:
    check, found = [{"path": path, "value": {"static": zero}}], identity(*kind)
    assert told(check, live, found)[0] is Verdict.PASSED
    assert told([check[0] | {"default": 7}], live, found)[0] is Verdict.PENDING, "what the author says comes first"
    assert told(check, live, found, failing=True)[0] is Verdict.PENDING, "what isn't there fails nothing"
    assert told(check, live, identity("example.com", kind[1]))[0] is Verdict.PENDING, "only Kubernetes' own kinds are known"
    assert told([{"path": "{.status.raedyReplicas}", "value": {"static": 0}}], live, found)[0] is Verdict.PENDING


def test_values_of_a_secret_of_fields_called_so_and_of_what_holds_any_are_never_shown() -> None:
    comparison = {"path": "{.data.token}", "value": {"static": "other"}}
    assert (
        told([comparison], {"data": {"token": "CANARY"}}, Identity("", "Secret", "shop", "web"))[1] == "{.data.token} is ***, expected ***"
    )
    assert "CANARY" not in told([comparison], {"data": {"token": "CANARY"}})[1]
    whole = {"path": "{.spec}", "value": {"static": {"mode": "blue"}}}
    assert "{.spec} is" in told([whole], {"spec": {"mode": "red", "password": "CANARY"}})[1]
    assert "CANARY" not in told([whole], {"spec": {"mode": "red", "password": "CANARY"}})[1]
    mode = {"path": "{.spec.mode}", "value": {"static": "blue"}}
    assert told([mode], {"spec": {"mode": "red"}})[1] == '{.spec.mode} is "red", expected "blue"'
    assert told([mode], {"spec": {"mode": "red"}}, closed=True)[1] == "{.spec.mode} is ***, expected ***"


def test_a_job_that_its_time_to_live_removed_had_ended_as_it_was_seen_last() -> None:
    declared = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"ttlSecondsAfterFinished": 0},
    }
    failed = declared | {"status": {"conditions": [{"type": "Failed", "status": "True", "message": "exit code 3"}]}}
    running = declared | {"status": {"active": 1}}
    for seen, verdict in (((), Verdict.PASSED), ((running,), Verdict.PASSED), ((failed,), Verdict.FAILED)):
        probe = begun("fieldComparisons", [READY], JOB, declared=declared)
        for live in seen:
            assert probe.look(live, SINCE).verdict is Verdict.PENDING
        assert probe.look(None, SINCE).verdict is verdict
    assert told([READY], None, JOB, declared=declared, failing=True)[0] is Verdict.PENDING, "no failure was seen"
    kept = declared | {"spec": {}}
    assert told([READY], None, JOB, declared=kept) == (Verdict.PENDING, "is not there")


def test_an_object_nested_without_end_fails_the_check_alone() -> None:
    deep: Any = 1
    for _ in range(20_000):
        deep = [deep]
    both = {"path": "{.a}", "value": {"path": "{.b}"}}
    other: Any = 1
    for _ in range(20_000):
        other = [other]
    assert told([both], {"a": deep, "b": other}) == (Verdict.FAILED, "is nested too deeply to compare")


@pytest.mark.parametrize(
    ("raw", "place", "said"),
    [
        ([], "check", "compares nothing"),
        ({"expectedValues": None}, "check.expectedValues", "compares nothing"),
        ([7], "check[0]", "is a number, not a mapping"),
        ([READY | {"path": "{.a"}], "check[0].path", "can't be read at character 4"),
        ([READY | {"path": ""}], "check[0].path", "is missing"),
        ([READY | {"path": "a\x1b[31m"}], "check[0].path", "can't be shown"),
        ([READY | {"value": {}}], "check[0].value", "found none"),
        ([READY | {"value": None}], "check[0].value", "is missing"),
        ([READY | {"value": {"static": 1, "path": "{.a}"}}], "check[0].value", "found static and path"),
        ([READY | {"value": {"path": "{range .a}"}}], "check[0].value.path", "templates"),
        ([READY | {"value": {"staticInt64": "1"}}], "check[0].value.staticInt64", "not a whole number"),
        ([READY | {"value": {"staticInt64": 1 << 64}}], "check[0].value.staticInt64", "expected"),
        ([READY | {"value": {"static": float("nan")}}], "check[0].value.static", "isn't a value"),
        ([READY | {"value": {"static": float("inf")}}], "check[0].value.static", "isn't a value"),
        ([READY | {"valeu": 1}], "check[0].valeu", "unknown key"),
        ({"expectedValues": [READY], "timeout": "0s"}, "check.timeout", "expected a duration"),
        ({"expectedValues": [READY], "timeout": "9999999h"}, "check.timeout", "expected a duration"),
        ({"expectedValues": [READY] * 101}, "check.expectedValues", "at most 100"),
    ],
)
def test_a_mistake_is_named_with_its_place(raw: Any, place: str, said: str) -> None:
    assert said in mistakes("fieldComparisons", raw)[place]
