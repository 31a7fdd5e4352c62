"""The whole door, running: hostile clients, killed processes, and an orderly end."""

from __future__ import annotations

import os
import signal

from tests.fakes.signed_webhooks import SECRETS
from tests.rooms.web.conftest import Serving, children
from tests.rooms.web.test_serve import POST, pushed


def test_every_target_gets_a_start_up_tick(serving: Serving) -> None:
    serving.wait(lambda: {run["target"] for run in serving.runs() if "target" in run} == {"shop-prod", "slow"})
    assert serving.runs()[0]["threads"] == 1, "prepare comes before any thread"


def test_a_body_that_breaks_off_leaves_the_server_serving(serving: Serving) -> None:
    for framing in (
        b"Content-Length: 100\r\n\r\nab",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    ):
        with serving.connect() as connection:
            connection.sendall(POST + framing)
            connection.shutdown(1)
            assert connection.recv(100).split()[1:2] in ([], [b"400"])
    assert serving.push() == 202
    assert not [line for line in serving.lines() if line["level"] == "error"]


def test_idle_keep_alive_connections_block_no_other_client(serving: Serving) -> None:
    connections = [serving.connect() for _ in range(40)]
    for connection in connections:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    # Closing them one after the other, two seconds each, would take longer than the client's patience.
    assert serving.push() == 202
    for connection in connections:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        connection.close()


def test_deliveries_that_arrive_while_the_worker_is_dead_are_run_by_the_next_one(serving: Serving) -> None:
    killed = serving.pid()
    os.kill(killed, signal.SIGSTOP)  # the web process can't tell it from a busy one
    assert [serving.push(after=f"{number:040x}") for number in range(0xB00, 0xB20)] == [202] * 32
    os.kill(killed, signal.SIGKILL)
    assert serving.push(after="c" * 40) == 202
    serving.wait(lambda: any(run.get("hint") == "c" * 40 and run["pid"] != killed for run in serving.runs()))
    serving.wait(lambda: serving.request("GET", "/readyz")[0] == 200)


def test_readiness_tells_a_dead_worker_and_liveness_does_not(serving: Serving) -> None:
    os.kill(serving.pid(), signal.SIGSTOP)
    assert serving.request("GET", "/readyz") == (503, {"web": "ok", "worker": "unreachable"})
    assert serving.request("GET", "/healthz") == (200, {"web": "ok"})
    os.kill(serving.pid(), signal.SIGCONT)
    serving.wait(lambda: serving.request("GET", "/readyz")[0] == 200)


def test_a_killed_web_process_is_replaced_and_no_connection_is_refused(serving: Serving) -> None:
    (arbiter,) = [pid for pid in children(serving.process.pid) if pid != serving.pid()]
    os.kill(arbiter, signal.SIGKILL)
    assert serving.push() == 202
    serving.wait(lambda: pushed(serving, "a" * 40))


def test_a_secret_sent_as_a_path_is_in_no_log(serving: Serving) -> None:
    serving.request("POST", f"/replay/{SECRETS['OPS']}", b"", {"Authorization": f"Bearer {SECRETS['OPS']}"})
    serving.wait(lambda: "replay refused" in serving.log.read_text())
    assert not [name for name, value in SECRETS.items() if value in serving.log.read_text()]
