"""What its taker only creates where it is missing, or leaves alone, is taken by its marks: its content stays, and its giver is done."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from handler.model.event import Job
from handler.model.names import IDENTITY, PART_OF
from handler.model.plan import Action
from handler.model.result import Outcome
from tests.fakes.apiserver.connection import Call
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import state_of
from tests.unit.engine.two_targets import A, B, Bench, change_of, document

pytestmark = pytest.mark.slow

FLUX = "kustomize.toolkit.fluxcd.io"
IN_GIT = [(f"{FLUX}/ssa", "IfNotPresent"), (f"{FLUX}/ssa", "Ignore"), (f"{FLUX}/reconcile", "disabled")]
ONCE = dict(IN_GIT[:1])
LIVE = "/api/v1/namespaces/shop/configmaps/x"


def content(bench: Bench) -> dict[str, Any]:
    """Return all of x but its marks, the version, and who wrote it."""
    body = copy.deepcopy(bench.live() or {})
    del body["metadata"]["labels"][PART_OF], body["metadata"]["annotations"][IDENTITY]
    return {**body, "metadata": {key: value for key, value in body["metadata"].items() if key not in ("resourceVersion", "managedFields")}}


def owned(bench: Bench) -> list[str]:
    """Return what of the content of x each manager owns."""
    return [json.dumps(entry["fieldsV1"].get("f:data")) for entry in (bench.live() or {})["metadata"]["managedFields"]]


def is_at_rest(bench: Bench) -> bool:
    """Whether x is b's, and neither target has anything left to do."""
    runs = [bench.run(name, trigger).outcome for name in "ab" for trigger in ("tick", "drift")]
    return bench.owner() == "b" and state_of(bench.handler, "a").orphans == () and set(runs) == {Outcome.UNCHANGED}


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize(("key", "value"), IN_GIT)
def test_hand_over_to_ssa_if_not_present_or_ignore_changes_the_marks_alone(bench: Bench, key: str, value: str, order: str) -> None:
    uid, before, owners = bench.uid(), content(bench), owned(bench)
    bench.push(b={"x": document("x", "2", {key: value})})
    bench.applied(*order)
    if order == "ab":
        bench.later("a").run(Job("a", "tick"))
    assert (bench.uid(), content(bench)) == (uid, before)
    assert owned(bench)[:1] == owners
    assert is_at_rest(bench)
    assert (bench.uid(), content(bench)) == (uid, before)


def test_the_plan_shows_the_marks_and_nothing_else(bench: Bench) -> None:
    bench.push(b={"x": document("x", "2", ONCE)})
    change = change_of(bench.run("b", dry_run=True))
    assert (change.action, change.reason, change.sibling) == (Action.UPDATE, "taken over from a; its content stays as it is", "a")
    assert [each.path for each in change.fields] == [f"metadata.annotations.{IDENTITY}", f"metadata.labels.{PART_OF}"]
    assert bench.owner() == "a"


def test_hand_over_of_an_object_with_live_reconcile_disabled_changes_its_marks_alone(bench: Bench) -> None:
    frozen = {"metadata": {"annotations": {f"{FLUX}/reconcile": "disabled"}}}
    bench.server.must(Asked("PATCH", LIVE, {"fieldManager": "kubectl-annotate"}, frozen, "application/merge-patch+json", ""))
    before = content(bench)
    bench.push(b={"x": document("x", "2")})
    bench.applied("a", "b")
    bench.applied("a", trigger="drift")
    assert content(bench) == before
    assert (bench.owner(), state_of(bench.handler, "a").orphans) == ("b", ())


def test_an_if_not_present_object_declared_by_both_siblings_is_refused(bench: Bench) -> None:
    bench.push(a={"x": document("x")}, b={"x": document("x", "2", ONCE)})
    refused = bench.run("b")
    assert refused.outcome is Outcome.FAILED
    assert "belongs to target a, which declares it, too, at a/x.json:1" in str(refused.problems[0])
    bench.applied("a")
    assert bench.owner() == "a"


@pytest.mark.parametrize(("key", "value"), IN_GIT)
def test_an_if_not_present_object_of_no_sibling_is_skipped(bench: Bench, key: str, value: str) -> None:
    bench.configure(b={"revision": replace(B.revision, branch="next")})
    bench.push(b={"x": document("x", "2", {key: value})})
    change = change_of(bench.run("b"))
    assert (change.action, bench.owner()) == (Action.SKIP, "a")


def test_an_if_not_present_object_declared_plainly_later_is_applied(bench: Bench) -> None:
    """What the giver applied is still ours to take away: the marks have changed hands, not who owns the fields."""
    bench.push(a={"x": document("x", data={"key": "1", "more": "2"})})
    bench.applied("a")
    bench.push(b={"x": document("x", "2", ONCE)})
    bench.applied("b", "a")
    bench.push(b={"x": document("x")})
    bench.applied("b")
    assert (bench.live() or {})["data"] == {"key": "1"}
    bench.push()
    bench.applied("b")
    assert bench.live() is None


@pytest.mark.parametrize("what", ["changes", "goes"])
def test_an_object_changed_before_its_marks_are_written_is_judged_again(bench: Bench, what: str) -> None:
    bench.push(b={"x": document("x", "2", ONCE)})
    edited = {"data": {"key": "by hand"}}

    def meddles(call: Call) -> None:
        if call.asked.method == "PATCH" and call.asked.path == LIVE and not call.asked.dry:
            bench.before = lambda call: None
            if what == "changes":
                bench.server.must(Asked("PATCH", LIVE, {"fieldManager": "kubectl-edit"}, edited, "application/merge-patch+json", ""))
            else:
                bench.server.must(Asked("DELETE", LIVE, {}, None, "", ""))

    bench.before = meddles
    bench.applied("b", "a")
    assert (bench.owner(), (bench.live() or {})["data"]["key"]) == ("b", "by hand" if what == "changes" else "2")


def test_a_giver_with_a_newer_record_before_the_write_keeps_the_object(bench: Bench) -> None:
    bench.push(b={"x": document("x", "2", ONCE)})
    store = bench.handler.store(A)

    def moves(call: Call) -> None:
        if call.asked.method == "PUT" and call.asked.path.endswith("/configmaps/anneal-b"):
            bench.before = lambda call: None
            store.update(lambda state: replace(state, commit="f" * 40))

    bench.before = moves
    assert bench.run("b").outcome is Outcome.FAILED
    assert bench.owner() == "a"
