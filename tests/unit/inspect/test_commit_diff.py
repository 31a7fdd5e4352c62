"""Which commits may be compared, and what a comparison of renders says; `tests/e2e/test_commit_diff.py` has real ones."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from handler.engine.run.errors import RequestRefused
from handler.inspect import commit_diff
from handler.inspect.commit_diff import CommitDiff, _compared, _Side, asked, recorded_commits
from handler.model.manifest import Manifest
from handler.model.names import Resource
from handler.model.render import Rendered, UnstableFields
from handler.model.to_json import ANSWER, plain
from handler.model.tree import ReadSet
from handler.state.record import Attempt, Pin, Run
from tests.unit.state.samples import NOON, blank

pytestmark = pytest.mark.slow

KINDS = {
    ("v1", "ConfigMap"): Resource("", "v1", "ConfigMap", "configmaps", namespaced=True),
    ("v1", "Namespace"): Resource("", "v1", "Namespace", "namespaces", namespaced=False),
}
FOUND = CommitDiff("shop", "a", "b")


def body(kind: str, name: str, data: Any = None, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **metadata}, "data": data or {}}


def side(*bodies: dict[str, Any], hidden: tuple[str, ...] = (), unstable: UnstableFields | None = None) -> _Side:
    manifests = tuple(replace(Manifest.of(each, f"deploy/a.yaml:{number}"), hidden=hidden) for number, each in enumerate(bodies, 1))
    anew = {manifests[0].identity: unstable} if unstable else {}
    return _Side.of(Rendered(manifests, ReadSet(()), unstable=anew), lambda version, kind: KINDS.get((version, kind)), "shop")


def rows(before: _Side, after: _Side) -> list[tuple[Any, ...]]:
    found = _compared(FOUND, before, after)
    return [(each.change, each.object, each.place, *((one.path, one.before, one.after) for one in each.fields)) for each in found.objects]


def test_only_what_the_record_names_may_be_compared() -> None:
    run = Run("shop.000000000000", "push", "applied", NOON, commit="d" * 40)
    state = replace(blank(), commit="a" * 40, pin=Pin("b" * 40), attempt=Attempt("c" * 40, "", "", "", NOON, back="e" * 40), history=(run,))
    assert recorded_commits(state) == {each * 40 for each in "abcde"}
    assert recorded_commits(blank()) == frozenset()
    asked(state, "", "a" * 40)
    asked(state, "b" * 40, "d" * 40)
    for before, after in (("a" * 40, "f" * 40), ("f" * 40, "a" * 40), ("a" * 40, ""), ("a" * 7, "b" * 40)):
        with pytest.raises(RequestRefused, match="isn't in the record of this target; anneal history"):
            asked(state, before, after)


def test_an_object_is_the_same_one_with_and_without_the_targets_namespace() -> None:
    before = side(body("ConfigMap", "a", {"x": "1"}), body("Namespace", "shop"))
    after = side(body("ConfigMap", "a", {"x": "2"}, namespace="shop"), body("Namespace", "shop"))
    assert rows(before, after) == [("changed", "ConfigMap/shop/a", "deploy/a.yaml:1", ("data.x", "1", "2"))]


def test_what_comes_and_goes_has_its_place_and_another_version_is_a_change() -> None:
    other = body("ConfigMap", "b")
    moved = {**body("Thing", "c"), "apiVersion": "example.com/v1"}
    before, after = side(body("ConfigMap", "a"), moved), side(other, {**moved, "apiVersion": "example.com/v2"})
    assert rows(before, after) == [
        ("deleted", "ConfigMap/shop/a", "deploy/a.yaml:1"),
        ("changed", "Thing/c", "deploy/a.yaml:2", ("apiVersion", "example.com/v1", "example.com/v2")),
        ("created", "ConfigMap/shop/b", "deploy/a.yaml:1"),
    ]


def test_what_each_render_makes_anew_is_no_change() -> None:
    unstable = UnstableFields(("/data/id",), "uuidv4")
    before = side(body("ConfigMap", "a", {"id": "1", "x": "1"}), unstable=unstable)
    after = side(body("ConfigMap", "a", {"id": "2", "x": "1"}), unstable=unstable)
    assert rows(before, after) == []


def test_a_field_that_either_commit_hides_is_masked_on_both_sides() -> None:
    before = side(body("ConfigMap", "a", {"x": "1"}))
    after = side(body("ConfigMap", "a", {"x": "2"}), hidden=("/data/x",))
    masked = [("changed", "ConfigMap/shop/a", "deploy/a.yaml:1", ("data.x", "***", "***"))]
    assert rows(before, after) == rows(after, before) == masked


def test_many_objects_and_fields_are_cut_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_diff, "MOST", 2)
    monkeypatch.setattr(commit_diff, "MOST_FIELDS", 3)
    before = side(*(body("ConfigMap", f"a{number}") for number in range(5)))
    after = side(*(body("ConfigMap", f"a{number}", {f"k{key}": "1" for key in range(9)}) for number in range(5)))
    found = _compared(FOUND, before, after)
    assert (found.count, len(found.objects), found.counts["changed"]) == (5, 2, 5)
    assert (found.objects[0].count, len(found.objects[0].fields)) == (9, 3)


def test_long_values_of_many_objects_stay_below_the_bytes_of_an_answer() -> None:
    long = {f"k{number}": "\u2603" * 5000 for number in range(commit_diff.MOST_FIELDS)}
    names = [f"c{number}" for number in range(100)]
    before, after = side(*(body("ConfigMap", name) for name in names)), side(*(body("ConfigMap", name, long) for name in names))
    found = _compared(FOUND, before, after)
    assert found.count == len(names) > len(found.objects) > 0
    assert len(json.dumps(plain(found))) < ANSWER * 1.1
