"""How a watched target does, by what a worker is told of its members."""

from __future__ import annotations

import time
from typing import Any

import pytest

from handler.config.settings import HealthCheckExpr
from handler.model.errors import OperatorError
from handler.model.health import Health, HealthState, Status
from handler.render.sandbox import Sandbox
from handler.run.custom_health import CustomHealth
from handler.serve.health.watched import GRACE
from tests.unit.serve.watching import API, live, watched


def test_what_was_made_anew_has_lost_nothing() -> None:
    shop = watched("shop", API)
    shop.see(API, live(shop, ready=1))
    shop.see(API, None)
    shop.see(API, live(shop, ready=0, uid="u-2"))
    late = time.monotonic() + 2 * GRACE
    assert shop.look(late).state() is HealthState.PROGRESSING
    assert not shop.is_settling(time.monotonic())


def test_what_a_list_shows_as_another_object_has_lost_nothing() -> None:
    shop = watched("shop", API)
    shop.see(API, live(shop, ready=1))
    shop.see(API, live(shop, ready=0, uid="u-2"))
    assert shop.look(time.monotonic() + 2 * GRACE).state() is HealthState.PROGRESSING


def test_what_lost_its_health_unchanged_is_degraded_after_a_while() -> None:
    shop = watched("shop", API)
    shop.see(API, live(shop, ready=1))
    shop.see(API, live(shop, ready=0))
    assert shop.is_settling(time.monotonic())
    assert shop.look(time.monotonic() + 2 * GRACE).state() is HealthState.DEGRADED


def test_what_is_no_member_any_more_is_not_there() -> None:
    shop = watched("shop", API)
    shop.see(API, live(shop, ready=1))
    stolen = live(shop, ready=1)
    stolen["metadata"]["annotations"] = {}
    shop.see(API, stolen)
    assert shop.look(time.monotonic()).verdicts[API].status is Status.NOT_FOUND


def test_what_expressions_could_not_be_asked_of_is_unknown_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    custom = CustomHealth([HealthCheckExpr("apps/v1", "true", "Deployment")], Sandbox())
    answers: list[Any] = [OperatorError.of("sandbox", "can't be started"), {API: Health(Status.CURRENT)}]

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
    shop.beat(now + 1)
    assert len(answers) == 1, "asked again in a while"
    shop.beat(now + 3600)
    assert shop.look(now + 3600).state() is HealthState.HEALTHY
