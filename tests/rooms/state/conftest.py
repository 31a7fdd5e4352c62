"""The room on both sides of its port: the fake that unit tests use, and a real API server through `handler.cluster`."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.cluster.api import Api
from handler.cluster.connect import connect
from handler.cluster.own_objects import OwnObjects as RealObjects
from handler.config.settings import Cluster
from handler.state.cluster_port import StateObjects
from tests.fakes.objects import FakeObjects
from tests.kubectl import Kubectl

PARTS = ("new", "lease", "state")


def real_objects(kubeconfig: str) -> RealObjects:
    return RealObjects(Api(connect(Cluster(), kubeconfig=kubeconfig, environ=os.environ)))


@pytest.fixture
def real(kubeconfig: Path) -> RealObjects:
    return real_objects(str(kubeconfig))


@pytest.fixture(params=["fake", "real"])
def objects(request: pytest.FixtureRequest) -> StateObjects:
    if request.param == "fake":
        return FakeObjects(namespaces=())
    real: RealObjects = request.getfixturevalue("real")
    return real


@pytest.fixture
def place(request: pytest.FixtureRequest, objects: StateObjects) -> Iterator[str]:
    """A namespace that exists, on either side; those whose names begin with it go with it."""
    name = f"t-{secrets.token_hex(5)}"
    kubectl: Kubectl | None = request.getfixturevalue("kubectl") if isinstance(objects, RealObjects) else None
    objects.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    if kubectl:
        kubectl.leave_namespaces(name, *(f"{name}-{part}" for part in PARTS))
