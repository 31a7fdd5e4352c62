"""The whole door, running: hostile clients, killed processes, and an orderly end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from handler.web.gunicorn_worker import THREADS
from tests.patience import PATIENCE
from tests.rooms.web.conftest import ROOT, Serving, alive, children

POST = b"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def pushed(server: Serving, hint: str) -> bool:
    return any(run.get("hint") == hint for run in server.runs())


def test_a_push_is_answered_and_run(serving: Serving) -> None:
    assert serving.push() == 202
    serving.wait(lambda: pushed(serving, "a" * 40))
    serving.wait(lambda: any(line["message"] == "run" and line.get("commit") == "a" * 40 for line in serving.lines()))
    serving.wait(lambda: any(line["message"] == "delivery" for line in serving.lines()))  # a subscriber writes it, in its own time
    (line,) = [line for line in serving.lines() if line["message"] == "delivery"]
    assert list(line["runs"]) == ["shop-prod"]


@pytest.mark.parametrize("length", [10**12, 10**30])
def test_a_lying_content_length_is_refused_at_once(door: Serving, length: int) -> None:
    with door.connect() as connection:
        connection.sendall(POST + f"Content-Length: {length}\r\n\r\n".encode())
        assert connection.recv(100).split()[1] in (b"413", b"400")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x02\x00\r\n\r\n", b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 10_000 + b"\r\n\r\n", b"431"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 100 + b"\r\n", b"431"),
        (b"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: weird\r\n\r\n", b"400"),
        (b"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: nonsense\r\n\r\n", b"417"),
    ],
)
def test_malformed_http_gets_json_and_never_5xx(door: Serving, sent: bytes, status: bytes) -> None:
    with door.connect() as connection:
        connection.sendall(sent)
        answer = b""
        while part := connection.recv(4096):
            answer += part
    assert answer.split()[1] == status
    assert b"application/json" in answer
    assert b"<html" not in answer


@pytest.mark.parametrize("header", ["SCRIPT_NAME: /webhooks", "SCRIPT_NAME: /elsewhere", "PATH_INFO: /healthz"])
def test_no_header_moves_a_path_out_of_what_a_proxy_publishes(door: Serving, header: str) -> None:
    with door.connect() as connection:
        connection.sendall(f"GET /webhooks/healthz HTTP/1.1\r\nHost: x\r\n{header}\r\n\r\n".encode())
        assert connection.recv(4096).split()[1] == b"404"


@pytest.mark.parametrize(
    "begun", [b"POST /webhooks/github HTTP/1.1\r\n", POST + b"Content-Length: 100000\r\n\r\n"], ids=["headers", "body"]
)
def test_slow_clients_are_cut_off_and_free_the_door(serving: Serving, begun: bytes) -> None:
    heads = [serving.connect() for _ in range(THREADS)]
    for connection in heads:
        connection.sendall(begun)
    ended = threading.Event()

    def drip() -> None:
        while not ended.wait(0.5):
            for connection in heads:
                try:
                    connection.sendall(b"X")
                except OSError:
                    return

    thread = threading.Thread(target=drip)
    thread.start()
    assert serving.push() == 202, "a push waits until the slow ones are cut, and is served"
    for connection in heads:
        connection.settimeout(PATIENCE)
        try:
            while connection.recv(4096):
                pass
        except ConnectionResetError:
            pass  # cut just as well
    ended.set()
    thread.join()
    for connection in heads:
        connection.close()


def test_a_supervisor_that_is_killed_takes_its_children_along(serving: Serving) -> None:
    pids = [serving.pid(), serving.web(), *children(serving.process.pid)]
    serving.process.kill()
    serving.process.wait(PATIENCE)
    serving.wait(lambda: not any(alive(pid) for pid in pids))


def test_sigterm_lets_runs_finish_and_ends_with_0(serving: Serving) -> None:
    serving.push("slow")
    serving.wait(lambda: any(run.get("target") == "slow" and run["trigger"] == "push" for run in serving.runs()))
    pids = [serving.pid(), *children(serving.process.pid)]
    serving.process.send_signal(signal.SIGTERM)
    assert serving.process.wait(PATIENCE) == 0
    ended = {line["process"]: line["status"] for line in serving.lines() if line["message"] == "a process ended"}
    assert ended == {"worker": 0, "web": 0}, "of themselves, in the 20 seconds after which they would have been killed"
    assert {"released": "slow"} in serving.runs()
    assert not any(alive(pid) for pid in pids)
    assert not [line for line in serving.lines() if line["level"] == "error"]


def test_the_web_process_loads_no_kubernetes_dulwich_or_renderer() -> None:
    heavy = {"kubernetes", "dulwich", "boto3", "botocore", "handler.source", "handler.cluster", "handler.render", "handler.state"}
    program = f"import sys, handler.wsgi; print(sorted({heavy!r} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True).stdout == "[]\n"
