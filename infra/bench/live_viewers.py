"""Open pages, as a process of its own: `python -m infra.bench.live_viewers PORT TARGET COOKIE…`. It ends with its standard input.

A line that it reads is answered by what has arrived so far, as JSON: bytes, events, looks of a target's pages at the events of its objects,
and streams that the server has closed.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from collections import deque

VIEWERS, OF_TARGET, OF_VISITOR = 50, 10, 10
EVERY = 15.0  # seconds between two looks of an open target page: see target.html
_STREAM, _LOOK = "closed", "looks"
_BUFFER = bytearray(1 << 18)


def main(port: int, target: str, *cookies: str) -> None:
    """Be the pages, most of the overview, some of the target."""
    seen = {"bytes": 0, "events": 0, _LOOK: 0, _STREAM: 0}
    due = deque[tuple[float, str]]()
    with selectors.DefaultSelector() as arrives:
        for number in range(VIEWERS):
            topic, cookie = target if number < OF_TARGET else "/", cookies[number // OF_VISITOR]
            arrives.register(_asked(port, f"/ui/live?topic={topic}", cookie), selectors.EVENT_READ, _STREAM)
            due.extend([(time.monotonic(), cookie)] if number < OF_TARGET else ())
        arrives.register(sys.stdin, selectors.EVENT_READ)
        while True:
            while due[0][0] <= time.monotonic():
                _, cookie = due.popleft()
                due.append((time.monotonic() + EVERY, cookie))
                arrives.register(_asked(port, f"/ui/targets/{target}/events", cookie), selectors.EVENT_READ, _LOOK)
            for key, _ in arrives.select(max(due[0][0] - time.monotonic(), 0.0)):
                if isinstance(key.fileobj, socket.socket):
                    _read(key.fileobj, key.data, arrives, seen)
                elif not sys.stdin.readline():
                    return
                else:
                    print(json.dumps(seen), flush=True)


def _asked(port: int, path: str, cookie: str) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), 10)
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n\r\n".encode())
    return sock


def _read(sock: socket.socket, kind: str, arrives: selectors.BaseSelector, seen: dict[str, int]) -> None:
    size = sock.recv_into(_BUFFER)
    seen["bytes"] += size
    seen["events"] += _BUFFER.count(b"event: ", 0, size) if kind == _STREAM else 0
    if not size:
        seen[kind] += 1
        arrives.unregister(sock)
        sock.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
