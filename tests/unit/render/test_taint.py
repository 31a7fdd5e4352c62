"""What of a render is hidden because it may hold what isn't in git: by place, whatever the values are."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.model.hidden_fields import without
from handler.model.manifest import Manifest
from handler.model.render import UnstableFields
from handler.render.taint import with_hidden

pytestmark = pytest.mark.slow

SETS = ("placeholder", "substituting" * 5)


def manifest(name: str = "web", kind: str = "ConfigMap", **parts: Any) -> Manifest:
    return Manifest.of({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}, **parts})


def hidden(make: Callable[[Any], list[Manifest]], value: Any, sets: tuple[Any, Any] = SETS) -> dict[str, tuple[str, ...]]:
    made = with_hidden(make(value), [make(each) for each in sets], {})
    return {each.identity.name: each.hidden for each in made}


@pytest.mark.parametrize(
    ("make", "pointers"),
    [
        (lambda v: {"data": {"a": "open", "b": f"x-{v}"}}, ("/data/b",)),
        (lambda v: {"data": {"a": v, v: "x"}}, ("/data",)),
        (lambda v: {"spec": {"args": ["-p", v], "a/b~c": v}}, ("/spec/a~1b~0c", "/spec/args/1")),
        (lambda v: {"spec": {"args": ["x"] * len(v)}}, ("/spec/args",)),
        (lambda v: {"spec": {"on": {"x": 1}} if v == "sesame" else {}}, ("/spec",)),
        (lambda v: {"spec": v} if v == "sesame" else {}, ("/spec",)),
        (lambda v: {"spec": {} if v == "sesame" else {"on": 1}}, ("/spec/on",)),
        (lambda v: {"metadata": {"name": "web", "namespace": "shop", "labels": {"a": v}}}, ("/metadata/labels/a",)),
        (lambda v: {"data": {"a": "open"}}, ()),
    ],
)
def test_a_field_that_another_value_makes_otherwise_is_hidden(make: Any, pointers: tuple[str, ...]) -> None:
    assert hidden(lambda value: [manifest(**make(value))], "sesame") == {"web": pointers}


@pytest.mark.parametrize(("one", "other"), [(0, 17), (False, True), (0.5, 1.72)])
def test_a_number_or_a_truth_value_that_a_placeholder_has_is_hidden_too(one: Any, other: Any) -> None:
    for value in (one, other):
        assert hidden(lambda v: [manifest(spec={"n": v})], value, (one, other)) == {"web": ("/spec/n",)}


def test_an_object_that_only_the_values_make_is_hidden_but_for_what_names_it() -> None:
    def make(value: str) -> list[Manifest]:
        extra = manifest("more", metadata={"name": "more", "labels": {"a": "b"}}, data={"a": "b"})
        return [manifest(), *([extra] if value == "sesame" else [])]

    assert hidden(make, "sesame") == {"web": (), "more": ("/data", "/metadata/labels")}


def test_a_name_with_kustomizes_hash_is_the_same_object_wherever_it_stands() -> None:
    names = {"sesame": "made-5k8t2h6mbd", SETS[0]: "made-b7d2fk9gcm", SETS[1]: "made-mmgg442255"}

    def make(value: str) -> list[Manifest]:
        uses = manifest("web", "Deployment", spec={"from": [{"name": names[value]}], "plain": f"x-{names[value]}"})
        return [manifest(names[value], data={"open": "1", "a": value}), uses]

    assert hidden(make, "sesame") == {names["sesame"]: ("/data/a",), "web": ("/spec/plain",)}


def test_what_each_render_makes_anew_is_another_matter() -> None:
    made = [manifest(data={"seed": each, "a": "x"}) for each in ("1", "2", "3")]
    (found,) = with_hidden(made[:1], [[each] for each in made[1:]], {made[0].identity: UnstableFields(("/data/seed",), "randAlpha")})
    assert found.hidden == ()


def test_without_any_other_render_all_is_hidden() -> None:
    (found,) = with_hidden([replace(manifest(data={"a": "1"}), hidden=("/data/a",))], [], {})
    assert found.hidden == ("/data/a", "/data")


JSON = st.recursive(st.text(max_size=6) | st.integers(-2, 20) | st.booleans(), lambda below: st.lists(below, max_size=3), max_leaves=6)
BODIES = st.dictionaries(st.sampled_from("abcd"), JSON | st.just("${v}") | st.just("x-${v}"), max_size=4)


@given(BODIES, BODIES, st.text(alphabet="sesam", min_size=5, max_size=12), st.text(alphabet="openly", min_size=5, max_size=12))
def test_what_is_hidden_and_shown_is_the_same_whatever_a_value_is_that_is_passed_on(
    data: dict[str, Any], spec: dict[str, Any], one: str, other: str
) -> None:
    text = json.dumps({"data": data, "spec": spec})

    def make(value: str) -> list[Manifest]:
        return [manifest(**json.loads(text.replace("${v}", value)))]

    shown = [[without(each) for each in with_hidden(make(value), [make(each) for each in SETS], {})] for value in (one, other)]
    assert shown[0] == shown[1]
    if one not in text:
        assert one not in json.dumps(shown)
