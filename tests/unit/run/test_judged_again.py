"""What a step deletes is judged again right before it goes: a rollout may have taken hours since its plan was made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from handler.model.names import PART_OF
from handler.model.result import Outcome
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.apiserver.server import Asked
from tests.unit.run.town import MAPS, Town, group, planted, step

KEEP = {"metadata": {"annotations": {"anneal.dev/prune": "disabled"}}}
LEAVE = {"metadata": {"labels": {PART_OF: None}}}


def meanwhile(town: Town, name: str, change: dict[str, Any]) -> None:
    """Somebody changes an object as soon as the first group has written."""

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        reply = do()
        if call.writes and call.asked.path == f"{MAPS}/changed":
            patch = "application/merge-patch+json"
            status, _ = town.server.answer(Asked("PATCH", f"{MAPS}/{name}", {"fieldManager": "jo"}, change, patch, ""))
            assert status == 200
        return reply

    town.meet = way


@pytest.mark.parametrize(
    ("action", "change", "seen"),
    [
        ("DeleteIfExist", KEEP, "protected by anneal.dev/prune: disabled"),
        ("DeleteIfExist", LEAVE, "is no longer ours"),
        ("Recreate", LEAVE, "is no longer ours"),
    ],
)
def test_what_somebody_keeps_or_takes_after_the_plan_stays(action: str, change: dict[str, Any], seen: str) -> None:
    town = planted()
    before = town.uid("old")
    maps = {"changed": "2", "old": "1"}
    town.push(
        {**dict.fromkeys(("free", "anew", "kept", "same", "last"), "1"), **maps},
        group("first", step("CreateOrUpdate", "changed")),
        group("then", step(action, "old")),
    )
    meanwhile(town, "old", change)
    result = town.run()
    assert result.outcome is Outcome.FAILED, result
    assert seen in "\n".join(map(str, result.problems))
    assert town.uid("old") == before
    assert not town.deleted
