"""Five hundred sockets that send next to nothing: a signed delivery is answered while they are open, and what is whole is never dropped."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from handler.web import gunicorn_worker
from tests.rooms.web.conftest import Serving
from tests.rooms.web.test_slow_clients import HEAD, KINDS, MANY, OF_PEER, ONE, descriptors, drip, opened, patient, still_open  # noqa: F401 - fixtures, too


@pytest.mark.parametrize("kind", KINDS)
def test_of_one_peer_the_oldest_give_way_and_its_own_delivery_is_answered(patient: Serving, kind: str) -> None:
    with ExitStack() as stack:
        slow = opened(stack, patient, ONE, KINDS[kind])
        for _ in range(3):
            drip(still_open(slow) if KINDS[kind] else ())
            assert patient.push() == 202
        left = still_open(slow)
        assert len(left) >= OF_PEER - 5, "but for those that the requests of this test took the place of"
        assert left == slow[-len(left) :]


def test_slow_bodies_beyond_the_memory_limit_give_way_to_a_delivery(patient: Serving) -> None:
    """Each begins the largest body and doesn't end it."""
    part = HEAD + f"Content-Length: {5 * 1024 * 1024}\r\n\r\n".encode() + b" " * (5 * 1024 * 1024 - 1)
    with ExitStack() as stack:
        slow = opened(stack, patient, MANY, part, gunicorn_worker.BODIES + 5)
        assert patient.push() == 202
        patient.wait(lambda: len(still_open(slow)) <= gunicorn_worker.BODIES)
        assert patient.push() == 202
        assert any(line["message"].startswith("the door is full") for line in patient.lines())
