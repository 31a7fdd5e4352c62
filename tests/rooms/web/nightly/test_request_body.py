"""Bodies without end, with lying lengths, or one byte a second, on every path that takes a POST, and on those that don't."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from handler.web.gunicorn_worker import BODIES, LINGER_BYTES
from handler.web.request_body import MAX_BODY, STEP
from tests.fakes.signed_webhooks import github_headers, github_push
from tests.rooms.web.conftest import Serving, resident
from tests.rooms.web.test_request_body import ROUTES, answered, chunk, head, status

MIB = 1024 * 1024
GIGABYTE = 1000 * MIB
ELSEWHERE = ("/webhooks/nobody", "/healthz", "/api/targets", "/")
"""Where a POST leads nowhere: 404 or 405, whatever its body is."""
KERNEL_KEEPS = 8 * MIB
"""Between a client that writes and a server that doesn't read lie buffers; seen were less than 1 MiB."""


def pour(server: Serving, path: str, framing: str, frame: Callable[[bytes], bytes]) -> tuple[int, bytes]:
    """Send a gigabyte; return how much could be sent before the server hung up, and its answer, which is read meanwhile."""
    sent, part, answer = 0, b" " * STEP, [b""]
    with server.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, STEP)
        connection.sendall(head(path, framing))
        reader = threading.Thread(target=lambda: answer.append(answered(connection)))
        reader.start()
        with contextlib.suppress(OSError):
            while sent < GIGABYTE:
                connection.sendall(frame(part))
                sent += len(part)
        reader.join()
        return sent, answer[-1]


def most_resident(pid: int) -> int:
    """Return the most memory in bytes that a process ever had resident."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize(
    ("framing", "frame"),
    [("Transfer-Encoding: chunked", chunk), (f"Content-Length: {GIGABYTE}", bytes), (f"Content-Length: {10**12}", bytes)],
    ids=["chunked", "1 GB", "10^12"],
)
def test_a_gigabyte_is_cut_off_everywhere_at_the_cap_and_memory_stays_flat(
    serving: Serving, framing: str, frame: Callable[[bytes], bytes]
) -> None:
    web = serving.web()
    serving.push()
    before = resident(web)
    most = (MAX_BODY + STEP if "chunked" in framing else 0) + LINGER_BYTES + STEP + KERNEL_KEEPS
    for path in (*ROUTES, *ELSEWHERE):
        sent, answer = pour(serving, path, framing, frame)
        assert sent <= most, f"{path}: {sent}"
        assert status(answer) in ({404, 405} if path in ELSEWHERE else {413}), path
        assert resident(web) - before < BODIES * MAX_BODY, f"{path}: the allocator of each thread that served keeps what one body took"
        assert serving.request("GET", "/healthz")[0] == 200, path
    assert serving.push() == 202
    assert serving.web() == web, "nothing was killed for it"


def test_signed_bodies_of_a_million_values_are_refused_before_they_are_read(serving: Serving) -> None:
    """`{"":[]}` is seven bytes, and 300 in memory; one character beyond the BMP makes four bytes of each."""
    web, kept = serving.web(), []
    serving.push()
    before = resident(web)
    wide = github_push(note="x" * (MAX_BODY - 1000) + "\U0001f600", ref="no ref").replace(b"\\ud83d\\ude00", "\U0001f600".encode())
    many = b'{"a":[' + b'{"":[]},' * 600_000 + b"0]}"

    def send(body: bytes) -> None:
        kept.append(serving.request("POST", "/webhooks/github", body, github_headers(body))[0])

    threads = [threading.Thread(target=send, args=(body,)) for body in (wide, many) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept == [400] * 16
    assert most_resident(web) - before < 600 * MIB


@pytest.mark.parametrize("silent", [False, True], ids=["one byte a second", "nothing more"])
def test_slow_bodies_on_every_route_are_cut_while_others_are_answered(serving: Serving, silent: bool) -> None:
    """Fewer of them than the door has threads: who comes meanwhile isn't made to wait for the cut."""
    framings = {path: head(path, "Content-Length: 1000") + b"{" for path in ROUTES}
    begun = {**framings, **{f"{path} headers": head(path)[:-4] + b"\r\nX-Slow: " for path in ROUTES[:6]}}
    open_ones = {name: serving.connect() for name in begun}
    for name, connection in open_ones.items():
        connection.sendall(begun[name])
    ended = threading.Event()

    def drip() -> None:
        while not ended.wait(1.0):
            for connection in open_ones.values():
                with contextlib.suppress(OSError):
                    connection.sendall(b" ")

    dripping = threading.Thread(target=drip)
    if not silent:
        dripping.start()
    try:
        for _ in range(5):
            assert serving.push() == 202
            assert serving.request("GET", "/healthz")[0] == 200
        for name, connection in open_ones.items():
            assert status(answered(connection)) in (0, 400, 408), name
            connection.close()
    finally:
        ended.set()
        if not silent:
            dripping.join()
    assert serving.push() == 202
    assert not [line for line in serving.lines() if line["level"] == "error"]
