"""What a sibling's record names keeps what it declares: its runs may yet come to it, though no head declares it any more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.config.settings import Settings, Target
from handler.engine.planner.siblings import SiblingQuestions
from handler.model.event import Job
from handler.model.plan import Action
from handler.model.result import Outcome
from handler.state.record import Attempt, Pin, Suspend
from tests.fakes.engine import SHOP, engine, state_of
from tests.unit.engine.two_targets import A, B, Bench, X, change_of, document

pytestmark = pytest.mark.slow

THEN = "2026-03-01T12:00:00Z"


@pytest.fixture
def old(bench: Bench) -> str:
    """b has taken x over from a, which is still on the commit by which it had x; the head declares it nowhere."""
    old = bench.host.head
    bench.push(b={"x": document("x")})
    bench.applied("b")
    bench.push()
    return old


def test_objects_of_a_siblings_rollback_commit_arent_pruned(bench: Bench, old: str) -> None:
    uid = bench.uid()
    left = change_of(bench.run("b"))
    assert (left.action, left.sibling) == (Action.SKIP, "a")
    assert left.reason == f"hand over to a, which was last brought to {old[:12]}; `anneal apply a` ends that"
    bench.run("a", "replay", commit=old, rollback=True, actor="ann")
    assert (bench.uid(), bench.owner()) == (uid, "a")
    bench.later("b").run(Job("b", "tick"))
    assert (bench.uid(), state_of(bench.handler, "b").orphans) == (uid, ())


def test_an_object_of_a_siblings_old_commit_is_pruned_once_that_is_on_the_head(bench: Bench, old: str) -> None:
    bench.applied("b", "a")
    assert state_of(bench.handler, "a").commit != old
    assert bench.live()
    bench.later("b").run(Job("b", "tick"))
    assert bench.live() is None


def test_a_siblings_applied_commit_is_read_from_its_record_without_a_render(bench: Bench, old: str) -> None:
    bench.host.lost.add(old)
    assert "was last brought to" in change_of(bench.run("b")).reason


def test_objects_of_a_siblings_open_attempt_arent_pruned(bench: Bench) -> None:
    """Its run resolved the head before another commit dropped x, and goes on to that: x deleted now would be made anew, empty."""
    bench.push(b={"x": document("x")})
    bench.applied("b", "a")
    newer = bench.push(a={"x": document("x")})
    bench.push()
    store = bench.handler.store(A)
    store.update(lambda state: replace(state, attempt=Attempt(newer, "a" * 64, "b" * 64, "lease-uid.1", THEN)))
    left = change_of(bench.run("b"))
    assert (left.action, left.sibling) == (Action.SKIP, "a")
    assert newer[:12] in left.reason
    store.update(lambda state: replace(state, attempt=None))
    bench.later("b").run(Job("b", "tick"))
    assert bench.live() is None


def test_no_sibling_is_rendered_after_the_first_that_declares_it(bench: Bench) -> None:
    bench.targets = (*bench.targets, Target("c", SHOP, ("shop",), path="c"))
    bench.configure()
    bench.push(a={"x": document("x")}, c={"broken": "{"})
    bench.applied("a")
    bench.push(b={"x": document("x")}, c={"broken": "{"})
    bench.sent.clear()
    assert change_of(bench.run("a")).reason == "hand over to b"
    assert not any(path.endswith("/configmaps/anneal-c") for _, path in bench.sent)


def test_what_the_pin_of_a_suspended_sibling_declares_is_kept(bench: Bench, old: str) -> None:
    """A person asked it to go back while it was suspended, on a commit that doesn't declare x; resumed, it goes there."""
    bench.push(a={"z": document("z")})
    bench.applied("a")
    head = bench.push()
    away = bench.handler.dependencies("a").preparer.reads_at(head)
    pin = Pin(old, away, "ann", "rollback", THEN)
    bench.handler.store(A).update(lambda state: replace(state, pin=pin, suspend=Suspend("ann", "an incident")))
    left = change_of(bench.run("b"))
    assert (left.action, left.sibling) == (Action.SKIP, "a")
    assert "is suspended by ann; `anneal resume a` ends that" in left.reason
    uid = bench.uid()
    bench.handler.store(A).update(lambda state: replace(state, suspend=None))
    assert bench.run("a").outcome in (Outcome.APPLIED, Outcome.UNCHANGED)
    assert (bench.uid(), bench.owner()) == (uid, "a")


def test_a_sibling_that_the_plan_has_not_looked_at_may_declare_it_by_now(bench: Bench) -> None:
    """What kept the object from being asked about may be gone, as the object is judged again."""
    asked = SiblingQuestions(B, bench.handler.dependencies("b").siblings)
    assert asked.doubt(X) == ("a", "target a has moved on since this was planned; looked at again soon")
    asked.claims([X])
    assert asked.doubt(X) == ("", "")


def test_a_namesake_of_another_installation_is_named_with_its_record_and_rests_like_any_refusal(bench: Bench) -> None:
    bench.push()
    bench.applied("a", "b")
    place = Settings(targets=(replace(A, path="other"),), installation="two", state_namespace="anneal-two")
    own = {f"{name}/own.json": document(f"own-{name}") for name in "ab"} | {"other/x.json": document("x")}
    bench.host.push(bench.host.commit(own))
    assert engine(bench.server, bench.host, place).run(Job("a", "push")).outcome is Outcome.APPLIED
    bench.host.push(bench.host.commit({**own, "b/x.json": document("x", "9")}))
    (refusal,) = bench.run("b", "tick").problems
    assert "belongs to target a of installation two, whose record is ConfigMap/anneal-two/anneal-a" in str(refusal)
    bench.sent.clear()
    assert bench.run("b", "tick").outcome is Outcome.FAILED
    assert not [path for method, path in bench.sent if method != "GET"], "nothing is tried as long as nothing has changed"
