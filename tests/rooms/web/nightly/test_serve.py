"""The whole door, running: hostile clients, killed processes, and an orderly end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

from tests.fakes.signed_webhooks import SECRETS
from tests.rooms.web.conftest import Serving, children, resident
from tests.rooms.web.test_serve import POST, pushed

MIB = 1024 * 1024
JSON = {"Content-Type": "application/json"}


def test_every_target_gets_a_start_up_tick(serving: Serving) -> None:
    serving.wait(lambda: {run["target"] for run in serving.runs() if "target" in run} == {"shop-prod", "slow"})
    assert serving.runs()[0]["threads"] == 1, "prepare comes before any thread"


def test_a_replay_is_run(serving: Serving) -> None:
    status, answer = serving.request("POST", "/replay/shop-prod", b'{"force": true}', {"Authorization": f"Bearer {SECRETS['OPS']}", **JSON})
    assert status == 202
    serving.wait(lambda: any(line["message"] == "run" and line["run"] == answer["run"] for line in serving.lines()))


def test_a_run_that_breaks_is_a_log_line_and_the_next_one_runs(serving: Serving) -> None:
    serving.push(after="dead" * 10)
    serving.wait(lambda: any(line.get("outcome") == "failed" for line in serving.lines()))
    serving.push(after="b" * 40)
    serving.wait(lambda: pushed(serving, "b" * 40))


def test_an_endless_chunked_body_is_refused_and_memory_stays_flat(serving: Serving) -> None:
    web = serving.web()
    serving.push()
    before = resident(web)

    def endless() -> Iterator[bytes]:
        for _ in range(50):
            yield b" " * MIB

    for _ in range(3):
        with serving.connect() as connection:
            connection.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n")
            sent = 0
            try:
                for part in endless():
                    connection.sendall(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                    sent += len(part)
            except OSError:
                pass  # the server has hung up
            assert sent < 50 * MIB
    assert serving.push() == 202
    assert resident(web) - before < 40 * MIB  # of 150 that were sent; what a body took may stay with the allocator, of each thread


def test_a_body_over_the_cap_gets_its_answer(door: Serving) -> None:
    status, answer = door.request("POST", "/webhooks/github", iter([b" " * MIB] * 5 + [b" "]), {"Transfer-Encoding": "chunked", **JSON})
    assert (status, answer["code"]) == (413, "too-large")


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
