"""A scripted server for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handler.cli import replay as replaying
from handler.model.backoff import Backoff
from tests.unit.cli.scripted import Server, scripted


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(replaying, "PAUSES", Backoff(0.01, 2.0, factor=1.5))
    with scripted() as running:
        yield running
