"""A scripted server for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handler.cli import replay as replaying
from tests.unit.cli.scripted import Server, scripted


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(replaying, "FIRST_PAUSE", 0.01)
    with scripted() as running:
        yield running
