"""One commit moves objects between two targets of a repository: they stay what they are, whichever runs first, and nothing is deleted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from handler.config.settings import HoldAbove, Prune, Target
from handler.engine.planner.desired import Prepared, Preparer
from handler.model.event import Job
from handler.model.names import IDENTITY, Identity
from handler.model.plan import Action
from handler.model.result import Outcome
from handler.state.record import Pin, Suspend
from tests.fakes.apiserver.connection import Call
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import SHOP, state_of
from tests.unit.engine.two_targets import A, B, Bench, X, change_of, document

pytestmark = pytest.mark.slow


def test_hand_over_when_the_giver_runs_first(bench: Bench) -> None:
    uid = bench.uid()
    bench.push(b={"x": document("x")})
    left = change_of(bench.run("a"))
    assert (left.action, left.reason, left.sibling) == (Action.SKIP, "hand over to b", "b")
    assert (bench.uid(), bench.owner()) == (uid, "a")
    assert [orphan.sibling for orphan in state_of(bench.handler, "a").orphans] == ["b"]
    taken = change_of(bench.run("b"))
    assert (taken.action, taken.reason, taken.sibling) == (Action.UPDATE, "taken over from a", "a")
    assert (bench.uid(), bench.owner()) == (uid, "b")
    bench.later("a").run(Job("a", "tick"))
    assert state_of(bench.handler, "a").orphans == ()
    assert not any(method == "DELETE" for method, _ in bench.sent)


def test_hand_over_when_the_taker_runs_first(bench: Bench) -> None:
    uid = bench.uid()
    bench.push(b={"x": document("x", "2")})
    bench.applied("b", "a")
    assert (bench.uid(), bench.owner()) == (uid, "b")
    assert state_of(bench.handler, "a").orphans == ()
    assert bench.live()["data"] == {"key": "2"}  # type: ignore[index]  # it lives
    for trigger in ("tick", "drift"):
        assert all(bench.run(name, trigger).outcome is Outcome.UNCHANGED for name in ("a", "b"))


def test_fields_that_the_taker_does_not_declare_go_and_are_shown(bench: Bench) -> None:
    bench.push(a={"x": document("x", data={"key": "1", "more": "2"})})
    bench.applied("a")
    bench.push(b={"x": document("x")})
    shown = change_of(bench.run("b", dry_run=True))
    assert [(each.live, each.declared) for each in shown.fields if "more" in each.path] == [("2", "")]
    bench.applied("b")
    assert bench.live()["data"] == {"key": "1"}  # type: ignore[index]  # it lives


def test_nothing_is_rendered_or_asked_of_siblings_unless_something_is_pruned_or_taken(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else a run does: create, update, adopt, make anew, leave alone, hold a pin, look for drift."""
    rendered, prepare = set(), Preparer.prepare

    def noted(self: Preparer, *asked: Any, **how: Any) -> Prepared:
        rendered.add(self.target.name)
        return prepare(self, *asked, **how)

    monkeypatch.setattr(Preparer, "prepare", noted)
    states = f"/api/v1/namespaces/{bench.handler.settings.state_namespace}/configmaps"
    for name in ("found", "ignored"):
        body = json.loads(document(name))
        bench.server.must(Asked("POST", "/api/v1/namespaces/shop/configmaps", {"fieldManager": "kubectl-create"}, body, "", ""))
    flux, fixed = "kustomize.toolkit.fluxcd.io/ssa", {"anneal.dev/recreate": "allow"}
    left = {"ignored": document("ignored", annotations={flux: "Ignore"}), "once": document("once", annotations={flux: "IfNotPresent"})}
    old = bench.push(a={"x": document("x", "2"), "f": document("f", "1", fixed, immutable=True), "found": document("found"), **left})
    bench.applied("a")
    bench.push(a={"x": document("x", "3"), "f": document("f", "2", fixed, immutable=True), "found": document("found", "2"), **left})
    bench.applied("a")
    bench.applied("a", trigger="drift")
    assert bench.run("a", "replay", commit=old, rollback=True, actor="ann").outcome is Outcome.APPLIED
    assert (bench.live() or {})["data"] == {"key": "2"}
    assert rendered == {"a"}
    assert not any(path in (states, f"{states}/anneal-b") for _, path in bench.sent)


def test_an_object_that_no_sibling_takes_in_the_end_is_pruned(bench: Bench) -> None:
    """The sibling's next commit drops it before it ever ran; the giver's own files don't change any more."""
    bench.push(b={"x": document("x")})
    bench.applied("a")
    bench.push()
    bench.applied("a", "b")
    assert bench.live()
    assert bench.later("a").run(Job("a", "tick")).outcome is Outcome.APPLIED
    assert bench.live() is None
    assert state_of(bench.handler, "a").orphans == ()


