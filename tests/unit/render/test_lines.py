"""Where the fields of a document stand, in YAML and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from handler.render.lines import lines

BLOCK = """# how it goes
---
---
spec:
  groups:
  - name: first
    steps:
    - {object: a.yaml, action: Apply}
    -
      object: |
        b
        .yaml
      action: Apply
      a.b/c: 1
      1: x
  # the last one
  - steps: [{object: c.yaml,
      action: Apply}, 7]
kind: Rollout
...
"""
IN_BLOCK = {
    "spec": 4,
    "spec.groups": 5,
    "spec.groups[0]": 6,
    "spec.groups[0].name": 6,
    "spec.groups[0].steps": 7,
    "spec.groups[0].steps[0].action": 8,
    "spec.groups[0].steps[1]": 10,
    "spec.groups[0].steps[1].action": 13,
    "spec.groups[0].steps[1].a.b/c": 14,
    "spec.groups[0].steps[1].1": 15,
    "spec.groups[1]": 17,
    "spec.groups[1].steps[0].object": 17,
    "spec.groups[1].steps[0].action": 18,
    "spec.groups[1].steps[1]": 18,
    "kind": 19,
}
MISSING = {
    "spec.groups[0].steps[1].success[0].prometheus.url": 10,
    "spec.groups[0].steps[0].object.name": 8,
    "spec.groups[2].name": 5,
    "spec.parallel": 4,
    "spec.groupsteps": 4,
    "metadata.name": 0,
    "": 0,
}
ALIASED = """base: &base
  timeout: 1s
  action: Old
spec:
  groups:
  - &group
    steps: &steps
    - &step
      <<: *base
      object: a.yaml
      action: New
    - *step
  - *group
  - name: third
    steps: *steps
  - steps:
    - <<: [{timeout: 2s}, *base]
"""
IN_ALIASED = {
    "spec.groups[0].steps[0].timeout": 2,
    "spec.groups[0].steps[0].action": 11,
    "spec.groups[0].steps[1]": 12,
    "spec.groups[0].steps[1].object": 10,
    "spec.groups[1]": 13,
    "spec.groups[1].steps[1]": 12,
    "spec.groups[2].steps": 15,
    "spec.groups[2].steps[0].object": 10,
    "spec.groups[3].steps[0].timeout": 17,
    "spec.groups[3].steps[0].action": 3,
}
TEXT = """{"apiVersion": "v1", "a\\"b": "{[,:",
 "spec":
 {"groups": [
   {"steps": [
\t\t{"object":"\\ud83d\\ude00","action":null},
     [], {}, -1.5e3,
     true]}]
 },
 "\\u00e9": 1}"""
IN_TEXT = {
    'a"b': 1,
    "spec": 2,
    "spec.groups": 3,
    "spec.groups[0].steps": 4,
    "spec.groups[0].steps[0].action": 5,
    "spec.groups[0].steps[0].name": 5,
    "spec.groups[0].steps[2]": 6,
    "spec.groups[0].steps[3]": 6,
    "spec.groups[0].steps[4]": 7,
    "é": 9,
}


@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "BOM"])
@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        (BLOCK, "a.yaml", IN_BLOCK),
        (BLOCK, "a.yaml", MISSING),
        (ALIASED, "a.yaml", IN_ALIASED),
        (TEXT, "a.json", IN_TEXT),
        (f"null\n{TEXT}", "a.json", {field: line + 1 for field, line in IN_TEXT.items()}),
    ],
    ids=["block", "missing", "aliased", "json", "json after null"],
)
def test_each_field_stands_in_its_line(text: str, path: str, expected: Mapping[str, int], ending: str, mark: str) -> None:
    data = (mark + text.replace("\n", ending)).encode()
    assert dict(zip(expected, lines(data, path, [*expected]), strict=True)) == expected


def test_a_key_that_cannot_be_shown_is_known_by_what_is_shown_of_it() -> None:
    long = "k" * 100
    text = json.dumps({"a": 1, long: 2, "b\x1b": 3}, indent=0)
    assert [lines(text.encode(), path, ["k" * 79 + "…", "b\\x1b"]) for path in ("a.yaml", "a.json")] == [[3, 4]] * 2


def test_many_yaml_aliases_are_not_expanded_for_their_lines() -> None:
    rows = ["a0: &a0 [x, y]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 16))]
    deep = "[0]" * 16
    assert lines("\n".join(rows).encode(), "a.yaml", [f"a15{deep}", "a15"]) == [1, 16]
