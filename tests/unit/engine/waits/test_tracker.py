"""How the objects of one wait stand, without a cluster: what ends it, and what time alone changes."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from handler.engine.waits import tracker as vigils
from handler.engine.waits.tracker import Ended, Tracker, as_usual
from handler.health.kinds.reading import moment
from handler.model.health import Health, Status
from handler.model.manifest import Manifest
from handler.model.names import GroupKind, Identity, Resource, identity_of
from handler.plan.admission import Desired

CREATED = "2026-01-01T00:00:00Z"
JOB = Resource("batch", "v1", "Job", "jobs", namespaced=True)
OFFER = Resource("example.com", "v1", "Offer", "offers", namespaced=True)


class Clock:
    """Time as a test says it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.passed = 0.0
        monkeypatch.setattr(vigils, "time", SimpleNamespace(monotonic=lambda: 1000.0 + self.passed))

    def now(self) -> float:
        began = moment(CREATED)
        assert began
        return began + self.passed


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def body(resource: Resource, name: str, **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "creationTimestamp": CREATED, "generation": 1}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **parts}


def watch(clock: Clock, *items: tuple[Resource, str], patience: float = 60.0, **spec: Any) -> Tracker:
    desired = [Desired(Manifest.of(body(resource, name, spec=spec)), resource) for resource, name in items]
    return Tracker(desired, {}, patience, clock.now, as_usual)


def named(resource: Resource, name: str) -> Identity:
    return Identity(resource.group, resource.kind, "shop", name)


def job(name: str, kind: str = "", **status: Any) -> dict[str, Any]:
    conditions = [{"type": kind, "status": "True", "reason": "R"}] if kind else []
    return body(JOB, name, spec={}, status={"conditions": conditions, **status})


def test_failures_until_the_first_look_are_reported_together(clock: Clock) -> None:
    seen = watch(clock, (JOB, "a"), (JOB, "b"), (JOB, "c"))
    assert not seen.judge(named(JOB, "a"), job("a", "Failed"))
    assert seen.beat() == [], "the others weren't looked at yet"
    assert not seen.judge(named(JOB, "b"), job("b", "Failed"))
    assert not seen.judge(named(JOB, "c"), job("c"))
    with pytest.raises(Ended) as ended:
        seen.beat()
    assert not ended.value.stuck
    assert [(item.identity.name, health.status) for item, health in seen.unhealthy()] == [
        ("a", Status.FAILED),
        ("b", Status.FAILED),
        ("c", Status.IN_PROGRESS),
    ]


def test_a_failure_waits_for_the_others_only_shortly(clock: Clock) -> None:
    seen = watch(clock, (JOB, "a"), (JOB, "b"))
    seen.judge(named(JOB, "a"), job("a", "Failed"))
    clock.passed = 2.5
    with pytest.raises(Ended):
        seen.beat()
    assert seen.unhealthy()[1][1].message == "has not been looked at"


def test_an_object_that_recovers_before_the_first_look_ends_is_no_failure(clock: Clock) -> None:
    seen = watch(clock, (JOB, "a"), (JOB, "b"))
    seen.judge(named(JOB, "a"), job("a", "Failed"))
    seen.judge(named(JOB, "a"), job("a", "Complete"))
    seen.judge(named(JOB, "b"), job("b"))
    assert seen.beat() == []


def test_any_change_of_a_verdict_is_progress(clock: Clock) -> None:
    seen = watch(clock, (JOB, "a"), patience=10.0)
    for active in range(1, 4):
        seen.judge(named(JOB, "a"), job("a", active=active))
        clock.passed += 9
        assert seen.beat() == []
    seen.judge(named(JOB, "a"), job("a", active=3, ready=1))
    clock.passed += 1
    with pytest.raises(Ended) as ended:
        seen.beat()
    assert ended.value.stuck, "what isn't part of the verdict is no progress"


def test_an_object_without_conditions_is_healthy_after_settling(clock: Clock) -> None:
    seen = watch(clock, (OFFER, "tea"), (OFFER, "milk"))
    for name in ("tea", "milk"):
        assert not seen.judge(named(OFFER, name), body(OFFER, name))
    clock.passed = 4.9
    assert seen.beat() == []
    assert not seen.judge(named(OFFER, "milk"), body(OFFER, "milk", status={"conditions": [{"type": "Ready", "status": "False"}]}))
    clock.passed = 5.1
    assert seen.beat() == [named(OFFER, "tea")]
    assert seen.beat() == []


def test_a_job_that_its_time_to_live_removed_is_healthy_and_noted(clock: Clock) -> None:
    seen = watch(clock, (JOB, "a"), ttlSecondsAfterFinished=5)
    assert seen.judge(named(JOB, "a"), None)
    assert seen.notes() == {
        named(JOB, "a"): "JobSelfRemoved: it has ended, and its ttlSecondsAfterFinished removed it; how isn't known any more"
    }
    assert not watch(clock, (JOB, "a")).judge(named(JOB, "a"), None)


