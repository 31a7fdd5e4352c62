"""A git host that lies: real HTTP on loopback, answers made by hand. Each test turns one answer bad."""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from dulwich.object_format import SHA1
from dulwich.objects import Blob, Commit, Tree
from dulwich.pack import pack_object_header
from dulwich.protocol import pkt_line

from tests.rooms.source.http_server import Listening

FLUSH = b"0000"
OFFER = pkt_line(b"# service=git-upload-pack\n") + FLUSH
OFFER += b"".join(map(pkt_line, (b"version 2\n", b"ls-refs=unborn\n", b"fetch=shallow filter\n", b"object-format=sha1\n"))) + FLUSH
Chunks = Iterable[bytes]


def entry(kind: int, content: bytes, size: int | None = None, base: bytes | int | None = None) -> bytes:
    """Write one object as it stands in a pack; `size` may lie."""
    return bytes(pack_object_header(kind, base, len(content) if size is None else size, SHA1)) + zlib.compress(content)


def pack(*entries: bytes, count: int | None = None) -> bytes:
    """Write a pack of entries with a right checksum; `count` may lie."""
    body = b"PACK" + (2).to_bytes(4, "big") + (len(entries) if count is None else count).to_bytes(4, "big") + b"".join(entries)
    return body + sha1(body).digest()


def fetched(data: bytes) -> Chunks:
    """Frame a pack as the answer to a fetch."""
    yield pkt_line(b"packfile\n")
    for start in range(0, len(data), 60000):
        yield pkt_line(b"\x01" + data[start : start + 60000])
    yield FLUSH


def small_commit(message: bytes = b"First\n", names: int = 1) -> tuple[str, list[bytes]]:
    """Return the id and the pack entries of a commit with one file under so many names."""
    blob = Blob.from_string(b"kind: ConfigMap\n")
    more = (b"100644 name-%09d\0" % number + bytes.fromhex(blob.id.decode()) for number in range(1, names))
    tree = Tree.from_string(b"100644 app.yaml\0" + bytes.fromhex(blob.id.decode()) + b"".join(more))
    commit = Commit()
    commit.tree = tree.id
    commit.author = commit.committer = b"anneal <anneal@example.invalid>"
    commit.author_time = commit.commit_time = 1700000000
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = message
    parts = [(1, commit.as_raw_string()), (2, tree.as_raw_string()), (3, blob.as_raw_string())]
    return commit.id.decode(), [entry(kind, content) for kind, content in parts]


@dataclass
class Hostile(Listening):
    """The host. `offer`, `refs`, `pack`: bodies of the three answers. `raw`: written instead of any answer. `trust`: speak TLS."""

    offer: Chunks = (OFFER,)
    refs: Chunks = (FLUSH,)
    pack: Callable[[], Chunks] = lambda: fetched(b"")
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: Callable[[], Chunks] | None = None
    trust: ssl.SSLContext | None = None
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.hostile = self
        if self.trust:
            self._server.socket = self.trust.wrap_socket(self._server.socket, server_side=True)
        self._listen(self._server)
        return self

    @property
    def address(self) -> str:
        return f"{'https' if self.trust else 'http'}://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.address}/shop.git"

    def answer(self, path: str, body: bytes) -> tuple[str, Chunks]:
        if "info/refs" in path:
            return "advertisement", self.offer
        return "result", self.refs if b"command=ls-refs" in body else self.pack()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    hostile: Hostile

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients hang up on a hostile host: that is the point."""


class _Handler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        self._speak(b"")

    def do_POST(self) -> None:
        self._speak(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def do_CONNECT(self) -> None:
        self._speak(b"")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        pass

    def _speak(self, body: bytes) -> None:
        host = self.server.hostile
        host.seen.append((self.path, dict(self.headers)))
        if host.raw:
            chunks = host.raw()
        else:
            kind, chunks = host.answer(self.path, body)
            self.send_response(host.status)
            for name, value in ({"Content-Type": f"application/x-git-upload-pack-{kind}"} | host.headers).items():
                self.send_header(name, value)
            self.end_headers()
        for chunk in chunks:
            self.wfile.write(chunk)
