"""Replay, reading and metrics on real processes, also when one of them is killed."""

from __future__ import annotations

import os
import signal
from typing import Any

from tests.rooms.web.conftest import Serving
from tests.rooms.web.test_replay_status_metrics import scraped, status


def ran(server: Serving, run: str) -> list[dict[str, Any]]:
    return [each for each in server.runs() if each.get("run") == run]


def test_a_replay_survives_the_worker_that_took_it_and_runs_once(serving: Serving) -> None:
    run = serving.replay("slow", force=True)
    serving.wait(lambda: len(ran(serving, run)) == 1)
    first = serving.pid()
    os.kill(first, signal.SIGKILL)
    serving.wait(lambda: len(ran(serving, run)) == 2)
    assert [each["force"] for each in ran(serving, run)] == [True, True]
    assert ran(serving, run)[1]["pid"] == serving.pid() != first
    serving.record.with_suffix(".go").touch()
    serving.wait(lambda: status(serving, run) == "ended")
    serving.wait(lambda: "anneal_outbox_kept 0.0" in scraped(serving))
    os.kill(serving.pid(), signal.SIGKILL)
    other = serving.replay("shop-prod")
    serving.wait(lambda: status(serving, other) == "ended")
    assert len(ran(serving, run)) == 2, "what has ended isn't run again"


def test_a_replay_taken_while_there_is_no_worker_waits_for_one(serving: Serving) -> None:
    os.kill(serving.pid(), signal.SIGKILL)
    run = serving.replay("shop-prod", force=True)
    serving.wait(lambda: status(serving, run) == "ended")
    assert len(ran(serving, run)) == 1