@pytest.mark.parametrize("drift", ["report", "ignore"])
def test_an_object_dropped_by_the_sibling_is_pruned_although_drift_is_reported_or_ignored(bench: Bench, drift: str) -> None:
    bench.configure(a={"drift": drift})
    bench.push(b={"x": document("x")})
    bench.applied("a")
    bench.push()
    bench.later("a").run(Job("a", "tick"))
    assert bench.live() is None


def test_looks_for_a_lagging_push_back_off_and_name_their_next_try(bench: Bench) -> None:
    bench.push(b={"x": document("x")})
    result = bench.run("a")
    clock = bench.handler.dependencies("a").clock
    assert 0 < result.next_try - clock() <= 15
    bench.later("a", 100.0)
    result = bench.handler.run(Job("a", "tick"))
    assert 90 < result.next_try - bench.handler.dependencies("a").clock() <= 101


def test_an_object_declared_by_both_siblings_refuses_only_the_one_that_isnt_its_owner(bench: Bench) -> None:
    bench.push(a={"x": document("x", "2")}, b={"x": document("x", "3")})
    refused = bench.run("b")
    assert (refused.outcome, refused.code, len(refused.problems)) == (Outcome.FAILED, "plan-refused", 1)
    assert "belongs to target a, which declares it, too, at a/x.json:1" in str(refused.problems[0])
    assert refused.problems[0].place == "b/x.json:1"
    bench.applied("a")
    assert (bench.owner(), bench.live()["data"]) == ("a", {"key": "2"})  # type: ignore[index]  # it lives
    bench.push(b={"x": document("x", "3")})
    bench.applied("a", "b")
    assert bench.owner() == "b"


def test_an_immutable_field_that_changes_in_the_move_obeys_the_takers_rules(bench: Bench) -> None:
    bench.push(a={"x": document("x", immutable=True)})
    bench.applied("a")
    uid = bench.uid()
    bench.push(b={"x": document("x", "2", immutable=True)})
    refused = bench.run("b")
    assert refused.outcome is Outcome.FAILED
    assert "an immutable field changed" in str(refused.problems[0])
    bench.applied("a")
    assert (bench.uid(), bench.owner()) == (uid, "a")


def test_a_namespace_moves_with_what_is_in_it(bench: Bench) -> None:
    space, inside = Identity("", "Namespace", "", "jobs"), replace(X, namespace="jobs", name="inside")
    settings = {"namespaces": ("shop", "jobs"), "cluster_scoped": ("Namespace",)}
    bench.configure(a=settings, b=settings)
    whole = {
        "space": json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "jobs"}}),
        "inside": document("inside").replace('"namespace": "shop"', '"namespace": "jobs"'),
    }
    bench.push(a=whole)
    bench.applied("a")
    before = [(bench.live(each) or {})["metadata"]["uid"] for each in (space, inside)]
    bench.push(b=whole)
    planned = bench.run("b", dry_run=True)
    assert {change_of(planned, each).reason for each in (space, inside)} == {"taken over from a"}
    bench.applied("a", "b", "a")
    after = [(bench.live(each) or {})["metadata"] for each in (space, inside)]
    assert [each["uid"] for each in after] == before
    assert {each["annotations"][IDENTITY].partition(":")[0] for each in after} == {"b"}


def test_a_sibling_that_cannot_be_rendered_holds_what_would_be_pruned(bench: Bench) -> None:
    bench.push(b={"broken": "{"})
    result = bench.run("a")
    assert result.outcome in (Outcome.APPLIED, Outcome.UNCHANGED)
    left = change_of(result)
    assert (left.action, left.sibling) == (Action.SKIP, "b")
    assert "target b may declare it and can't be rendered" in left.reason
    assert "b/broken.json" in left.reason
    bench.push()
    bench.later("a").run(Job("a", "tick"))
    assert bench.live() is None


def test_a_giver_that_cannot_be_rendered_gives_nothing_up(bench: Bench) -> None:
    bench.push(a={"broken": "{"}, b={"x": document("x"), "y": document("y")})
    refused = bench.run("b")
    assert refused.outcome is Outcome.FAILED
    assert "belongs to target a, which can't be rendered" in str(refused.problems[0])
    assert bench.owner() == "a"
    assert bench.live(Identity("", "ConfigMap", "shop", "y")) is None, "half of a commit was applied"


