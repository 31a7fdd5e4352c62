"""What is substituted in an object, and what its frames may be."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from handler.model.manifest import Manifest
from handler.plan.annotations import TABLE, Effect
from handler.render.variables.substitution import SWITCHES, Substituted, decode_row, is_off

BODY = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}


def test_the_annotations_that_turn_it_off_are_those_of_the_table() -> None:
    rows = {(row.key, row.values) for row in TABLE if row.key.endswith("/substitute") and row.effect is Effect.ELSEWHERE}
    assert rows == {(key, ("disabled",)) for key in SWITCHES}


@pytest.mark.parametrize(
    ("metadata", "off"),
    [
        ({"annotations": {SWITCHES[0]: "disabled"}}, True),
        ({"labels": {SWITCHES[0]: "Disabled"}}, True),
        ({"annotations": {SWITCHES[1]: "disabled"}}, True),
        ({"labels": {SWITCHES[1]: "disabled"}}, False),
        ({"annotations": {SWITCHES[0]: "enabled"}}, False),
        ({"annotations": {SWITCHES[0]: None}, "labels": "x"}, False),
        (None, False),
    ],
)
def test_an_object_says_that_it_stays_as_it_is(metadata: Any, off: bool) -> None:
    assert is_off({"metadata": metadata}) is off


def test_a_row_is_read_as_it_was_written() -> None:
    row = Substituted(3, replace(Manifest.of(BODY, "a.yaml:1", 2), hidden=("/data/a",)))
    found = decode_row(row.encode())
    assert isinstance(found, Substituted)
    assert (found, found.manifest.hidden) == (row, ("/data/a",))


@pytest.mark.parametrize(
    "frame",
    [
        b"V[1, []]\n" + b'P["a", "b", "c", "d"]',
        b'V["1", []]\nM["a", 0]\n' + json.dumps(BODY).encode(),
        b'V[1, [2]]\nM["a", 0]\n' + json.dumps(BODY).encode(),
        b'V[1]\nM["a", 0]\n' + json.dumps(BODY).encode(),
        b'V{}\nM["a", 0]\n' + json.dumps(BODY).encode(),
        b"V",
        b"X",
        b"",
    ],
)
def test_what_a_child_says_otherwise_is_no_row(frame: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_row(frame)
