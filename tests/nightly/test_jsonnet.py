"""Google's program and its library make the same of thousands of generated expressions, but for what docs/renderers.md lists."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handler.render import Sandbox
from tests.rooms.render.jsonnet_expressions import expressions, unlisted_differences
from tests.rooms.render.kustomize_trees import public_tools

SEEDS, EACH = range(8), 500


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with public_tools(), Sandbox() as sandbox:
        yield sandbox


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_engines_make_the_same_but_for_what_is_listed(sandbox: Sandbox, seed: int) -> None:
    assert unlisted_differences(sandbox, expressions(EACH, seed)) == {}
