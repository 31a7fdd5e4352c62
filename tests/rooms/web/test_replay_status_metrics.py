"""Replay, reading and metrics on real processes, also when one of them is killed."""

from __future__ import annotations

import http.client
import os
import signal
import threading
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.patience import PATIENCE
from tests.rooms.web.conftest import Serving


def status(server: Serving, run: str) -> str:
    code, answer = server.read(f"/api/runs/{run}")
    return str(answer["status"]) if code == 200 else str(code)


def test_a_run_is_followed_from_its_id_to_its_end(serving: Serving) -> None:
    run = serving.replay("slow", force=True)
    assert run.startswith("slow.")
    serving.wait(lambda: status(serving, run) == "running")
    waiting = serving.replay("slow")
    serving.wait(lambda: status(serving, waiting) == "queued")
    serving.record.with_suffix(".go").touch()
    serving.wait(lambda: status(serving, run) == status(serving, waiting) == "ended")
    code, answer = serving.read(f"/api/runs/{run}")
    assert (code, answer["outcome"], answer["actor"], answer["trigger"]) == (200, "unchanged", "ops", "replay")
    assert serving.read("/api/runs/slow.000000000000")[0] == 404


def scraped(server: Serving, path: str = "/metrics", method: str = "GET") -> str:
    """Ask the listener that is only for metrics."""
    (port,) = [line["port"] for line in server.lines() if line["message"] == "listening for metrics"]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return f"{response.status}\n{response.read().decode()}"
    finally:
        connection.close()


def test_metrics_have_a_listener_of_their_own_that_serves_nothing_else(serving: Serving) -> None:
    serving.push()
    run = serving.replay("shop-prod")
    serving.wait(lambda: status(serving, run) == "ended")
    counted = 'anneal_runs_total{code="",outcome="unchanged",target="shop-prod",trigger="replay"} 1.0'
    serving.wait(lambda: counted in scraped(serving))  # after its end is shown
    code, _, text = scraped(serving).partition("\n")
    assert code == "200"
    families = {family.name for family in text_string_to_metric_families(text)}
    assert {"anneal_deliveries", "anneal_worker_up", "anneal_runs", "anneal_build_info", "anneal_queue_waiting"} <= families
    assert counted in text
    for path in ("/", "/healthz", "/api/targets", "/metrics/x"):
        assert scraped(serving, path).startswith("404")
    assert scraped(serving, "/metrics", "POST").startswith("501")
    assert "anneal_worker_up 1.0" in text


def test_while_the_worker_is_paused_reading_is_refused_in_time_and_the_door_stays_open(serving: Serving) -> None:
    """A quarter of the threads waits for the worker; the others are for deliveries."""
    os.kill(serving.pid(), signal.SIGSTOP)
    try:
        answers: list[tuple[int, Any]] = []
        seen: list[str] = []
        readers = [threading.Thread(target=lambda: answers.append(serving.read("/api/targets"))) for _ in range(20)]
        readers.append(threading.Thread(target=lambda: seen.append(scraped(serving))))
        for reader in readers:
            reader.start()
        assert serving.push() == 202
        for reader in readers:
            reader.join(PATIENCE)
        assert len(answers) == 20
        assert {code for code, _ in answers} == {503}
        assert {answer["code"] for _, answer in answers} <= {"worker-unavailable", "too-many-requests"}
        assert "anneal_worker_up 0.0" in "".join(seen)
    finally:
        os.kill(serving.pid(), signal.SIGCONT)
    serving.wait(lambda: serving.read("/api/targets")[0] == 200)
