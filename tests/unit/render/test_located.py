"""Objects of untrusted bytes, and where their fields stand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handler.model.errors import Problem
from handler.render.located import decode_located, encode_located, located

TEXTS = (("spec", "source", "helm", "values"), ("spec", "sources", "*", "helm", "values"))
YAML = b"""# first
kind: A
spec:
  b:
    - c: 1
---
kind: List
items:
  - kind: B
    spec:
      d: 2
"""


def rows(data: bytes, path: str = "in.yaml") -> list[Any]:
    return [decode_located(encode_located(row)) for row in located(data, path, TEXTS)]


def test_each_object_and_item_of_a_list_has_its_lines() -> None:
    (path, line, value, standing, _), (_, second, item, below, _) = rows(YAML)
    assert (path, line, value["kind"]) == ("in.yaml", 2, "A")
    assert standing["spec"][1]["b"][1]["[0]"][1]["c"][0] == 5
    assert (second, item["kind"], below["spec"][1]["d"][0]) == (9, "B", 11)


def test_json_has_its_lines_too() -> None:
    text = json.dumps({"kind": "List", "items": [{"kind": "A", "spec": {"b": 1}}, {"kind": "B"}]}, indent=1).encode()
    (_, line, _, standing, _), (_, second, _, _, _) = rows(text, "standard input")
    assert (line, standing["spec"][1]["b"][0], second) == (4, 7, 10)


def test_yaml_in_a_text_is_read_and_what_is_none_is_left_out() -> None:
    helm = {"helm": {"values": "a: 1\n"}}
    text = json.dumps({"kind": "A", "spec": {"source": helm, "sources": [helm, {"helm": {"values": "a: ["}}, {"helm": {"values": 5}}, 7]}})
    assert rows(text.encode())[0][4] == {"spec.source.helm.values": {"a": 1}, "spec.sources.0.helm.values": {"a": 1}}


@pytest.mark.parametrize(
    "data",
    [
        b"a: [\n",
        b"\xff",
        b"a: &a [*a]\n",
        b"a: &a [x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\n" + b"".join(b"c%d: &c%d [*b, *b]\n" % (n, n) for n in range(9)) + b"- x\n",
        b"a" * 10_000_001,
        b"[" * 50_000,
        b"{" * 50_000,
        b'{"a": 1, "a": 2}',
    ],
)
def test_what_cant_be_read_is_a_problem_and_nothing_else(data: bytes) -> None:
    for path in ("in.yaml", "in.json", "standard input"):
        found = rows(data, path)
        assert all(isinstance(row, Problem) for row in found)
        assert found


def test_a_broken_document_hides_no_other() -> None:
    problem, (_, line, value, _, _) = _sorted(rows(b"kind: [\n---\nkind: A\n"))
    assert isinstance(problem, Problem)
    assert (line, value) == (3, {"kind": "A"})


def _sorted(found: list[Any]) -> list[Any]:
    return sorted(found, key=lambda row: not isinstance(row, Problem))


@pytest.mark.parametrize("frame", [b"X[]", b"P[1]", b'D["a", 1, {}, {"b": 1}, {}]', b'D["a", "1", {}, {}, {}]', b"D{}", b"D["])
def test_a_frame_of_another_form_isnt_believed(frame: bytes) -> None:
    with pytest.raises(ValueError, match=r"neither|Expecting"):
        decode_located(frame)
