"""What the tests of a worker on a shared queue share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.taking import Side


@pytest.fixture
def side() -> Iterator[Side]:
    made = Side()
    yield made
    made.intake.stop()
