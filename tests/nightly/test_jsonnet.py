"""Google's library makes the same of thousands of generated expressions as its program, but for what docs/differences.md lists."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handler.render import Sandbox
from tests.nightly.differential import SEED
from tests.rooms.render.jsonnet_differences import compare_engines
from tests.rooms.render.jsonnet_expressions import expressions
from tests.rooms.render.kustomize_trees import public_tools

COUNT = 6_000


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with public_tools(), Sandbox() as sandbox:
        yield sandbox


@pytest.mark.timeout(3600)
def test_the_engines_make_the_same_but_for_what_is_listed(sandbox: Sandbox) -> None:
    """Two minutes of an idle processor."""
    compare_engines(sandbox, expressions(COUNT, SEED))
