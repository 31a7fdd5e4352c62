"""A target with an exclusive namespace, applied once."""

from __future__ import annotations

import pytest

from tests.unit.engine.apply.planned_target import config_map
from tests.unit.engine.planner.watched_namespace import Watched


@pytest.fixture
def watched() -> Watched:
    made = Watched()
    made.shop.apply(made.shop.plan(config_map("web")))
    return made
