"""Which fields hold what a Secret says: found again in paths that name elements otherwise than by their position."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.hidden_fields import WHOLE, HiddenFields, without
from handler.model.manifest import Manifest, canonical
from handler.model.names import Identity

pytestmark = pytest.mark.slow

BODY: dict[str, Any] = {
    "spec": {
        "replicas": 3,
        "on": True,
        "containers": [{"name": "web", "env": [{"name": "A", "value": "x"}, {"name": "B", "value": "y"}], "args": ["-p", "z"]}],
        "a/b~c": "k",
    }
}
WEB, A, B = (("name", "web"),), (("name", "A"),), (("name", "B"),)


def declared(body: dict[str, Any], *pointers: str) -> Manifest:
    return Manifest(Identity("", "Thing", "", "a"), "v1", canonical(body), "a.yaml:1", hidden=pointers)


def hidden(*pointers: str) -> HiddenFields:
    return HiddenFields.of(declared(BODY, *pointers))


@pytest.mark.parametrize(
    ("pointer", "path", "hides"),
    [
        ("/spec/replicas", ("spec", "replicas"), True),
        ("/spec/replicas", ("spec",), True),
        ("/spec/replicas", ("spec", "paused"), False),
        ("/spec/replicas", ("spec", "replicas", "more"), True),
        ("/spec/a~1b~0c", ("spec", "a/b~c"), True),
        ("/spec/containers/0/env/1/value", ("spec", "containers", WEB, "env", B, "value"), True),
        ("/spec/containers/0/env/1/value", ("spec", "containers", WEB, "env", B), True),
        ("/spec/containers/0/env/1/value", ("spec", "containers", WEB, "env", A, "value"), False),
        ("/spec/containers/0/env/1/value", ("spec", "containers", 7, "env", 5), True),
        ("/spec/containers/0/args/1", ("spec", "containers", WEB, "args", 0), True),
        ("/spec/containers/0/args/1", ("spec", "containers", WEB, "env", A), False),
    ],
)
def test_a_path_at_below_or_around_a_hidden_field_is_hidden(pointer: str, path: tuple[Any, ...], hides: bool) -> None:
    assert hidden(pointer).hides(path) is hides


def test_of_an_object_that_is_hidden_as_a_whole_only_top_level_fields_are_named() -> None:
    assert hidden(WHOLE).hides(("data", "key"))
    assert hidden(WHOLE).told(("data", "key")) == ("data",)
    assert without(declared(BODY, WHOLE)) == BODY, "what git declares isn't secret by that"


def test_an_element_isnt_named_by_a_hidden_field() -> None:
    path = ("spec", "containers", WEB, "env", B, "value")
    assert hidden("/spec/containers/0/env/1/name").told(path) == path[:4]
    assert hidden("/spec/containers/0/env/1/value").told(path) == path


def test_nothing_within_a_hidden_field_is_named() -> None:
    path = ("spec", "containers", WEB, "env", B, "value")
    assert hidden("/spec/containers/0/env", "/spec/containers/0/env/1/value").told(path) == path[:4]
    assert hidden("/spec").told(("spec", "swordfish")) == ("spec",)


@pytest.mark.parametrize("pointers", [("/l/0/x", "/l/100"), ("/l/100", "/l/0/x")])
def test_what_is_hidden_as_a_whole_stays_so_whatever_is_hidden_within(pointers: tuple[str, ...]) -> None:
    assert HiddenFields.of(declared({"l": [{"x": 1}] * 101}, *pointers)).hides(("l", 5, "y"))


def test_a_body_is_shown_without_them() -> None:
    env, args, none = "/spec/containers/0/env/1/value", "/spec/containers/0/args/1", "/spec/containers/5"
    shown = without(declared(BODY, "/spec/replicas", env, "/spec/a~1b~0c", "/spec/gone/x", args, none))
    assert shown["spec"]["replicas"] == shown["spec"]["a/b~c"] == shown["spec"]["containers"][0]["env"][1]["value"] == "***"
    assert shown["spec"]["containers"][0]["env"][0] == {"name": "A", "value": "x"}
    assert shown["spec"]["containers"][0]["args"] == ["-p", "***"]
    assert "gone" not in shown["spec"]


def test_many_hidden_fields_are_looked_up_not_compared() -> None:
    body = {"data": {f"k{number}": "x" for number in range(30_000)}}
    manifest = declared(body, *(f"/data/k{number}" for number in range(30_000)))
    found = HiddenFields.of(manifest)
    assert all(found.hides(("data", f"k{number}")) for number in range(30_000))
    assert not found.hides(("data", "other"))
    assert set(without(manifest)["data"].values()) == {"***"}


@pytest.mark.parametrize(
    ("one", "other", "hides", "shows"),
    [
        (("/spec/replicas",), ("/spec/on",), (("spec", "replicas"), ("spec", "on")), (("spec", "a/b~c"),)),
        ((), ("/spec/on",), (("spec", "on"),), (("spec", "replicas"),)),
        (("/spec/containers/0/args",), ("/spec/containers/0/args/1",), (("spec", "containers", WEB, "args", 0),), (("spec", "on"),)),
        ((), (), (), (("spec", "on"),)),
    ],
)
def test_two_hide_what_either_hides(one: Any, other: Any, hides: Any, shows: Any) -> None:
    for both in (hidden(*one) | hidden(*other), hidden(*other) | hidden(*one)):
        assert [path for path in (*hides, *shows) if both.hides(path)] == [*hides]
