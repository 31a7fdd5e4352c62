"""Siblings under new names: until each has taken over what it had, its old marks and its old record are its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.model.names import IDENTITY, Identity
from handler.model.result import Outcome
from handler.state.record import Suspend
from tests.unit.engine.two_targets import Bench, X, document

Y = Identity("", "ConfigMap", "shop", "y")


@pytest.fixture
def bench() -> Bench:
    """Return two targets of which each has an object that the next commit gives to the other."""
    bench = Bench()
    bench.push(a={"x": document("x")}, b={"y": document("y")})
    bench.applied("a", "b")
    return bench


def rename(bench: Bench, *names: str) -> None:
    bench.configure(**{name: {"name": f"{name}-new", "renamed_from": name} for name in names})
    bench.push(a={"y": document("y")}, b={"x": document("x")})


def owners(bench: Bench) -> list[str]:
    lives = [bench.live(identity) or {} for identity in (X, Y)]
    return [live["metadata"]["annotations"][IDENTITY].partition(":")[0] for live in lives]


def test_two_targets_that_are_renamed_at_once_exchange_objects(bench: Bench) -> None:
    uids = [(bench.live(identity) or {})["metadata"]["uid"] for identity in (X, Y)]
    rename(bench, "a", "b")
    bench.applied("a-new", "b-new", "a-new")
    assert owners(bench) == ["b-new", "a-new"]
    assert [(bench.live(identity) or {})["metadata"]["uid"] for identity in (X, Y)] == uids
    records = [identity.name for identity, _ in bench.server.store.all() if identity.namespace == "anneal-system"]
    assert not {"anneal-a", "anneal-b"} & {*records}


def test_one_that_is_paused_under_its_old_name_keeps_what_it_has_there(bench: Bench) -> None:
    store = bench.handler.dependencies("b").store
    store.update(lambda state: replace(state, suspend=Suspend("ops", "a freeze")))
    rename(bench, "b")
    refused = bench.run("a")
    assert refused.outcome is Outcome.FAILED
    seen = str(refused.problems[0])
    assert "ConfigMap/shop/y: belongs to target b-new, which declares it, too" in seen
    assert "is suspended by ops" in seen
    assert owners(bench) == ["a", "b"]


def test_what_was_refused_for_a_target_that_is_configured_again_is_tried_again_by_a_tick(bench: Bench) -> None:
    both = bench.targets
    bench.push(b={"x": document("x")})
    bench.targets = (both[1],)
    bench.configure()
    refused = bench.run("b", "tick")
    assert "belongs to target a, which isn't configured any more" in str(refused.problems[0])
    assert bench.run("b", "tick").outcome is Outcome.FAILED
    bench.targets = both
    bench.configure()
    bench.applied("b", trigger="tick")
    assert bench.owner() == "b"
