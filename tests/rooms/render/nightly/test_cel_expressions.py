"""Expressions of the operator about live objects, in the real sandbox: Flux' order, Flux' answers, and budgets that hold."""

from __future__ import annotations

from handler.config.settings import HealthCheckExpr
from handler.engine.health.custom_health import KILLED, PAUSE, CustomHealth
from handler.model.health import Status
from handler.model.names import identity_of
from handler.render.sandbox import Sandbox
from tests.rooms.render.test_cel_expressions import live, sandbox  # noqa: F401 - fixtures, too


def test_a_target_whose_objects_kill_child_after_child_is_left_unknown(sandbox: Sandbox) -> None:
    large = HealthCheckExpr("example.com/v1", "status.a.replace('a', status.a).replace('a', status.a).replace('a', status.a) == ''")
    objects = [live({"a": "a" * 1000}, f"o{number}") for number in range(9)]
    found = CustomHealth([large], sandbox).verdicts(objects)
    assert {health.status for health in found.values()} == {Status.UNKNOWN}
    spent = [health for health in found.values() if health.message.endswith("other objects of this target have used up the time for all")]
    assert (len(found), len(spent)) == (9, 9 - KILLED)


def test_objects_that_kill_children_keep_the_others_from_their_verdicts_once(sandbox: Sandbox) -> None:
    large = "has(status.a) && status.a.replace('a', status.a).replace('a', status.a).replace('a', status.a) == ''"
    entry = HealthCheckExpr("example.com/v1", "status.phase == 'Open'", failed=large)
    custom = CustomHealth([entry], sandbox)
    objects = [*(live({"a": "a" * 1000}, f"o{number}") for number in range(KILLED + 1)), live({"phase": "Open"})]
    tea = identity_of(objects[-1])
    first = custom.verdicts(objects)[tea]
    assert (first.status, first.again) == (Status.UNKNOWN, PAUSE), "asked again by whoever wants to know"
    assert custom.verdicts(objects)[tea].healthy, "what killed children is known by now"
