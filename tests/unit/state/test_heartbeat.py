"""The Lease that says that health is watched: what can't be read vouches for nothing, and is no trouble."""

from __future__ import annotations

from typing import Any

from handler.model.errors import AccessDenied
from handler.state.heartbeat import Heartbeat, heartbeat_name
from tests.fakes.objects import FakeObjects


class Denying:
    """Objects that may not be read."""

    def get(self, *_: str) -> Any:
        raise AccessDenied.of("get Lease", "is forbidden")


def test_a_reader_without_the_right_to_it_knows_of_no_watch() -> None:
    objects: Any = Denying()
    assert Heartbeat(objects, "anneal-system", "default").read() is None


def test_a_beat_that_is_young_is_left_whatever_the_interval() -> None:
    objects = FakeObjects(clock=lambda: 1_900_000_000.0)
    beat = Heartbeat(objects, "anneal-system", "default")
    beat.renew("worker", 2.5)
    before = objects.get("Lease", "anneal-system", heartbeat_name("default"))
    beat.renew("another", 2.5)
    assert objects.get("Lease", "anneal-system", heartbeat_name("default")) == before