def test_the_digest_of_verdicts_tells_change_from_standstill(clock: Clock) -> None:
    seen = watch(clock, (JOB, "a"))
    seen.judge(named(JOB, "a"), job("a", active=1))
    first = seen.digest()
    seen.judge(named(JOB, "a"), job("a", active=1, startTime=CREATED))
    assert seen.digest() == first
    seen.judge(named(JOB, "a"), job("a", active=2))
    assert seen.digest() != first


def test_a_job_that_was_seen_to_fail_isnt_healthy_because_it_removed_itself(clock: Clock) -> None:
    watched = watch(clock, (JOB, "a"), (JOB, "b"), ttlSecondsAfterFinished=0)
    assert not watched.judge(named(JOB, "a"), job("a", "Failed"))
    assert not watched.judge(named(JOB, "a"), None)
    assert watched.judge(named(JOB, "b"), None), "nothing says that this one failed"
    assert [health.status for _, health in watched.unhealthy()] == [Status.FAILED]


class Judges:
    """Expressions about Offers, by hand: an Offer stands as its phase says."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def covers(self, kind: GroupKind) -> bool:
        return kind == OFFER.group_kind

    def verdicts(self, objects: Iterable[Any], _generations: Any) -> dict[Identity, Health]:
        found = {identity_of(each): Health(Status(each["status"]["phase"]), each["status"]["phase"]) for each in objects}
        self.asked.append([identity.name for identity in found])
        return found


def expressed(clock: Clock, *items: tuple[Resource, str]) -> tuple[Tracker, Judges]:
    judges = Judges()
    tracker = watch(clock, *items)
    tracker.custom = judges  # type: ignore[assignment]  # it has what is asked of CustomHealth
    return tracker, judges


def phase(name: str, said: str) -> dict[str, Any]:
    return body(OFFER, name, status={"phase": said})


def test_objects_with_health_check_exprs_are_judged_together_at_the_next_beat(clock: Clock) -> None:
    seen, judges = expressed(clock, (OFFER, "tea"), (OFFER, "milk"), (JOB, "a"))
    assert not seen.judge(named(OFFER, "tea"), phase("tea", "in progress"))
    assert not seen.judge(named(OFFER, "milk"), phase("milk", "current"))
    assert seen.judge(named(JOB, "a"), job("a", "Complete"))
    assert judges.asked == []
    assert seen.beat() == [named(OFFER, "milk")]
    assert seen.beat() == []
    assert not seen.judge(named(OFFER, "tea"), phase("tea", "failed"))
    assert not seen.judge(named(OFFER, "tea"), phase("tea", "current"))
    assert seen.beat() == [named(OFFER, "tea")], "only its last state counts"
    assert judges.asked == [["tea", "milk"], ["tea"]]


def test_a_failed_health_check_expr_ends_the_wait_and_an_unknown_one_doesnt(clock: Clock) -> None:
    seen, _ = expressed(clock, (OFFER, "tea"))
    seen.judge(named(OFFER, "tea"), phase("tea", "unknown"))
    assert seen.beat() == []
    assert [health for _, health in seen.unhealthy()] == [Health(Status.UNKNOWN, "unknown")]
    clock.passed = 60.0
    with pytest.raises(Ended) as ended:
        seen.beat()
    assert ended.value.stuck
    seen.judge(named(OFFER, "tea"), phase("tea", "failed"))
    with pytest.raises(Ended) as ended:
        seen.beat()
    assert not ended.value.stuck


def test_an_object_deleted_before_its_expression_was_judged_is_not_found(clock: Clock) -> None:
    seen, judges = expressed(clock, (OFFER, "tea"))
    seen.judge(named(OFFER, "tea"), phase("tea", "current"))
    assert not seen.judge(named(OFFER, "tea"), None)
    assert seen.beat() == []
    assert judges.asked == []
    assert [health.status for _, health in seen.unhealthy()] == [Status.NOT_FOUND]


def test_no_more_objects_wait_for_expressions_than_one_child_takes(clock: Clock) -> None:
    names = [f"o{number:03}" for number in range(250)]
    seen, judges = expressed(clock, *((OFFER, name) for name in names))
    for name in names:
        seen.judge(named(OFFER, name), phase(name, "current"))
    assert judges.asked == [names[:200]]
    seen.judge(named(OFFER, "o000"), phase("o000", "in progress"))
    assert seen.beat() == [named(OFFER, name) for name in names[1:]]
    assert [len(asked) for asked in judges.asked] == [200, 51]
