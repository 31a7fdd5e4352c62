"""What the real kustomize says of a build that fails -> what we say of it: the cause alone, with the line of the entry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handler.render import Sandbox
from tests.rooms.render.kustomize_trees import deployment, public_tools


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with public_tools(), Sandbox() as sandbox:
        yield sandbox


def test_warnings_of_a_build_that_succeeds_are_notes_but_for_old_fields(sandbox: Sandbox) -> None:
    from tests.rooms.render.kustomize_trees import render  # noqa: PLC0415 - the one test that renders

    files = {
        "deploy/kustomization.yaml": "resources: [a.yaml]\ncommonLabels: {a: b}\nvars: [{name: X, "
        "objref: {kind: Deployment, name: a, apiVersion: apps/v1}}]\n",
        "deploy/a.yaml": deployment("a"),
    }
    notes = render(sandbox, files).notes
    assert len(notes) == 1
    assert "well-defined vars that were never replaced: X" in notes[0]
