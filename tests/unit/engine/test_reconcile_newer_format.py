"""Two versions beside each other: what the older one meets once the newer one has written the record in a format of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from handler.model.event import Job
from handler.model.result import Outcome
from handler.state.record import FORMAT
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, straight
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import ONE, state_of
from tests.unit.engine.in_memory_cluster import MAPS, InMemoryCluster

RECORD = "/api/v1/namespaces/anneal-system/configmaps/anneal-shop"


def record(town: InMemoryCluster) -> dict[str, Any]:
    status, body = town.server.answer(Asked("GET", RECORD, {}, None, "", ""))
    assert status == 200
    return body


def rewrite(town: InMemoryCluster, written: int) -> dict[str, Any]:
    """Write the record anew as a version of this format does."""
    body = record(town)
    body["data"]["target.json"] = json.dumps(json.loads(body["data"]["target.json"]) | {"format": written})
    status, _ = town.server.answer(Asked("PUT", RECORD, {}, body, "", ""))
    assert status == 200
    return record(town)


@pytest.mark.parametrize("about", [{}, {"force": True}, {"dry_run": True}, {"rollback": True}, {"unpin": True}], ids=str)
def test_an_older_version_leaves_a_record_of_a_newer_format_alone(about: dict[str, Any]) -> None:
    town = InMemoryCluster()
    town.push({"web": "1"})
    town.handler(ONE).run(Job("shop", "push"))
    newer = rewrite(town, FORMAT + 1)
    town.push({"web": "2"})
    town.written.clear()
    result = town.handler(ONE).run(Job("shop", "replay", actor="ann", **about))
    assert (result.outcome, result.code, result.recorded) == (Outcome.FAILED, "state-invalid", False)
    assert "written by a newer Anneal" in result.message
    assert "delete" not in result.message
    assert (record(town), town.written) == (newer, [])


def test_a_run_of_an_older_version_ends_at_a_newer_record_and_is_finished_by_the_newer() -> None:
    """As when something is asked of the newer one while the older one holds the Lease."""
    town = InMemoryCluster()
    town.push({"web": "1", "late": "1"})
    town.handler(ONE).run(Job("shop", "push"))
    newer: list[dict[str, Any]] = []

    def meet(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.writes and call.asked.path.startswith(f"{MAPS}/") and not newer:
            newer.append(rewrite(town, FORMAT + 1))
        return do()

    town.meet = meet
    head = town.push({"web": "2", "late": "2"})
    result = town.handler(ONE).run(Job("shop", "push"))
    assert (result.outcome, result.code, result.recorded) == (Outcome.FAILED, "state-invalid", False)
    assert record(town) == newer[0], "what the newer one wrote stands"
    town.meet = straight
    rewrite(town, FORMAT)  # from here on we are the newer one
    left = state_of(town.handler(ONE)).attempt
    assert left
    assert left.commit == head
    assert town.handler(ONE).run(Job("shop", "tick")).outcome is Outcome.APPLIED
    assert (town.data("web", "late"), state_of(town.handler(ONE)).commit) == (["2", "2"], head)
