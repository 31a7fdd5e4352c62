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


def record(fake: InMemoryCluster) -> dict[str, Any]:
    status, body = fake.server.answer(Asked("GET", RECORD, {}, None, "", ""))
    assert status == 200
    return body


def rewrite(fake: InMemoryCluster, written: int) -> dict[str, Any]:
    """Write the record anew as a version of this format does."""
    body = record(fake)
    body["data"]["target.json"] = json.dumps(json.loads(body["data"]["target.json"]) | {"format": written})
    status, _ = fake.server.answer(Asked("PUT", RECORD, {}, body, "", ""))
    assert status == 200
    return record(fake)


@pytest.mark.parametrize("about", [{}, {"force": True}, {"dry_run": True}, {"rollback": True}, {"unpin": True}], ids=str)
def test_an_older_version_leaves_a_record_of_a_newer_format_alone(about: dict[str, Any]) -> None:
    fake = InMemoryCluster()
    fake.push({"web": "1"})
    fake.handler(ONE).run(Job("shop", "push"))
    newer = rewrite(fake, FORMAT + 1)
    fake.push({"web": "2"})
    fake.written.clear()
    result = fake.handler(ONE).run(Job("shop", "replay", actor="ann", **about))
    assert (result.outcome, result.code, result.recorded) == (Outcome.FAILED, "state-invalid", False)
    assert "written by a newer Anneal" in result.message
    assert "delete" not in result.message
    assert (record(fake), fake.written) == (newer, [])


def test_a_run_of_an_older_version_ends_at_a_newer_record_and_is_finished_by_the_newer() -> None:
    """As when something is asked of the newer one while the older one holds the Lease."""
    fake = InMemoryCluster()
    fake.push({"web": "1", "late": "1"})
    fake.handler(ONE).run(Job("shop", "push"))
    newer: list[dict[str, Any]] = []

    def meet(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.writes and call.asked.path.startswith(f"{MAPS}/") and not newer:
            newer.append(rewrite(fake, FORMAT + 1))
        return do()

    fake.meet = meet
    head = fake.push({"web": "2", "late": "2"})
    result = fake.handler(ONE).run(Job("shop", "push"))
    assert (result.outcome, result.code, result.recorded) == (Outcome.FAILED, "state-invalid", False)
    assert record(fake) == newer[0], "what the newer one wrote stands"
    fake.meet = straight
    rewrite(fake, FORMAT)  # from here on we are the newer one
    left = state_of(fake.handler(ONE)).attempt
    assert left
    assert left.commit == head
    assert fake.handler(ONE).run(Job("shop", "tick")).outcome is Outcome.APPLIED
    assert (fake.data("web", "late"), state_of(fake.handler(ONE)).commit) == (["2", "2"], head)
