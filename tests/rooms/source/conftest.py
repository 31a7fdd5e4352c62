"""A real git host on loopback, and a handler's view of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.githost import Host
from tests.rooms.source.github_host import Hub, hub_of
from tests.rooms.source.ssh_repository import Shop, ssh_shop


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with Host(tmp_path / "git") as running:
        yield running


@pytest.fixture
def shop() -> Iterator[Shop]:
    with ssh_shop() as running:
        yield running


@pytest.fixture
def hub(host: Host, tmp_path: Path) -> Iterator[Hub]:
    with hub_of(host, tmp_path) as running:
        yield running