@pytest.mark.parametrize("left", [{}, {"a/README.md": "moved"}], ids=["no path", "no manifest"])
def test_handing_all_objects_over_prunes_nothing(bench: Bench, left: dict[str, str]) -> None:
    bench.applied("a", "b")
    uid = bench.uid()
    both = {"b/x.json": document("x"), "b/own-a.json": document("own-a"), "b/own.json": document("own-b")}
    bench.host.push(bench.host.commit({**both, **left}))
    assert bench.run("a").outcome is Outcome.FAILED
    bench.applied("b")
    assert (bench.uid(), bench.owner()) == (uid, "b")
    assert bench.run("a").outcome is Outcome.FAILED
    assert bench.uid() == uid


def test_a_pinned_giver_keeps_what_its_commit_declares(bench: Bench) -> None:
    old = bench.host.head
    bench.push(a={"x": document("x"), "z": document("z")})
    bench.applied("a", "b")
    assert bench.run("a", "replay", commit=old, rollback=True, actor="ann").outcome is Outcome.APPLIED
    bench.push(a={"z": document("z")}, b={"x": document("x")})
    bench.run("a", "replay", commit=old, rollback=True, actor="ann")
    refused = bench.run("b")
    assert refused.outcome is Outcome.FAILED
    assert f"a/x.json:1 of {old[:12]}: it is pinned to {old[:12]}" in str(refused.problems[0])
    assert "`anneal unpin a`" in refused.problems[0].fix
    assert bench.run("a", "replay", unpin=True, actor="ann").outcome in (Outcome.APPLIED, Outcome.UNCHANGED)
    bench.applied("b")
    assert bench.owner() == "b"


def test_a_sibling_that_is_pinned_off_its_head_keeps_what_the_head_declares(bench: Bench) -> None:
    """A rollback of b alone must not cost the object that the commit it went back from moved to it."""
    old = bench.host.head
    bench.push(b={"x": document("x")})
    bench.run("b")
    assert bench.owner() == "b"
    bench.run("b", "replay", commit=old, rollback=True, actor="ann")
    assert (bench.owner(), state_of(bench.handler, "b").pin is not None) == ("b", True)
    left = change_of(bench.later("b").run(Job("b", "drift")))
    assert (left.action, left.reason) == (Action.SKIP, "hand over to a")
    bench.applied("a")
    assert bench.live()
    bench.run("b", "replay", unpin=True, actor="ann")
    assert bench.owner() == "b"


def test_a_giver_leaves_it_to_a_sibling_that_is_pinned_before_it(bench: Bench) -> None:
    old = bench.host.head
    bench.push(b={"x": document("x")})
    bench.run("b", "replay", commit=old, force=True, actor="ann")
    left = change_of(bench.run("a"))
    assert left.reason == f"hand over to b, which is pinned to {old[:12]}; `anneal unpin b` ends that"
    bench.run("b", "replay", unpin=True, actor="ann")
    assert bench.owner() == "b"


def test_objects_of_a_suspended_target_are_neither_taken_over_nor_pruned(bench: Bench) -> None:
    bench.handler.store(A).update(lambda state: replace(state, suspend=Suspend("ann", "an incident")))
    bench.push(b={"x": document("x")})
    refused = bench.run("b")
    assert "is suspended by ann" in str(refused.problems[0])
    assert "`anneal resume a`" in refused.problems[0].fix
    bench.handler.store(A).update(lambda state: replace(state, suspend=None))
    bench.applied("b", "a")
    assert bench.owner() == "b"


def test_handed_over_objects_dont_count_for_hold_above() -> None:
    bench = Bench((replace(A, prune=Prune(hold_above=HoldAbove(1, 0.1))), B))
    bench.push(a={name: document(name) for name in "pqrs"})
    bench.applied("a", "b")
    bench.push(b={name: document(name) for name in "pqrs"})
    bench.applied("a", "b")
    assert len([each for each in state_of(bench.handler, "b").declared if each.name in "pqrs"]) == 4


def test_an_object_is_handed_over_there_and_back_and_on(bench: Bench) -> None:
    bench.targets = (*bench.targets, Target("c", SHOP, ("shop",), path="c"))
    bench.configure()
    uid = bench.uid()
    for owner, order in (("b", "abc"), ("a", "abc"), ("c", "cba"), ("b", "bca"), ("a", "cba")):
        bench.push(**{owner: {"x": document("x", owner)}})
        bench.applied(*order)
        assert (bench.uid(), bench.owner()) == (uid, owner)
    for name in "abc":
        bench.later(name).run(Job(name, "tick"))
        assert state_of(bench.handler, name).orphans == ()


