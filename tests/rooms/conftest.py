"""The way to the session's cluster, straight and through a proxy, for every room that has to do with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.cluster.connect import ClusterConnection, connect
from handler.config.settings import Cluster
from tests.rooms.cluster.faulty_proxy import Wire


@pytest.fixture(scope="session")
def connection(control_plane: Path) -> ClusterConnection:
    return connect(Cluster(), kubeconfig=str(control_plane), environ=os.environ)


@pytest.fixture
def wire(connection: ClusterConnection) -> Iterator[Wire]:
    proxy = Wire(connection)
    yield proxy
    proxy.close()
