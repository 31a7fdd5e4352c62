"""An operation of a git host ends by the deadline of its run."""

from __future__ import annotations

import time

from handler.config.secrets import Secret
from handler.model import deadline
from handler.source.git_host import GitHost as Host
from tests.fakes.engine import SHOP


def test_a_fetch_ends_by_the_deadline() -> None:
    host = Host(SHOP, lambda _reference: Secret(""))
    with deadline.until(time.monotonic() - 1.0):
        assert host._operation(lambda limits: limits.seconds) == deadline.LEAST
