"""A client of server-sent events that keeps all it was sent, as bytes and as events."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

from tests.patience import PATIENCE
from tests.rooms.web.conftest import Serving


class EventSource:
    """One stream, from its request on. `receive`: bytes of its receive buffer, if not the system's."""

    def __init__(self, server: Serving, query: str, receive: int = 0, **headers: str) -> None:
        self.sock = socket.socket()
        if receive:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(("127.0.0.1", server.port))
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.sock.sendall(f"GET /ui/live?{query} HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode())
        self.raw = b""
        self.ended = False

    def __enter__(self) -> EventSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    @property
    def head(self) -> str:
        """Status line and headers, read as far as they go."""
        self.until(lambda: b"\r\n\r\n" in self.raw)
        return self.raw.partition(b"\r\n\r\n")[0].decode()

    @property
    def status(self) -> int:
        return int(self.head.split()[1])

    @property
    def blocks(self) -> list[dict[str, str]]:
        """The blocks that are whole, each by its fields; comments have an empty name."""
        body = self.raw.partition(b"\r\n\r\n")[2].decode()
        parted = [block.split("\n") for block in body.split("\n\n")[:-1]]
        return [{name: value.removeprefix(" ") for name, _, value in (line.partition(":") for line in block)} for block in parted]

    @property
    def shown(self) -> dict[str, str]:
        """What a page would show: the newest fragment of each element."""
        replaced = [json.loads(block["data"]) for block in self.blocks if block.get("event") == "replace"]
        return {each["id"]: each["html"] for each in replaced}

    @property
    def kinds(self) -> list[str]:
        """The names of the events in their order, each once in a row."""
        named = [block["event"] for block in self.blocks if "event" in block]
        return [name for number, name in enumerate(named) if number == 0 or named[number - 1] != name]

    @property
    def live(self) -> Any:
        """The live picture of the topic, as the stand-in renders it."""
        return json.loads(self.shown.get("live", "null").rstrip("x"))

    def until_row(self, target: str, commit: str) -> None:
        """Read until the overview shows this commit of a target."""
        self.until(lambda: commit in self.shown.get(f"row-{target}", ""))

    def until_live(self, **wanted: str) -> None:
        """Read until the live picture of the target is so."""
        self.until(lambda: wanted.items() <= (self.live or {}).items())

    def until_kind(self, kind: str) -> None:
        """Read until there was an event of this name."""
        self.until(lambda: kind in self.kinds)

    def until(self, reached: Callable[[], object]) -> None:
        """Read until something holds; the end of the stream before is a failure."""
        while not reached():
            assert not self.ended, self.raw
            self._read()

    def to_end(self) -> None:
        """Read until the server closes."""
        while not self.ended:
            self._read()

    def _read(self) -> None:
        try:
            data = self.sock.recv(65536)
        except ConnectionResetError:
            data = b""
        self.raw += data
        self.ended = not data
