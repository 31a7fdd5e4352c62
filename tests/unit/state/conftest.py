from __future__ import annotations

import pytest

from handler.state.lease import LeaseLock
from handler.state.store import StateStore
from tests.fakes.clock import FakeClock, World
from tests.fakes.objects import FakeObjects
from tests.unit.state.lease_inspection import NAME, Make
from tests.unit.state.samples import NAMESPACE, TOOLING


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def objects(world: World) -> FakeObjects:
    return FakeObjects(lambda: world.now)


@pytest.fixture
def lock(world: World, objects: FakeObjects) -> Make:
    def make(holder: str = "one", clock: FakeClock | None = None) -> LeaseLock:
        return LeaseLock(objects, "anneal-system", NAME, holder, 15.0, clock or FakeClock(world))

    return make


@pytest.fixture
def store(objects: FakeObjects) -> StateStore:
    return StateStore(objects, NAMESPACE, "shop", "default", TOOLING)
