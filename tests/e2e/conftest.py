"""The whole handler against a real cluster and a real git host."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handler.cluster.connect import ClusterConnection, connect
from handler.config.git_settings import Repository
from handler.config.settings import Cluster, Target
from handler.render.file_renderer import FileRenderer
from handler.render.sandbox import Sandbox
from infra.controlplane import controlplane as controlplanes
from infra.githost import Host, Work
from tests.e2e.api_proxy import Wired
from tests.e2e.health_watch import watching  # noqa: F401 - a fixture
from tests.e2e.many_targets import Fleet
from tests.e2e.one_target import PATH, SCOPED, Shop
from tests.e2e.planted_secrets import logged  # noqa: F401 - a fixture
from tests.e2e.status_api import serving  # noqa: F401 - a fixture
from tests.e2e.two_targets import Pair
from tests.fakes.clock import NEVER
from tests.in_process import one_render_child  # noqa: F401 - a fixture
from tests.kubectl import Kubectl

Open = Callable[..., Shop]
OpenFleet = Callable[..., Fleet]
QUICK = {"interval": "3s", "driftInterval": NEVER, "leaseDuration": "3s"}


@pytest.fixture(scope="session")
def host() -> Iterator[Host]:
    with Host() as running:
        yield running


@pytest.fixture(scope="session")
def connection(control_plane: Path) -> ClusterConnection:
    return connect(Cluster(), kubeconfig=str(control_plane), environ=os.environ)


@contextlib.contextmanager
def shops(host: Host, sandbox: Sandbox, kubectl: Kubectl) -> Iterator[Open]:
    """Open shops; what they leave in the cluster goes without being waited for."""
    made: list[Shop] = []

    def opened(cluster: Kubectl = kubectl, lease: float = 15.0, **settings: Any) -> Shop:
        name = f"s-{secrets.token_hex(4)}"
        work = Work.of(host, name)
        repository = Repository(url=host.url_of(name))
        target = Target(name, repository, (name, f"{name}-jobs"), path=PATH, cluster_scoped=SCOPED)
        shop = Shop(name, work, cluster, sandbox, target, lease)
        shop.configure(**settings)
        made.append(shop)
        return shop

    yield opened
    for shop in made:
        shop.close()


@pytest.fixture
def open_shop(host: Host, sandbox: Sandbox, kubectl: Kubectl) -> Iterator[Open]:
    """Open shops of the test's own."""
    with shops(host, sandbox, kubectl) as opened:
        yield opened


@pytest.fixture
def shop(open_shop: Open) -> Shop:
    """A shop whose main namespace exists."""
    opened = open_shop()
    opened.create_namespace()
    return opened


@pytest.fixture
def own_cluster(spare_directory: Path) -> Iterator[Kubectl]:
    """A cluster of the test's own: an APIService without a backend would keep namespaces of others from going."""
    kubeconfig = controlplanes.up(spare_directory)
    yield Kubectl(controlplanes.binaries() / "kubectl", kubeconfig)
    controlplanes.down(spare_directory)


@pytest.fixture
def pair(host: Host, sandbox: Sandbox, kubectl: Kubectl) -> Iterator[Pair]:
    made = Pair.of(f"s-{secrets.token_hex(4)}", host, sandbox, kubectl)
    kubectl.create_namespace(made.space)
    yield made
    made.a.kubectl.leave_namespaces(made.space)


@pytest.fixture
def wired(connection: ClusterConnection, tmp_path: Path) -> Iterator[Callable[[], Wired]]:
    """Make proxies in front of the API server, each with a kubeconfig that leads to it."""
    made: list[Wired] = []
    lock = threading.Lock()

    def make() -> Wired:
        with lock:  # several threads of a test may ask at once, each for one of its own
            made.append(Wired.over(connection, tmp_path / f"wire-{len(made)}"))
            return made[-1]

    yield make
    for wire in made:
        wire.close()


@pytest.fixture
def open_fleet(host: Host, kubectl: Kubectl, tmp_path: Path) -> Iterator[OpenFleet]:
    """Open fleets of the test's own; their servers are stopped."""
    fleets: list[Fleet] = []

    def opened(size: int, versions: int = 5, settings: dict[str, Any] | None = None, **more: Any) -> Fleet:
        place = tmp_path / f"fleet-{len(fleets)}"
        place.mkdir()
        name = f"f-{secrets.token_hex(4)}"
        fleets.append(Fleet(name, host, kubectl, place, size, versions, settings={**QUICK, **(settings or {})}, **more))
        return fleets[-1]

    yield opened
    for fleet in fleets:
        fleet.close()


@pytest.fixture
def renders(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commits that were rendered so far."""
    seen: list[str] = []
    render = FileRenderer.render

    def counted(self: FileRenderer, tree: Any, *rest: Any) -> Any:
        seen.append(tree.commit.sha)
        return render(self, tree, *rest)

    monkeypatch.setattr(FileRenderer, "render", counted)
    return seen
