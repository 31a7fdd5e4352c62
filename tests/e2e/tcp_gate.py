"""A TCP gate in front of a server: open, shut (connections are refused and cut) or silent (bytes are swallowed). TLS passes through it."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import yaml

Way = Literal["open", "shut", "silent"]


class Gate:
    """Listens on a port of its own, which stays the same. `way` may be changed at any time."""

    def __init__(self, url: str) -> None:
        upstream = urlsplit(url)
        self._upstream = (str(upstream.hostname), int(upstream.port or 443))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._way: Way = "open"
        self._kept = socket.socket()  # never listens: no other process gets the port while the gate is shut
        self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._kept.bind(("127.0.0.1", 0))
        self.port = int(self._kept.getsockname()[1])
        self._listener = self._listen()
        self.url = f"{upstream.scheme}://127.0.0.1:{self.port}"

    def turn(self, way: Way) -> None:
        """Change the way; what is open now is cut."""
        with self._lock:
            before, self._way = self._way, way
            if way == "shut" and before != "shut":
                self._listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts; a mere `close` would leave it listening
                self._listener.close()
            elif before == "shut" and way != "shut":
                self._listener = self._listen()
            cut, self._open = self._open, set()
        for each in cut:
            _reset(each)

    def close(self) -> None:
        self.turn("shut")
        self._kept.close()

    def _listen(self) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", self.port), backlog=256, reuse_port=True)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                way = self._way
                if way != "shut":
                    self._open.add(client)
            if way == "shut":  # turned between the two: no other thread knows of this one
                _reset(client)
            if way == "open":
                threading.Thread(target=self._join, args=(client,), daemon=True).start()

    def _join(self, client: socket.socket) -> None:
        """Connect a client with the server; where there is none, the client gets a reset."""
        try:
            server = socket.create_connection(self._upstream)
        except OSError:
            _reset(client)
            return
        with self._lock:
            self._open.add(server)
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for each in (source, sink):
            _reset(each)
            with self._lock:
                self._open.discard(each)


def kubeconfig_through(kubeconfig: Path, place: Path) -> tuple[Gate, Path]:
    """Make a gate in front of a kubeconfig's API server, and a kubeconfig that leads through it."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    gate = Gate(cluster["server"])
    cluster["server"] = gate.url
    place.write_text(yaml.safe_dump(config))
    return gate, place


def _reset(sock: socket.socket) -> None:
    """Cut a connection with a reset, and wake the thread that reads from it."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        sock.close()
