"""A target in memory, applied once: a cluster, a git host, and the handler between them. A module may have others of these names."""

from __future__ import annotations

import pytest

from handler.app.build import Handler
from handler.model.event import Job
from handler.model.result import Outcome
from tests.fakes.apiserver import ApiServer
from tests.fakes.clock import lease_clock  # noqa: F401 - a fixture
from tests.fakes.engine import cluster, engine, pushed
from tests.fakes.git_host import GitHost
from tests.unit.engine.in_memory_shop import InMemoryShop
from tests.unit.engine.two_targets import Bench, document


@pytest.fixture
def server() -> ApiServer:
    return cluster()


@pytest.fixture
def host() -> GitHost:
    made = GitHost()
    pushed(made)
    return made


@pytest.fixture
def handler(server: ApiServer, host: GitHost) -> Handler:
    """One without a memory, whose target is applied."""
    made = engine(server, host)
    assert made.run(Job("shop", "tick", run="shop.first")).outcome is Outcome.APPLIED
    return made


@pytest.fixture
def bench() -> Bench:
    """Two targets of one repository, both applied; a has x."""
    made = Bench()
    made.push(a={"x": document("x")})
    made.applied("a", "b")
    made.sent.clear()
    return made


@pytest.fixture
def shop() -> InMemoryShop:
    return InMemoryShop()
