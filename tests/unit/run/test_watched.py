"""What a worker knows of one target between its looks: what was changed may take its time, what is gone has no past."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from handler.config.git import Repository
from handler.config.settings import HealthCheckExpr, Target
from handler.model.errors import OperatorError
from handler.model.health import HealthState, Status
from handler.model.names import IDENTITY, PART_OF, Identity, identity_of
from handler.render.sandbox import Sandbox
from handler.rollout.kinds.reading import HEALTHY
from handler.run.custom_health import CustomHealth, no_expressions
from handler.serve.health.watched import Watched
from handler.state.record import TargetHealth
from tests.unit.state.samples import blank, sha

API = Identity("apps", "Deployment", "shop", "api")
WEB = Identity("apps", "Deployment", "shop", "web")
OFFER = Identity("example.com", "Offer", "shop", "a")


def known(*declared: Identity, custom: CustomHealth | None = None) -> Watched:
    target = Target("shop", Repository(url="https://git.example.com/shop.git"), ("shop",))
    made = Watched(target, "applyset-shop", time.time, custom or no_expressions())
    made.read(replace(blank(commit=sha()), declared=declared, health=TargetHealth("healthy", apart=())), "1")
    return made


def live(identity: Identity, ready: int, uid: str = "u1", generation: int = 1, **status: Any) -> dict[str, Any]:
    meta = {
        "name": identity.name,
        "namespace": identity.namespace,
        "uid": uid,
        "generation": generation,
        "labels": {PART_OF: "applyset-shop"},
        "annotations": {IDENTITY: identity.mark("shop")},
    }
    conditions = [{"type": "Available", "status": "True"}]
    counts = {
        "conditions": conditions,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "observedGeneration": generation,
    }
    return {
        "apiVersion": f"{identity.group}/v1",
        "kind": identity.kind,
        "metadata": meta,
        "spec": {"replicas": 2},
        "status": {**counts, **status},
    }


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let time pass for who looks."""
    passed = [0.0]
    clock = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock() + passed[0])

    def pass_by(seconds: float) -> float:
        passed[0] += seconds
        return time.monotonic()

    return pass_by


def state(made: Watched, now: float) -> HealthState:
    return made.look(now).state()


def test_what_lost_its_health_unchanged_is_degraded(later: Any) -> None:
    made = known(API)
    made.see(API, live(API, 2))
    made.see(API, live(API, 0))
    assert state(made, later(1)) is HealthState.PROGRESSING
    assert state(made, later(20)) is HealthState.DEGRADED


@pytest.mark.parametrize("change", [{"uid": "u2"}, {"generation": 2}])
def test_what_was_changed_meanwhile_or_is_another_object_may_take_its_time(later: Any, change: Any) -> None:
    made = known(API)
    made.see(API, live(API, 2))
    made.see(API, live(API, 0))
    later(20)
    made.see(API, live(API, 0, **change))
    assert state(made, later(1)) is HealthState.PROGRESSING
    assert state(made, later(60)) is HealthState.PROGRESSING


def test_what_was_gone_and_is_there_again_has_no_past(later: Any) -> None:
    made = known(API)
    made.see(API, live(API, 2))
    made.see(API, None)
    assert state(made, later(1)) is HealthState.DEGRADED
    made.see(API, live(API, 0))
    assert state(made, later(60)) is HealthState.PROGRESSING


def test_what_comes_and_goes_hides_nothing_else(later: Any) -> None:
    made = known(API, WEB)
    for each in (API, WEB):
        made.see(each, live(each, 2))
    made.see(API, live(API, 0))
    now = later(1)
    assert made.settling(now) == {API}
    assert made.look(now).without({API}).state() is HealthState.HEALTHY
    made.see(WEB, None)
    assert made.look(now).without({API}).state() is HealthState.DEGRADED


def test_what_no_child_can_judge_now_isnt_missing_and_is_asked_again(monkeypatch: pytest.MonkeyPatch, later: Any) -> None:
    custom = CustomHealth([HealthCheckExpr("example.com/v1", kind="Offer", current="true")], Sandbox())

    def refused(*_: Any) -> None:
        raise OperatorError.of("render child", "the system has no room for another process")

    monkeypatch.setattr(custom, "verdicts", refused)
    made = known(OFFER, custom=custom)
    made.see(OFFER, live(OFFER, 0))
    made.beat(now := later(1))
    assert made.look(now).verdicts[OFFER].status is Status.UNKNOWN
    monkeypatch.undo()
    monkeypatch.setattr(custom, "verdicts", lambda objects: dict.fromkeys(map(identity_of, objects), HEALTHY))
    made.beat(now)
    assert made.look(now).verdicts[OFFER].status is not Status.UNKNOWN


def test_an_objects_own_secret_fields_arent_repeated() -> None:
    made = known(OFFER)
    bad: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "False", "reason": "Denied", "message": "hunter2hunter2 is no key"}]}
    made.see(OFFER, live(OFFER, 0, **bad) | {"spec": {"apiKey": "hunter2hunter2"}})
    assert made.look(time.monotonic()).verdicts[OFFER].message == "Denied: *** is no key"
