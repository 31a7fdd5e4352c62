"""`jobComplete`, `healthy` and `JobOOMKilled`: what a Job, its end and its pods say."""

from __future__ import annotations

from typing import Any

import pytest

from handler.rollout.interfaces import Judged, Object, Verdict
from tests.unit.rollout.checks.scenes import SINCE, begun, identity

JOB = identity("batch", "Job")
DECLARED: Object = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "web", "namespace": "shop"}, "spec": {}}


def job(*conditions: str, **status: Any) -> Object:
    found = [{"type": each, "status": "True", "message": "Job has reached the specified backoff limit"} for each in conditions]
    return DECLARED | {"status": {**status, "conditions": found}}


def looked(name: str, live: Object | None, **scene: Any) -> Judged:
    return begun(name, {}, JOB, **scene).look(live, SINCE)


@pytest.mark.parametrize(
    ("live", "verdict", "said"),
    [
        (job("Complete", succeeded=1), Verdict.PASSED, "completed, 1 succeeded"),
        (job("Failed", failed=7), Verdict.FAILED, "backoff limit"),
        (job(active=1), Verdict.PENDING, "1 active"),
        (job("FailureTarget", active=1), Verdict.PENDING, "about to fail"),
        (job("Suspended") | {"spec": {"suspend": True}}, Verdict.PENDING, "suspended"),
        (None, Verdict.FAILED, "was removed before it was seen to complete"),
    ],
)
def test_only_a_complete_job_has_completed(live: Object | None, verdict: Verdict, said: str) -> None:
    judged = looked("jobComplete", live, declared=DECLARED)
    assert judged.verdict is verdict
    assert said in judged.message


@pytest.mark.parametrize("name", ["jobComplete", "healthy"])
def test_a_job_that_its_time_to_live_removed_had_ended(name: str) -> None:
    declared = DECLARED | {"spec": {"ttlSecondsAfterFinished": 0}}
    assert looked(name, None, declared=declared).verdict is Verdict.PASSED
    assert looked(name, None, declared=DECLARED).verdict is not Verdict.PASSED
    assert looked(name, None).verdict is not Verdict.PASSED


def test_a_running_job_shows_no_progress_so_that_none_is_asked_of_it() -> None:
    assert [looked(name, job(active=1)).progress for name in ("jobComplete", "healthy")] == ["", ""]


def test_health_asks_again_when_time_may_change_it() -> None:
    custom = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "web", "creationTimestamp": "2023-11-14T22:13:20Z"}}
    judged = begun("healthy", {}, identity("example.com", "Widget")).look(custom, SINCE)
    assert judged.verdict is Verdict.PENDING
    assert 0 < judged.again <= 5
    assert begun("healthy", {}, identity("example.com", "Widget")).look(custom, SINCE + judged.again).verdict is Verdict.PASSED


def pod(when: str, reason: str, kind: str = "containerStatuses") -> Object:
    return {"metadata": {"name": "web-x"}, "status": {kind: [{"name": "app", when: {"terminated": {"reason": reason}}}]}}


@pytest.mark.parametrize(
    ("found", "killed"),
    [
        (pod("state", "OOMKilled"), True),
        (pod("lastState", "OOMKilled"), True),
        (pod("state", "OOMKilled", "initContainerStatuses"), True),
        (pod("state", "Error"), False),
        ({"metadata": {"name": "web-x"}}, False),
        ({"metadata": None, "status": {"containerStatuses": ["x", None, {"state": "odd"}]}}, False),
    ],
)
def test_a_killed_container_is_seen_wherever_it_is_told(found: Object, killed: bool) -> None:
    judged = looked("JobOOMKilled", job(active=1), failing=True, pods=lambda: [found])
    assert (judged.verdict is Verdict.PASSED) is killed
    if killed:
        assert judged.message == "container app of Pod/web-x was killed for want of memory (OOMKilled); raise its memory limit"


def test_pods_are_looked_at_every_few_seconds_and_what_was_seen_stays_seen() -> None:
    asked: list[list[Object]] = [[pod("state", "OOMKilled")], []]
    seen = []

    def pods() -> list[Object]:
        seen.append(1)
        return asked.pop()

    probe = begun("JobOOMKilled", {}, JOB, failing=True, pods=pods)
    verdicts = [probe.look(job(active=1), SINCE + later).verdict for later in (0, 1, 4, 5, 6, 60)]
    assert verdicts == [Verdict.PENDING] * 3 + [Verdict.PASSED] * 3
    assert len(seen) == 2
