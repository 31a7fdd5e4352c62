"""Open pages, as a process of its own: `python -m infra.bench.live_viewers PORT TARGET COOKIE…`. It ends with its standard input.

A line that it reads is answered by what has arrived so far, as JSON: bytes, events, and streams that the server has closed.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import sys

VIEWERS, OF_TARGET, OF_VISITOR = 50, 10, 10
_BUFFER = bytearray(1 << 18)


def main(port: int, target: str, *cookies: str) -> None:
    """Be the pages, most of the overview, some of the target."""
    seen = {"bytes": 0, "events": 0, "closed": 0}
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as look:
        for number in range(VIEWERS):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), 10))
            topic = target if number < OF_TARGET else "/"
            cookie = cookies[number // OF_VISITOR]
            sock.sendall(f"GET /ui/live?topic={topic} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n\r\n".encode())
            look.register(sock, selectors.EVENT_READ, sock)
        look.register(sys.stdin, selectors.EVENT_READ)
        while True:
            for key, _ in look.select():
                if key.data:
                    _read(key.data, look, seen)
                elif not sys.stdin.readline():
                    return
                else:
                    print(json.dumps(seen), flush=True)


def _read(sock: socket.socket, look: selectors.BaseSelector, seen: dict[str, int]) -> None:
    size = sock.recv_into(_BUFFER)
    seen["bytes"] += size
    seen["events"] += _BUFFER.count(b"event: ", 0, size)
    if not size:
        seen["closed"] += 1
        look.unregister(sock)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
