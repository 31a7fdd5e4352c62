"""Frames on the Unix-domain socket between web and worker: four bytes of length, then JSON.

Both ends are this program under the same user; what doesn't parse is a `ValueError` and ends the connection.
"""

from __future__ import annotations

import json
import socket
import struct
from pathlib import Path
from typing import Any

MAX_FRAME = 1 << 20
"""Bytes of a frame to the worker."""
MAX_ANSWER = 8 << 20
"""Bytes of what the worker answers: what is read there comes in pages, and its lists are cut (`app.target_status`)."""
_LENGTH = struct.Struct(">I")


def send(connection: socket.socket, message: dict[str, Any], limit: int = MAX_FRAME) -> None:
    """Write one frame of at most `limit` bytes. Raises OSError, ValueError."""
    body = json.dumps(message).encode()
    if len(body) > limit:
        raise ValueError(f"a frame of {len(body)} bytes is too long to send")
    connection.sendall(_LENGTH.pack(len(body)) + body)


def receive(connection: socket.socket, limit: int = MAX_FRAME) -> dict[str, Any] | None:
    """Read one frame of at most `limit` bytes; None when the other side has closed. Raises OSError, ValueError."""
    head = _exactly(connection, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > limit:
        raise ValueError("frame too long")
    message = json.loads(_exactly(connection, length) or b"")
    if not isinstance(message, dict):
        raise ValueError("frame is not an object")  # noqa: TRY004 - all that is wrong with a frame is one class
    return message


def ask(connection: socket.socket, message: dict[str, Any]) -> dict[str, Any]:
    """Write one frame and read the worker's answer. Raises OSError, ValueError."""
    send(connection, message)
    return answered(connection)


def answered(connection: socket.socket) -> dict[str, Any]:
    """Read the worker's answer to what was sent. Raises OSError, ValueError."""
    answer = receive(connection, MAX_ANSWER)
    if answer is None:
        raise ConnectionError("the worker has hung up")
    return answer


def connect(path: Path, timeout: float) -> socket.socket:
    """Connect to the worker's socket. `timeout`: seconds that each part of a conversation may take. Raises OSError."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)
