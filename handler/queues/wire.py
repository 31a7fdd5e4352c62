"""Frames on the Unix-domain socket between web and worker: four bytes of length, then JSON.

Both ends are this program under the same user; what doesn't parse is a `ValueError` and ends the connection.
"""

from __future__ import annotations

import dataclasses
import json
import socket
import struct
from typing import Any

from handler.model.event import Delivery, Job
from handler.queues.pending import Work

MAX_FRAME = 1 << 20
_LENGTH = struct.Struct(">I")


def send(connection: socket.socket, message: dict[str, Any]) -> None:
    """Write one frame. Raises OSError."""
    body = json.dumps(message).encode()
    connection.sendall(_LENGTH.pack(len(body)) + body)


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """Read one frame; None when the other side has closed. Raises OSError, ValueError."""
    head = _exactly(connection, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > MAX_FRAME:
        raise ValueError("frame too long")
    message = json.loads(_exactly(connection, length) or b"")
    if not isinstance(message, dict):
        raise ValueError("frame is not an object")  # noqa: TRY004 - all that is wrong with a frame is one class
    return message


def encode(work: Work) -> dict[str, Any]:
    """Write a job as JSON values."""
    return {"job": dataclasses.asdict(work.job), "runs": work.runs}


def decode(message: dict[str, Any]) -> Work:
    """Read what `encode` wrote. Raises ValueError."""
    try:
        fields = dict(message["job"])
        deliveries = tuple(Delivery(**delivery) for delivery in fields.pop("deliveries"))
        return Work(Job(**fields, deliveries=deliveries), tuple(message["runs"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a job: {error}") from error


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)
