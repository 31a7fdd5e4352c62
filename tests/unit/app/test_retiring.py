"""What configured targets claim of a target that ends: by their heads, and by what they have applied last."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.app.instances.listed_objects import KindNotServed
from handler.app.instances.registry import Instances
from handler.app.retiring import DeclaredClaims, certain_claims, retire_of
from handler.config.instance_target import instance_target
from handler.config.settings import Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.engine.retire import Retirement
from handler.engine.run.errors import EndUnsure
from handler.model.errors import AccessDenied
from handler.model.instance import Instance
from handler.model.names import Identity
from tests.unit.engine.two_targets import A, B, Bench, X, document


def looked(bench: Bench) -> Retirement:
    """Take a out of the configuration, and return what its end would do."""
    bench.targets = (B,)
    bench.configure()
    return retire_of(bench.handler, A, prune=True).look()


def test_what_a_target_declares_at_its_head_isnt_deleted() -> None:
    bench = Bench()
    bench.push(a={"x": document("x")})
    bench.applied("a", "b")
    bench.push(b={"x": document("x")})
    shown = looked(bench)
    assert {change.identity: change.reason for change in shown.staying} == {X: "let go: target b declares it"}


def test_what_a_target_has_applied_last_is_kept_until_it_has_applied_its_head() -> None:
    bench = Bench()
    bench.push(b={"x": document("x")})
    bench.applied("b", "a")
    bench.push(a={"x": document("x")})
    bench.applied("a")
    bench.push()
    reason = "let go: target b declares it in what it has applied last: `anneal apply b` before this, and it goes"
    assert {change.identity: change.reason for change in looked(bench).staying} == {X: reason}
    bench.applied("b")
    shown = looked(bench)
    assert not shown.staying
    assert X in {change.identity for change in shown.going}


TRIGGER = TriggerSettings(ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"),)))
TEMPLATE = replace(B, trigger=TRIGGER)
INSTANCE = instance_target(TEMPLATE, Instance(Identity("example.com", "Widget", "shop", "m"), "u", {}))
DECLARES = "target b.shop.m declares it"


def look(*answers: Any) -> Callable[[Instances, Target], dict[str, Target]]:
    found = iter(answers)

    def answer(_: Instances, __: Target) -> dict[str, Target]:
        now = next(found)
        if isinstance(now, Exception):
            raise now
        return {each.name: each for each in now}

    return answer


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ([INSTANCE], DECLARES),
        ([], None),
        (KindNotServed.of("Widget", "isn't served"), None),
    ],
)
def test_what_an_instance_of_another_template_declares_isnt_deleted(
    answer: Any, reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    bench.push(a={"x": document("x")}, b={"x": document("x")})
    bench.targets = (TEMPLATE,)
    bench.configure()
    monkeypatch.setattr(Instances, "look", look(answer))
    asked = DeclaredClaims(bench.handler, bench.handler.settings)
    assert asked.of(A, [X]).get(X) == reason
    assert certain_claims(bench.handler, bench.handler.settings, A, [X]) == {}, (
        "at the end of an instance others of templates aren't rendered"
    )


def test_while_instances_of_another_template_cant_be_seen_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.push(a={"x": document("x")})
    bench.applied("a")
    bench.targets = (TEMPLATE,)
    bench.configure()
    monkeypatch.setattr(Instances, "look", look(AccessDenied.of("Widget", "403")))
    with pytest.raises(EndUnsure, match=r"an instance of b may declare .*, and that can't be seen: Widget: 403"):
        retire_of(bench.handler, A, prune=True).look()


def test_a_head_that_broke_after_it_was_shown_ends_nothing() -> None:
    bench = Bench()
    bench.push(a={"x": document("x")})
    bench.applied("a", "b")
    bench.targets = (B,)
    bench.configure()
    claims = DeclaredClaims(bench.handler, bench.handler.settings)
    retire = retire_of(bench.handler, A, prune=True, claimed=claims)
    shown = retire.look()
    bench.push(b={"broken": "["})
    claims.forget()
    before = bench.uid()
    with pytest.raises(EndUnsure, match="target b may declare"):
        retire.carry_out(shown, threading.Event())
    assert bench.uid() == before
    assert bench.handler.store(A).read().state


def test_what_was_asked_is_asked_anew_once_it_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.push(b={"x": document("x")})
    bench.targets = (TEMPLATE,)
    bench.configure()
    monkeypatch.setattr(Instances, "look", look([INSTANCE], []))
    asked = DeclaredClaims(bench.handler, bench.handler.settings)
    assert asked.of(A, [X]) == {X: DECLARES}
    asked.forget()
    assert asked.of(A, [X]) == {}
