"""The web process ends after so many requests, and another takes its place: no request is refused, nothing that was answered is lost."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from handler.queues.pending import MAX_RUNS
from tests.fakes.signed_webhooks import github_headers, github_push
from tests.rooms.web.conftest import CONFIG, Serving, alive, children, served

MOST = 40
REPLACED = "the web process has served enough and is replaced"
SENDERS, EACH, BATCH = 6, 60, 10


def replaced(server: Serving) -> int:
    return sum(line["message"] == REPLACED for line in server.lines())


def delivered(server: Serving, hint: str) -> str:
    """Send a push; return the id of its run."""
    body = github_push(after=hint)
    status, answer = server.request("POST", "/webhooks/github", body, github_headers(body))
    assert status == 202
    return str(answer["run"])


def ended(server: Serving) -> set[str]:
    """Return the ids of all requests whose run has a line."""
    runs = [line for line in server.lines() if line["message"] == "run"]
    return {each for line in runs for each in (line["run"], *line.get("requests", ()))}


def deliver(server: Serving, hints: Sequence[str], acknowledged: list[str]) -> None:
    """Send pushes, a batch at a time: a run remembers no more ids than `MAX_RUNS`, and a busy machine may let all of them wait for one."""
    for start in range(0, len(hints), BATCH):
        server.wait(lambda: len(set(acknowledged) - ended(server)) < MAX_RUNS - SENDERS * BATCH)
        acknowledged.extend(delivered(server, hint) for hint in hints[start : start + BATCH])


def test_under_load_the_web_process_is_replaced_at_max_requests_and_each_delivery_is_run(tmp_path: Path) -> None:
    with served(tmp_path, CONFIG, ANNEAL_MAX_REQUESTS=str(MOST)) as server:
        acknowledged: list[str] = []
        failures: list[Exception] = []

        def send(sender: int) -> None:
            try:
                deliver(server, [f"{sender + 1:020x}{number:020x}" for number in range(EACH)], acknowledged)
            except Exception as error:  # noqa: BLE001 - reported by the test, whatever it is
                failures.append(error)

        threads = [threading.Thread(target=send, args=(sender,)) for sender in range(SENDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(acknowledged) == SENDERS * EACH
        while replaced(server) < 2 and len(acknowledged) < 2 * SENDERS * EACH:  # a busy machine may not have let it go so often yet
            deliver(server, [f"{len(acknowledged):040x}"], acknowledged)
        server.wait(lambda: set(acknowledged) <= ended(server))
        assert replaced(server) >= 2, "after 40 to 44 requests, twice as many where it is never quiet, once the worker has what came"
        assert not [line for line in server.lines() if line["level"] in ("warning", "error")]


def test_a_web_process_with_a_kept_replay_isnt_replaced_before_its_run_has_ended(tmp_path: Path) -> None:
    with served(tmp_path, CONFIG, ANNEAL_MAX_REQUESTS=str(MOST)) as server:
        run, before = server.replay("slow"), server.web()
        server.wait(lambda: any(line.get("run") == run for line in server.runs()))
        for _ in range(3 * MOST):
            assert server.request("GET", "/healthz")[0] == 200
        assert server.web() == before
        server.record.with_suffix(".go").touch()
        server.wait(lambda: replaced(server) == 1)
        server.wait(lambda: not alive(before))
        status, answer = server.read(f"/api/runs/{run}")
        assert (status, answer["status"], answer["outcome"]) == (200, "ended", "unchanged")


def test_without_max_requests_the_web_process_stays(tmp_path: Path) -> None:
    with served(tmp_path, CONFIG, ANNEAL_MAX_REQUESTS="0") as server:
        before = server.web()
        for _ in range(3):
            assert server.request("GET", "/healthz")[0] == 200
        assert (server.web(), replaced(server)) == (before, 0)


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="this system keeps no files in memory at /dev/shm")
def test_the_heartbeat_is_a_file_in_memory(serving: Serving) -> None:
    (arbiter,) = [pid for pid in children(serving.process.pid) if pid != serving.pid()]
    opened = []
    for each in Path(f"/proc/{arbiter}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            opened.append(str(each.readlink()))
    assert [name for name in opened if re.fullmatch(r"/dev/shm/wgunicorn-\S+ \(deleted\)", name)]
