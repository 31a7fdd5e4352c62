"""Whatever text arrives, the loader answers with Settings or ConfigInvalid."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handler.config.load import parse
from handler.config.schema import schema
from handler.config.settings import Settings
from handler.config.value_formats import duration, seconds
from handler.model.errors import ConfigInvalid

pytestmark = pytest.mark.slow

FULL = (Path(__file__).with_name("samples") / "full.yaml").read_text()
DOCUMENT = yaml.safe_load(FULL)
KEYS = sorted({key for definition in schema()["$defs"].values() for key in definition["properties"]} | set(schema()["properties"]))
PIECES = st.sampled_from(
    [*KEYS, *"{}[]:,-&*!|>%@`'\"#\n \t?", ": ", "- ", "<<: ", "*a", "&a ", "!!int ", "---\n", "\x00", "1e9", "yes", "~"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["*", "5m", "shop", "https://h/x", "main"]),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(), below, max_size=5),
    max_leaves=20,
)
LITTLE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def survives(text: str) -> None:
    with contextlib.suppress(ConfigInvalid):
        assert isinstance(parse(text), Settings)


@LITTLE
@given(st.integers(0, len(FULL)), st.integers(0, 30), st.lists(PIECES, max_size=5).map("".join))
def test_the_sample_with_a_piece_replaced(start: int, length: int, piece: str) -> None:
    survives(FULL[:start] + piece + FULL[start + length :])


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path of every node of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(below for key, item in items for below in places(item, (*path, key)))]


def put(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """The document with one node replaced."""
    if not path:
        return new
    if isinstance(value, dict):
        return {**value, path[0]: put(value[path[0]], path[1:], new)}
    index = int(path[0])
    return [*value[:index], put(value[index], path[1:], new), *value[index + 1 :]]


@LITTLE
@given(st.sampled_from(places(DOCUMENT)), VALUES)
def test_the_sample_with_any_value_of_any_type(path: tuple[str | int, ...], value: Any) -> None:
    survives(json.dumps(put(DOCUMENT, path, value)))


@given(st.integers(0, 31_536_000))
def test_durations_read_back(value: int) -> None:
    assert seconds(duration(value)) == value
