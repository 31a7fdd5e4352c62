"""What two renders of the same inputs make otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.manifest import Manifest
from handler.model.render import UnstableFields
from handler.render.helm.chart_facts import Use
from handler.render.helm.made_anew import calls, renamed, unstable

USES = (Use("now", "b.yaml:1"), Use("randAlpha", "a.yaml:2"), Use("now", "c.yaml:1"), Use("now", "d.yaml:1"))


def made(place: str = "a.yaml:1", name: str = "x", **body: Any) -> Manifest:
    return Manifest.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **body}, place)


@pytest.mark.parametrize(
    ("one", "other", "paths"),
    [
        ({"data": {"a": "1", "b": "2"}}, {"data": {"a": "1", "b": "3"}}, ("/data/b",)),
        ({"data": {"a/b~c": "1"}}, {"data": {"a/b~c": "2"}}, ("/data/a~1b~0c",)),
        ({"l": [{"n": 1}, {"n": 2}]}, {"l": [{"n": 1}, {"n": 3}]}, ("/l/1/n",)),
        ({"l": [1]}, {"l": [1, 2]}, ("/l",)),
        ({"data": {"a": "1"}}, {"data": {"b": "1"}}, ("/data",)),
        ({"data": {"a": {"b": 1}}}, {"data": {"a": "1"}}, ("/data/a",)),
        ({"a": "1", "b": "1"}, {"a": "2", "b": "2"}, ("/a", "/b")),
        ({"a": "1", "b": "1"}, {"b": "1", "c": {}}, ("/a", "/c")),
        (
            {"metadata": {"name": "x", "labels": {"a": "1"}}},
            {"metadata": {"name": "x", "labels": {"b": "1"}}},
            ("/metadata/labels/a", "/metadata/labels/b"),
        ),
        ({"metadata": {"name": "x"}}, {"metadata": {"name": "x", "annotations": {"b": "1"}}}, ("/metadata/annotations",)),
    ],
)
def test_fields_that_differ_are_named_as_deep_as_the_shape_is_the_same(one: Any, other: Any, paths: tuple[str, ...]) -> None:
    first, second = made(**one), made(**other)
    assert unstable([first], [second], USES) == {first.identity: UnstableFields(paths, "randAlpha at a.yaml:2")}


def test_the_same_objects_are_stable() -> None:
    assert unstable([made(data={})], [made(data={})], USES) == {}
    assert not list(renamed([made()], [made()], USES))


def test_without_calls_in_its_template_the_first_calls_are_named() -> None:
    [fields] = unstable([made("e.yaml:1", data={})], [made("e.yaml:1")], USES).values()
    assert fields.why == "now at b.yaml:1, randAlpha at a.yaml:2, now at c.yaml:1 and 1 more"


def test_an_object_of_another_name_is_named_and_not_compared() -> None:
    assert unstable([made()], [made(name="y")], USES) == {}
    [note] = renamed([made()], [made(name="y")], USES)
    assert note.startswith("a.yaml:1: ConfigMap/x is another object at each render: randAlpha at a.yaml:2;")


def test_a_call_is_named_once() -> None:
    assert calls([USES[0], USES[0]], 3) == "now at b.yaml:1"
