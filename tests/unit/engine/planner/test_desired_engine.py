"""A plan says by one note that another engine of jsonnet made what is recorded."""

from __future__ import annotations

from itertools import permutations

import pytest

from handler.engine.planner.desired import changed_engine
from handler.model.tree import ReadSet

NAMES = {"//tool/rjsonnet": "jrsonnet", "//tool/jsonnet": "Google's program", "//tool/libjsonnet": "Google's library in C++"}


@pytest.mark.parametrize(("before", "now"), list(permutations(NAMES, 2)))
def test_another_engine_than_the_recorded_one_is_a_note(before: str, now: str) -> None:
    (note,) = changed_engine(["deploy", before], ReadSet.of({"deploy": "b", now: "c"}))
    assert note.startswith(f"jsonnet is evaluated by {NAMES[now]} now, and {NAMES[before]} made the recorded objects")


@pytest.mark.parametrize("engine", NAMES)
def test_the_same_engine_or_another_renderer_is_none(engine: str) -> None:
    for recorded, now in ((engine, engine), (engine, "//tool/helm"), ("//tool/helm", engine)):
        assert list(changed_engine([recorded], ReadSet.of({now: "c"}))) == []
