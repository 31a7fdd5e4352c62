"""The Lease that says that health is watched: what can't be read vouches for nothing, and is no trouble."""

from __future__ import annotations

from typing import Any

from handler.model.errors import AccessDenied
from handler.state.heartbeat import Heartbeat


class Denying:
    """Objects that may not be read."""

    def get(self, *_: str) -> Any:
        raise AccessDenied.of("get Lease", "is forbidden")


def test_a_reader_without_the_right_to_it_knows_of_no_watch() -> None:
    objects: Any = Denying()
    assert Heartbeat(objects, "anneal-system", "default").read() is None
