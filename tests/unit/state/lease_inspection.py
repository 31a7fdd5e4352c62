"""What the Lease's tests look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from handler.model.errors import LeaseLost
from handler.state.lease import HeldLease, LeaseLock
from tests.fakes.objects import FakeObjects

NAME = "anneal-shop"
Make = Callable[..., LeaseLock]


def body(objects: FakeObjects) -> dict[str, Any]:
    found = objects.get("Lease", "anneal-system", NAME)
    assert found
    return found


def lost(held: HeldLease) -> bool:
    try:
        held.check()
    except LeaseLost:
        return True
    return False