def test_a_sibling_that_moves_on_before_the_prune_keeps_the_object(bench: Bench) -> None:
    """Between the plan and the delete, b opens an attempt of a commit that the giver hasn't seen."""
    newer = "f" * 40
    store = bench.handler.store(B)

    def moves(call: Call) -> None:
        if call.asked.method == "PUT" and call.asked.path.endswith("/configmaps/anneal-a"):
            bench.before = lambda call: None
            store.update(lambda state: replace(state, commit=newer))

    bench.push()
    bench.before = moves
    result = bench.run("a")
    assert "target b has moved on" in change_of(result).reason
    assert bench.live()
    assert result.next_try
    store.update(lambda state: replace(state, commit=bench.host.head))
    bench.later("a").run(Job("a", "tick"))
    assert bench.live() is None


def test_a_giver_rolled_back_before_the_takeover_keeps_the_object(bench: Bench) -> None:
    old = bench.host.head
    head = bench.push(b={"x": document("x")})
    bench.run("a")
    store = bench.handler.store(A)

    def pins(call: Call) -> None:
        if call.asked.method == "PUT" and call.asked.path.endswith("/configmaps/anneal-b"):
            bench.before = lambda call: None
            away = bench.handler.dependencies("a").preparer.reads_at(head)
            store.update(lambda state: replace(state, pin=Pin(old, away, "ann", "rollback", "2026-03-01T12:00:00Z")))

    bench.before = pins
    result = bench.run("b")
    assert (result.outcome, bench.owner()) == (Outcome.FAILED, "a")
    assert "anneal unpin a" in result.problems[0].fix


ROLLOUT = """
apiVersion: workflow.kubernetes.io/v1alpha1
kind: Rollout
metadata: {{name: r}}
spec:
  groups:
  - name: first
    steps:
    - name: x
      object: x.json
      action: {action}
"""


def test_a_rollout_step_of_the_taker_takes_the_object_over(bench: Bench) -> None:
    uid = bench.uid()
    bench.configure(b={"rollout": "b/rollout.yaml"})
    bench.push(b={"x": document("x", "2")}, extra={"b/rollout.yaml": ROLLOUT.format(action="CreateOrUpdate")})
    bench.applied("b", "a")
    assert (bench.uid(), bench.owner(), bench.live()["data"]) == (uid, "b", {"key": "2"})  # type: ignore[index]  # it lives


def test_create_if_not_exist_takes_over_the_inventory_marks_and_leaves_the_content(bench: Bench) -> None:
    uid = bench.uid()
    bench.configure(b={"rollout": "b/rollout.yaml"})
    bench.push(b={"x": document("x", "2")}, extra={"b/rollout.yaml": ROLLOUT.format(action="CreateIfNotExist")})
    bench.applied("b", "a")
    assert (bench.uid(), bench.owner(), bench.live()["data"]) == (uid, "b", {"key": "1"})  # type: ignore[index]  # it lives
    assert state_of(bench.handler, "a").orphans == ()


def test_a_step_does_not_delete_what_a_sibling_declares(bench: Bench) -> None:
    bench.configure(a={"rollout": "a/rollout.yaml"})
    bench.push(a={"x": document("x")}, b={"x": document("x")}, extra={"a/rollout.yaml": ROLLOUT.format(action="DeleteIfExist")})
    refused = bench.run("a")
    assert "step x in first would delete it, but: hand over to b" in str(refused.problems[0])
    bench.applied("b")
    assert bench.owner() == "b"


def test_a_rollback_leaves_what_was_handed_over_since(bench: Bench) -> None:
    old, uid = bench.host.head, bench.uid()
    bench.push(a={"y": document("y")}, b={"x": document("x")})
    bench.applied("b", "a")
    result = bench.run("a", "replay", commit=old, rollback=True, actor="ann")
    assert result.outcome is Outcome.APPLIED, result
    left = change_of(result)
    assert (left.action, left.sibling) == (Action.SKIP, "b")
    assert bench.live(Identity("", "ConfigMap", "shop", "y")) is None, "the rest goes back"
    assert (bench.uid(), bench.owner()) == (uid, "b")
    bench.run("a", "replay", unpin=True, actor="ann")
    assert (bench.uid(), bench.owner()) == (uid, "b")


def test_a_target_suspended_in_the_configuration_is_resumed_there(bench: Bench) -> None:
    bench.configure(a={"suspend": True})
    bench.push(b={"x": document("x")})
    assert "removing `suspend: true` from target a in anneal.yaml" in bench.run("b").problems[0].fix


def test_an_object_that_becomes_a_siblings_hook_is_kept(bench: Bench) -> None:
    uid = bench.uid()
    bench.push(b={"x": document("x", annotations={"argocd.argoproj.io/hook": "PreSync"})})
    refused = bench.run("b")
    assert "belongs to target a" in refused.problems[0].message
    left = change_of(bench.run("a"))
    assert (left.action, left.sibling) == (Action.SKIP, "b")
    assert "declares it as a hook at b/x.json:1" in left.reason
    assert bench.uid() == uid
