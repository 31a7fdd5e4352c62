"""Siblings under new names: until each has taken over what it had, its old marks and its old record are its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.app.pause import pause_of, suspend
from handler.config.settings import Settings
from handler.model.event import Job
from handler.model.names import IDENTITY, Identity
from handler.model.result import Outcome
from handler.state.record import Suspend
from tests.fakes.engine import engine
from tests.unit.engine.two_targets import A, Bench, X, document

pytestmark = pytest.mark.slow

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


def test_another_installations_target_by_a_name_that_was_given_up_gives_nothing(bench: Bench) -> None:
    bench.configure(a={"name": "a-new", "renamed_from": "a"})
    own = {"a/own.json": document("own-a"), "b/own.json": document("own-b"), "b/y.json": document("y")}
    bench.host.push(bench.host.commit(own))
    bench.applied("a-new")
    two = engine(bench.server, bench.host, Settings(targets=(replace(A, path="other"),), installation="two"))
    theirs = {"other/x.json": document("x")}
    bench.host.push(bench.host.commit({**own, **theirs}))
    assert two.run(Job("a", "push")).outcome is Outcome.APPLIED
    bench.host.push(bench.host.commit({**own, **theirs, "b/x.json": document("x", "9")}))
    assert bench.run("b").outcome is Outcome.FAILED
    assert bench.owner() == "a"


def test_pauses_of_both_names_hold_what_git_moves_before_the_first_run_of_the_new_one(bench: Bench) -> None:
    bench.handler.dependencies("a").store.update(lambda state: replace(state, suspend=Suspend("ops", "a freeze")))
    bench.configure(a={"name": "a-new", "renamed_from": "a"})
    bench.push(b={"x": document("x", "9"), "y": document("y")})
    suspend(bench.handler, bench.targets[0], pause_of("ops", "the new name, too", ""))
    assert "belongs to target a-new, which declares it, too" in str(bench.run("b").problems[0])
    assert bench.owner() == "a"


def test_a_pause_of_the_old_name_holds_what_git_moves_while_the_new_one_is_held(bench: Bench) -> None:
    many = {f"c{number}": document(f"c{number}") for number in range(30)}
    bench.push(a={"x": document("x"), **many}, b={"y": document("y")})
    bench.applied("a", "b")
    before = bench.targets
    bench.configure(a={"name": "a-new", "renamed_from": "a"})
    bench.push(a={"x": document("x")}, b={"y": document("y")})
    assert bench.run("a-new").outcome is Outcome.HELD
    suspend(engine(bench.server, bench.host, Settings(targets=before)), before[0], pause_of("ada", "incident", ""))
    bench.push(b={"x": document("x", "9"), "y": document("y")})
    assert "it is suspended by ada" in str(bench.run("b").problems[0])
    assert bench.owner() == "a"
