"""What a render for a pull request sees of the cluster's values: keys, and placeholders of the same types."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from handler.model.outside_inputs import APIS, VALUES, NothingOutside
from handler.render.placeholder_inputs import PlaceholderInputs, stood_in

CANARY = "hunter2-canary"
VALUE = f"""
image: {{tag: {CANARY}}}
replicas: 4711
enabled: true
ratio: 0.75
nothing: null
list: [{CANARY}, 4711]
"""


class Cluster(NothingOutside):
    """A cluster with one Secret."""

    def ask(self, name: str) -> str:
        return f"version of {name}"

    def values(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        found = {"values.yaml": VALUE.encode(), "password": CANARY.encode(), "phrase": f"pass {CANARY}: x".encode()}
        return found if name == "shop" else None


@pytest.mark.parametrize("number", [1, 2])
def test_values_keep_their_keys_and_types_and_nothing_of_what_they_are(number: int) -> None:
    found = PlaceholderInputs(Cluster(), number, {("Secret", "shop", "values.yaml")}).values("Secret", "shop")
    assert found is not None
    assert CANARY.encode() not in b"".join(found.values())
    assert b"4711" not in b"".join(found.values())
    made = json.loads(found["values.yaml"])
    assert {key: type(value) for key, value in made.items()} == {
        "image": dict,
        "replicas": int,
        "enabled": bool,
        "ratio": float,
        "nothing": type(None),
        "list": list,
    }


def test_both_sets_differ_in_each_value() -> None:
    one, other = (json.loads(stood_in(VALUE.encode(), number)) for number in (1, 2))
    assert all(one[key] != other[key] for key in one if key != "nothing")
    for pair in ((one["image"]["tag"], other["image"]["tag"]), (one["replicas"], other["replicas"]), (one["ratio"], other["ratio"])):
        letters = [set(str(each)) - {"."} for each in pair]
        assert not letters[0] & letters[1], "no look at a character makes both the same"


@pytest.mark.parametrize("value", [b"plain", b"\xff\xfe", b"- " * 200, b"a: &x [1]\nb: *x\n", b"{" * 100, b""])
def test_what_is_no_plain_yaml_is_one_placeholder_or_less(value: bytes) -> None:
    assert len(stood_in(value, 1)) < 2000


def test_a_missing_object_is_missing_and_its_version_is_not_told() -> None:
    inputs = PlaceholderInputs(Cluster(), 1)
    assert inputs.values("Secret", "absent") is None
    assert inputs.ask(f"{VALUES}Secret/shop") == ""
    assert inputs.ask(APIS) == f"version of {APIS}"
