"""Bytes -> documents: as Go reads them, and never another exception than ours."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.model.errors import ManifestInvalid, Problem
from handler.render.document import MAX_BYTES, Document
from handler.render.documents import documents, parse
from tests.unit.render.go_yaml_golden import GOLDEN
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow


def _value(text: str, path: str = "a.yaml") -> Any:
    ((_, value),) = parse(text.encode(), path)
    return value


def _mistakes(data: str | bytes, path: str = "a.yaml") -> list[str]:
    with pytest.raises(ManifestInvalid) as caught:
        parse(data.encode() if isinstance(data, str) else data, path)
    return [str(problem) for problem in caught.value.problems]


@each_row(("text", "expected"), GOLDEN)
def test_yaml_is_read_as_the_api_server_reads_it(text: str, expected: str) -> None:
    found = _value(text)
    assert json.dumps(found, sort_keys=True) == json.dumps(json.loads(expected), sort_keys=True)


@each_row(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "a.yaml:3: key a: written twice, first in line 1"),
        ('1: a\n"1": b', "a.yaml:2: key 1: written twice, first in line 1"),
        ("y: a\ntrue: b", "a.yaml:2: key true: written twice, first in line 1"),
        ("v: .inf", "a.yaml:1: key v: infinity and NaN can't be written as JSON; quote it if it is text"),
        ("- 1\n- .nan", "a.yaml:2: value: infinity and NaN can't be written as JSON; quote it if it is text"),
        ("~: a", "a.yaml:1: key: a key is null; quote it if it is text"),
        ("18446744073709551615: a", "a.yaml:1: key: a key must be text"),
        ("{a: 1}: x", "a.yaml:1: key: a mapping or sequence can't be a key"),
        ("? [a]\n: b", "a.yaml:1: key: a mapping or sequence can't be a key"),
        ("a: &a [1]\n*a : b", "a.yaml:2: key: a mapping or sequence can't be a key"),
        ("a:\n  v: !foo bar", "a.yaml:2: key v: unknown tag; a text that begins with ! must be quoted"),
        ("v: !foo {a: 1}", "a.yaml:1: key v: unknown tag; a text that begins with ! must be quoted"),
        ("v: !!omap [a: 1]", "a.yaml:1: key v: unknown tag; a text that begins with ! must be quoted"),
        ("v: !!python/object:os.system x", "a.yaml:1: key v: unknown tag; a text that begins with ! must be quoted"),
        ("v: !!int x", "a.yaml:1: key v: the value isn't a !!int"),
        ("v: !!timestamp x", "a.yaml:1: key v: the value isn't a !!timestamp"),
        ("v: !!binary a_$", "a.yaml:1: key v: !!binary must be base64 of UTF-8 text; other bytes belong in binaryData, without a tag"),
        ("v: !!binary /w==", "a.yaml:1: key v: !!binary must be base64 of UTF-8 text; other bytes belong in binaryData, without a tag"),
        ("<<: 5", "a.yaml:1: key <<: merges a mapping or a sequence of mappings, nothing else"),
        ("a: &a [{b: 1}]\n<<: *a", "a.yaml:2: key <<: merges a mapping or a sequence of mappings, nothing else"),
        ("<<: [5]", "a.yaml:1: key <<: merges a mapping or a sequence of mappings, nothing else"),
        ("a:\n  b: *c", "a.yaml:2: key b: an alias of no anchor that stands before it; a text that begins with * must be quoted"),
        ("a: &a\n- *a", "a.yaml:2: value: an alias of a value that contains itself"),
        ("a:\n\t- 1", "a.yaml:2: YAML: found character that cannot start any token"),
        ("a: b: c", "a.yaml:1: YAML: mapping values are not allowed in this context"),
        ("ok: 1\nbad: \x01", "a.yaml:2: YAML: control characters are not allowed"),
        (b"ok: 1\nbad: \xff", "a.yaml:2: file: isn't UTF-8"),
        ("a: b".encode("utf-16"), "a.yaml:1: file: isn't UTF-8"),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str | bytes, message: str) -> None:
    assert _mistakes(text) == [message]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "a": 2}', "a.json:2: key a: written twice"),
        ('{}\n\n{"b": {"a": 1},\n "a": {"a":\n3, "c": "a", "a"\n: 2}}', "a.json:5: key a: written twice"),
        ('{"a": NaN}', "a.json:1: JSON: NaN is no number that JSON knows"),
        ('[1,\n"-Infinity",\n[-Infinity]]', "a.json:3: JSON: -Infinity is no number that JSON knows"),
        ('{"a": 1e999}', "a.json:1: JSON: 1e999 is no number that JSON knows"),
        ('{"a": 1}\n{"b": }', "a.json:2: JSON: Expecting value"),
        ('{"a": "\\ud800"}', "a.json:1: JSON: holds half of a surrogate pair, which is no character"),
        ('["\\ud83d\\ude00",\n"\\\\ud800",\n{"\\udc00": 1}]', "a.json:3: JSON: holds half of a surrogate pair, which is no character"),
        ("[" * 300 + "]" * 300, "a.json:1: JSON: nested deeper than 200 levels"),
        ("[" * 100_000, "a.json:1: JSON: nested deeper than 200 levels"),
    ],
)
def test_json_has_the_same_rules(text: str, message: str) -> None:
    assert _mistakes(text, "a.json") == [message]


def test_every_mistake_of_a_json_value_has_its_own_line() -> None:
    assert _mistakes('{"a": 1,\n"x": "\\ud800",\n"b": NaN,\n"a": 2,\n"c": [NaN]}', "a.json") == [
        "a.json:3: JSON: NaN is no number that JSON knows",
        "a.json:5: JSON: NaN is no number that JSON knows",
        "a.json:4: key a: written twice",
        "a.json:2: JSON: holds half of a surrogate pair, which is no character",
    ]


def test_a_key_written_more_than_twice_takes_no_line_from_the_next_object() -> None:
    assert _mistakes('[{"a": 1,\n"a": 2,\n"a": 3},\n{"a": 1,\n"a": 2}]', "a.json") == [
        "a.json:2: key a: written twice",
        "a.json:5: key a: written twice",
    ]


@pytest.mark.parametrize("letters", ["x", "\\n", "x\\n"])
def test_the_line_of_a_mistake_beside_a_long_json_text_takes_no_memory_for_each_letter(letters: str) -> None:
    text = f'["{letters * (1_000_000 // len(letters))}",\nNaN]'
    tracemalloc.start()
    try:
        assert _mistakes(text, "a.json") == ["a.json:2: JSON: NaN is no number that JSON knows"]
        assert tracemalloc.get_traced_memory()[1] < 10 * len(text)
    finally:
        tracemalloc.stop()


def test_json_numbers_are_written_as_go_writes_them() -> None:
    text = '{"a": 1.0, "b": 1e3, "c": 18446744073709551616, "d": 1.5, "e": 123456789012345678901234567890}'
    assert json.dumps(_value(text, "a.json")) == '{"a": 1, "b": 1000, "c": 18446744073709552000, "d": 1.5, "e": 1.2345678901234568e+29}'


def test_a_file_may_hold_several_documents_each_with_its_line() -> None:
    assert parse(b"# first\na: 1\n---\n---\n# only a comment\n--- # second\n\nb: 2\n...\n---\nc: 3\n", "a.yaml") == [
        (2, {"a": 1}),
        (6, None),
        (8, {"b": 2}),
        (11, {"c": 3}),
    ]
    assert parse(b'\xef\xbb\xbf{"a": 1}\n\n{"b": 2}\n', "a.json") == [(1, {"a": 1}), (3, {"b": 2})]


def test_all_mistakes_of_a_file_are_told_and_its_good_documents_survive_them() -> None:
    found = list(documents(b"a: [\n---\nb: 1\nb: 2\nc: !x 1\n---\nd: 4\n", "a.yaml"))
    assert [str(item) for item in found if isinstance(item, Problem)] == [
        "a.yaml:2: YAML: did not find expected node content",
        "a.yaml:4: key b: written twice, first in line 3",
        "a.yaml:5: key c: unknown tag; a text that begins with ! must be quoted",
    ]
    assert [item.value for item in found if isinstance(item, Document)] == [{"d": 4}]


def _alias_bomb(levels: int) -> str:
    return "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, levels))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_alias_bomb(9), "stands for more than 1,000,000 values once its aliases are written out"),
        (f"a: &a {'x' * 100_000}\nb: [{'*a,' * 1000}]", "stands for more than 1,000,000 values once its aliases are written out"),
        (
            f"a0: &a0 {{x: 1}}\n{''.join(f'a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: 1}}' + chr(10) for n in range(1, 40))}",
            "once its aliases",
        ),
        ("[" * 50_000, "nested deeper than 200 levels"),
        ("{a: " * 50_000, "nested deeper than 200 levels"),
        ("- " * 5_000 + "x", "nested deeper than 200 levels"),
        ("".join("  " * n + "a:\n" for n in range(1_000)), "nested deeper than 200 levels"),
        ("#" * (MAX_BYTES + 1), "at most 10,000,000 are read"),
    ],
    ids=["aliases", "long text", "merges", "brackets", "braces", "compact", "indent", "size"],
)
def test_a_yaml_alias_bomb_or_deep_nesting_is_refused(text: str, message: str) -> None:
    (mistake,) = _mistakes(text)
    assert message in mistake


def test_nodes_of_all_documents_of_a_file_are_counted_together() -> None:
    big = f"a: &a [{'x,' * 1000}]\nb: [{'*a,' * 400}]\n"
    assert len(parse(f"{big}---\n{big}".encode(), "a.yaml")) == 2
    (mistake,) = _mistakes(f"{big}---\n{big}---\n{big}")
    assert "more than 1,000,000 values" in mistake


def test_deep_but_sane_nesting_is_read() -> None:
    assert json.dumps(_value("[" * 199 + "]" * 199)) == "[" * 199 + "]" * 199


_FRAGMENTS = [
    "a",
    ":",
    " ",
    "\n",
    "- ",
    "[",
    "]",
    "{",
    "}",
    "&a ",
    "*a",
    "<<",
    "!!set ",
    "!x ",
    "---\n",
    "...",
    "'",
    '"',
    "|",
    ">",
    "%",
    "?",
    "\t",
    "#",
    "1e9",
    ".inf",
    "\u2028",
    "\0",
]


@given(st.one_of(st.binary(max_size=200), st.lists(st.sampled_from(_FRAGMENTS), max_size=40).map(lambda parts: "".join(parts).encode())))
def test_whatever_the_bytes_are_only_documents_and_problems_come_out(data: bytes) -> None:
    for path in ("a.yaml", "a.json"):
        for item in documents(data, path):
            assert isinstance(item, Document | Problem)
            if isinstance(item, Document):
                json.dumps(item.value, allow_nan=False, ensure_ascii=False).encode()


_TEXT = st.text(st.characters(max_codepoint=0xFFFF, categories=["L", "N", "P", "Zs"]), max_size=8)  # YAML has no surrogate pairs
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(_JSON)
def test_json_read_as_yaml_says_the_same(value: Any) -> None:
    text = json.dumps(value)
    assert _value(text, "a.json") == value
    assert _value(text, "a.yaml") == value
