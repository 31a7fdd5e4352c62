"""A handler against a cluster and a git host in memory: everything between is the real one, the render child left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from handler.app.build import Handler, Options
from handler.config.git_settings import Repository
from handler.config.secrets import Secrets
from handler.config.settings import Settings, Target
from handler.render import Sandbox
from handler.state.record import State
from tests.fakes.apiserver import ApiServer, FakeConnection
from tests.fakes.apiserver.connection import Way, straight
from tests.fakes.apiserver.kinds import SERVED, Served
from tests.fakes.apiserver.server import Asked
from tests.fakes.git_host import GitHost, HostSource
from tests.fakes.sandbox import InProcess

SHOP = Repository("https://git.example.com/acme/shop.git")
ONE = Settings(targets=(Target("shop", SHOP, ("shop",), path="shop"),))


def cluster(*namespaces: str, served: Sequence[Served] = SERVED) -> ApiServer:
    """Return a server on which these namespaces are."""
    server = ApiServer(time.time, served)
    for name in namespaces or ("shop",):
        server.answer(
            Asked("POST", "/api/v1/namespaces", {}, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, "", "")
        )
    return server


def pushed(host: GitHost, value: str = "1", name: str = "shop") -> str:
    """Push a commit that declares one ConfigMap; return its id."""
    body = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web, namespace: {name}}}\ndata: {{key: '{value}'}}\n"
    sha = host.commit({f"{name}/web.yaml": body})
    host.push(sha)
    return sha


def engine(
    server: ApiServer,
    host: GitHost,
    settings: Settings = ONE,
    *,
    notes: bool = True,
    way: Way = straight,
    sandbox: Sandbox | None = None,
    clock: Callable[[], float] = time.time,
    fetched: bool = False,
) -> Handler:
    """Return what runs the jobs of these targets; `way` sees every request to the cluster. Without a `sandbox` no child is started.

    `fetched`: its commits are those of a git host, and not of sources that were given.
    """
    source: Any = HostSource(host, lambda _asked: None)
    options = Options(sources={} if fetched else {target.name: source for target in settings.targets}, notes=notes, clock=clock)
    made = Handler(settings, Secrets(), sandbox or InProcess(), {}, options)  # type: ignore[arg-type]  # its one method that is called
    connection = FakeConnection(server, way)
    if fetched:
        made.git_host = lambda target: source  # type: ignore[method-assign]  # the seam
    made._connection = lambda target: connection  # type: ignore[method-assign]  # the seam
    return made


def state_of(handler: Handler, name: str = "shop") -> State:
    """Return a target's record."""
    found = handler.store(handler.target(name)).read().state
    assert found
    return found
