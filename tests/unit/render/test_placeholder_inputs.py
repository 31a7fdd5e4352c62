"""What a render for a pull request sees of the cluster's values: keys, and placeholders of the same types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from handler.config.yaml_nodes import MAX_DEPTH
from handler.model.outside_inputs import APIS, VALUES, NothingOutside
from handler.render.placeholder_inputs import PlaceholderInputs, stood_in, with_placeholders

pytestmark = pytest.mark.slow

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


WORD = "placeholder"


def placed(text: str, *, second: bool = False) -> Any:
    return json.loads(with_placeholders(text.encode(), WORD, second=second))


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("a: text", WORD, WORD),
        ("a: '17'", WORD, WORD),
        ("a: 4711", 0, 17),
        ("a: -1", 0, 17),
        ("a: 0x1F", 0, 17),
        ("a: 0.75", 0.5, 1.72),
        ("a: .inf", 0.5, 1.72),
        ("a: true", False, True),
        ("a: false", False, True),
        ("a: off", False, True),
        ("a: null", None, None),
        ("a: ~", None, None),
        ("a:", None, None),
        ("a: 2026-03-01", WORD, WORD),
        ("a: !!binary aGVsbG8=", WORD, WORD),
        ("a: !Ref other", WORD, WORD),
        ("a: ''", WORD, WORD),
        ("a: |\n  several\n  lines\n", WORD, WORD),
        ("a: []", [], []),
        ("a: {}", {}, {}),
        ("a: [1, x, {b: 2}]", [0, WORD, {"b": 0}], [17, WORD, {"b": 17}]),
        ("a: !Odd {b: x}", {"b": WORD}, {"b": WORD}),
    ],
)
def test_each_value_becomes_a_placeholder_of_its_type(text: str, first: Any, second: Any) -> None:
    assert placed(text) == {"a": first}
    assert placed(text, second=True) == {"a": second}
    assert type(placed(text)["a"]) is type(first)


def test_a_list_is_one_of_placeholders() -> None:
    assert placed("- a\n- 1\n- - true\n") == [WORD, 0, [False]]


def test_keys_are_texts_and_those_that_are_none_go() -> None:
    assert placed("1: a\ntrue: b\n? [x, y]\n: c\n? {z: 1}\n: d\n") == {"1": WORD, "true": WORD}


def test_an_anchor_is_read_where_it_is_used() -> None:
    assert placed("base: &base {replicas: 3}\nother: *base\n") == {"base": {"replicas": 0}, "other": {"replicas": 0}}


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"text",
        b"4711",
        b"null",
        b"# only a comment",
        b"\xff\xfe",
        b"a: \xff",
        b"a: [",
        b"a: b: c",
        b"*anchor",
        b"a: 1\n---\nb: 2\n",
        b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
        b"a: &a [1]\nb: *c\n",
        b"a: &a [*a]\n",
        b"\x00",
    ],
)
def test_what_is_no_mapping_or_list_that_can_be_read_is_none(value: bytes) -> None:
    assert with_placeholders(value, WORD, second=False) == ""


def test_aliases_that_expand_beyond_bounds_are_none() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]" for number in range(1, 9)]
    assert with_placeholders("\n".join(rows).encode(), WORD, second=False) == ""


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="abc", min_size=1, max_size=3), inner, max_size=3),
    max_leaves=8,
)


def shape(value: Any) -> Any:
    """Return the keys of a value, its lengths and its types."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    return [shape(each) for each in value] if isinstance(value, list) else type(value)


@given(st.dictionaries(st.text(alphabet="abc", min_size=1, max_size=3), DOCUMENTS, max_size=3))
def test_the_shape_stays_and_no_value_does(value: dict[str, Any]) -> None:
    made = [placed(json.dumps(value), second=second) for second in (False, True)]
    assert [shape(each) for each in made] == [shape(value)] * 2
    for each, allowed in zip(made, ({0, None, WORD}, {17, True, None, WORD}), strict=True):
        assert set(leaves(each)) <= allowed


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each)
    else:
        yield value


def test_what_a_mapping_takes_over_from_others_is_its_own_as_a_chart_sees_it() -> None:
    text = b"a: &a {x: 1, y: s}\nb: &b {y: 1, z: 2}\none: {<<: *a, x: own}\nmany: {<<: [*a, *b]}\nkey: {'<<': 3}\n"
    found = json.loads(with_placeholders(text, "word", second=False))
    assert found["one"] == {"x": "word", "y": "word"}
    assert found["many"] == {"x": 0, "y": "word", "z": 0}
    assert found["key"] == {"<<": 0}
    assert yaml.safe_load(text)["many"].keys() == found["many"].keys()
