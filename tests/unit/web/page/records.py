"""What the worker answers of records, as the page gets it: read by the real reader from objects in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handler.app.target_status import TargetStatusReader
from handler.state.record import State
from tests.fakes.objects import FakeObjects
from tests.fakes.signed_webhooks import SHOP, door_settings
from tests.fakes.worker_parts import remember

NAME = "shop-prod"


def reader(state: State | None) -> TargetStatusReader:
    """A reader of one record, of the target `shop-prod`."""
    objects = FakeObjects()
    if state is not None:
        remember(objects, replace(state, target=NAME, repository=SHOP))
    return TargetStatusReader(door_settings(), lambda _target: objects, 60.0)


def row_of(state: State | None) -> dict[str, Any]:
    (row,) = reader(state).targets([NAME])
    return row


def facts_of(state: State | None) -> dict[str, Any]:
    return reader(state).target(NAME)
