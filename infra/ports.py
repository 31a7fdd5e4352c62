"""Ports of loopback whose number must be known before their server starts."""

from __future__ import annotations

import socket


def keep() -> socket.socket:
    """Keep a free port, for as long as this socket is open: it never listens, so that a server that asks for this very port may bind it.

    While no server listens, connections are refused there, and no other program is given it.
    """
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    return kept
