"""How a watched target does, by what a worker learns of its members."""

from __future__ import annotations

import time
from typing import Any

import pytest

from handler.config.settings import HealthCheckExpr
from handler.engine.health.custom_health import PAUSE, CustomHealth
from handler.engine.health.target_health import judged
from handler.health.diagnosis import STILL, Finding
from handler.health.kstatus import SELF_REMOVED
from handler.model.errors import OperatorError
from handler.model.health import Health, HealthState, Status
from handler.model.names import Identity, identity_of
from handler.render.sandbox import Sandbox
from handler.state.record import Ran, Run
from handler.worker.health_watch.watched_target import GRACE
from tests.unit.worker.health_watch.watched_objects import API, CLOCK, WEB, declaring, live, watched

RUN = Run("r2", "push", "applied", "2026-11-01T12:00:00Z", "b" * 40)


@pytest.mark.parametrize("seen_gone", [True, False], ids=["by a watch", "by a list"])
def test_a_recreated_object_hasnt_lost_its_health(*, seen_gone: bool) -> None:
    shop = watched("shop", API)
    shop.see(API, live(shop, ready=1))
    if seen_gone:
        shop.see(API, None)
    shop.see(API, live(shop, ready=0, uid="u-2"))
    assert shop.look(time.monotonic() + 2 * GRACE).state() is HealthState.PROGRESSING
    assert not shop.settling(time.monotonic())


def test_an_object_unhealthy_without_a_change_is_degraded_after_a_while() -> None:
    shop = watched("shop", API)
    shop.see(API, live(shop, ready=1))
    shop.see(API, live(shop, ready=0))
    assert shop.settling(time.monotonic()) == {API}
    assert shop.look(time.monotonic() + 2 * GRACE).state() is HealthState.DEGRADED


def test_a_flapping_object_hides_no_degraded_one() -> None:
    shop = watched("shop", API, WEB)
    for each in (API, WEB):
        shop.see(each, live(shop, ready=1, identity=each))
    shop.see(API, live(shop, ready=0))
    now = time.monotonic()
    assert shop.look(now).without(shop.settling(now)).state() is HealthState.HEALTHY
    shop.see(WEB, None)
    assert shop.look(now).without(shop.settling(now)).state() is HealthState.DEGRADED


def test_a_reason_that_was_found_before_a_change_has_to_stand_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    shop, clock = watched("shop", API), [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    shop.see(API, live(shop, ready=0))
    clock[0] += 2 * STILL
    shop.see(API, live(shop, ready=0, generation=2))
    shop.explain({API: Finding(("CrashLoopBackOff",), "crashes")})
    assert shop.look(clock[0]).state() is HealthState.PROGRESSING
    assert shop.look(clock[0] + 2 * STILL).state() is HealthState.DEGRADED


def test_an_object_without_the_inventory_marks_is_missing_from_health() -> None:
    shop = watched("shop", API)
    shop.see(API, live(shop, ready=1))
    stolen = live(shop, ready=1)
    stolen["metadata"]["annotations"] = {}
    shop.see(API, stolen)
    assert shop.look(time.monotonic()).verdicts[API].status is Status.NOT_FOUND


def test_a_health_check_expr_that_couldnt_be_evaluated_is_unknown_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    custom = CustomHealth([HealthCheckExpr("apps/v1", "true", "Deployment")], Sandbox())
    answers: list[Any] = [OperatorError.of("sandbox", "can't be started"), dict.fromkeys((API, WEB), Health(Status.CURRENT))]

    def verdicts(_: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, OperatorError):
            raise answer
        return answer

    monkeypatch.setattr(custom, "verdicts", verdicts)
    shop, now = watched("shop", API, custom=custom), time.monotonic()
    shop.see(API, live(shop, ready=1))
    shop.beat(now)
    look = shop.look(now)
    assert (look.state(), look.verdicts[API].status) == (HealthState.UNKNOWN, Status.UNKNOWN)
    assert "can't be started" in look.verdicts[API].message
    shop.read(declaring(API, WEB), "2")
    shop.see(WEB, live(shop, ready=1, identity=WEB))
    shop.beat(now + 1)
    assert shop.look(now + 1).verdicts[WEB].status is Status.UNKNOWN, "it is there, though not judged yet"
    assert len(answers) == 1, "asked again in a while"
    shop.beat(now + 3600)
    assert shop.look(now + 3600).state() is HealthState.HEALTHY


def test_an_object_that_takes_too_much_and_changes_again_and_again_is_asked_about_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    custom = CustomHealth([HealthCheckExpr("apps/v1", "true", "Deployment")], Sandbox())
    asked: list[list[Identity]] = []

    def verdicts(objects: Any) -> Any:
        asked.append([identity_of(each) for each in objects])
        left = Health(Status.UNKNOWN, "used up", again=PAUSE) if len(asked) == 1 else Health(Status.CURRENT)
        return {each: left if each == WEB else Health(Status.UNKNOWN, "takes too much", again=PAUSE) for each in asked[-1]}

    monkeypatch.setattr(custom, "verdicts", verdicts)
    shop, now = watched("shop", API, WEB, custom=custom), time.monotonic()
    shop.see(WEB, live(shop, ready=1, identity=WEB))
    for turn in range(100):
        shop.see(API, live(shop, ready=1, version=str(turn)))
        shop.beat(now + turn * PAUSE / 100)
    assert asked == [[WEB, API]]
    shop.beat(now + PAUSE)
    assert asked == [[WEB, API]] * 2
    assert shop.look(now + PAUSE).verdicts[WEB].healthy


def test_an_object_applied_a_moment_ago_may_be_missing_from_the_watch() -> None:
    shop = watched("shop", API)
    shop.see(API, live(shop, ready=1))
    shop.applied = 0.0
    shop.read(declaring(API, WEB, history=(RUN,)), "2")
    now = time.monotonic()
    assert shop.lags(shop.look(now), now)
    assert not shop.lags(shop.look(now + 2 * GRACE), now + 2 * GRACE)
    shop.see(WEB, live(shop, ready=1, identity=WEB))
    assert not shop.lags(shop.look(now), now)


def test_a_record_of_the_same_run_makes_nothing_new() -> None:
    shop = watched("shop", API)
    shop.read(declaring(API, history=(RUN,)), "2")
    shop.applied = 7.0
    shop.read(declaring(API, history=(RUN,)), "3")
    assert shop.applied == 7.0


def test_a_job_that_removed_itself_is_noted_for_as_long_as_it_is_declared() -> None:
    job = Identity("batch", "Job", "shop", "migrate")
    shop = watched("shop", API)
    shop.read(declaring(API, job, ran=(Ran(job),)), "2")
    shop.see(API, live(shop, ready=1))
    look = shop.look(time.monotonic())
    assert look.verdicts[job] == SELF_REMOVED
    assert look.state() is HealthState.HEALTHY
    assert judged(shop.health, look, CLOCK, 300.0, ()).notes == (f"{job}: {SELF_REMOVED.message}",)


def test_a_note_of_a_healthy_object_is_no_cause_of_a_later_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    shop, clock = watched("shop", API), [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    shop.see(API, live(shop, ready=1))
    shop.explain({API: Finding(("FailedCreate",), "an old Warning")})
    shop.see(API, live(shop, ready=0))
    assert not shop._failing(clock[0] + 2 * STILL)
