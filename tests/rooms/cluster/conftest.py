"""The room against a real API server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handler.cluster.api import Api
from handler.cluster.connect import ClusterConnection, connect
from handler.cluster.discovery import Discovery
from handler.cluster.write import Writer
from handler.config.settings import Cluster
from handler.model.names import Resource
from tests.fakes.apiserver import ApiServer, FakeConnection
from tests.patience import until
from tests.rooms.cluster.both_api_servers import Side, config_map
from tests.rooms.cluster.faulty_proxy import Wire

__all__ = ["config_map"]
Apply = Callable[..., dict[str, Any]]
Kind = Callable[[str, str], Resource]


@pytest.fixture
def api(connection: ClusterConnection) -> Api:
    return Api(connection)


@pytest.fixture
def discovery(api: Api) -> Discovery:
    return Discovery(api)


@pytest.fixture
def kind(discovery: Discovery) -> Kind:
    def find(api_version: str, name: str) -> Resource:
        found = discovery.find(api_version, name)
        assert found, f"{name} isn't served"
        return found

    return find


def refreshed(discovery: Discovery, look: Callable[[], Any]) -> Any:
    """Look, and refresh until it is there: the aggregator takes a moment."""

    def found() -> Any:
        if seen := look():
            return seen
        discovery.refresh()
        return None

    return until(found, "it never appeared")


@pytest.fixture
def writer(api: Api) -> Writer:
    return Writer(api, lambda: None)


@pytest.fixture
def apply(writer: Writer, kind: Kind) -> Apply:
    def write(body: dict[str, Any], uid: str = "", resource_version: str = "") -> dict[str, Any]:
        return writer.apply(kind(body["apiVersion"], body["kind"]), body, uid, resource_version)

    return write


@pytest.fixture
def through(wire: Wire, tmp_path: Path) -> Callable[..., Api]:
    """Return a maker of Apis whose requests pass the misbehaving proxy."""
    path = wire.kubeconfig(tmp_path / "proxied")

    def make(**options: Any) -> Api:
        return Api(connect(Cluster(), kubeconfig=str(path), environ={}), **options)

    return make


@pytest.fixture(params=["fake", "real"])
def side(request: pytest.FixtureRequest) -> Iterator[Side]:
    if request.param == "real":
        yield Side(request.getfixturevalue("api"), request.getfixturevalue("namespace"))
        return
    api = Api(FakeConnection(ApiServer(time.time)))
    api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    yield Side(api, "n")
