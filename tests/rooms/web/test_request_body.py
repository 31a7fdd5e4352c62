"""Bodies without end, with lying lengths, or one byte a second, on every path that takes a POST, and on those that don't."""

from __future__ import annotations

import contextlib
import socket

import pytest

from handler.triggers import WEBHOOKS
from handler.web.request_body import MAX_BODY
from tests.fakes.signed_webhooks import SECRETS, github_headers, github_push
from tests.patience import PATIENCE
from tests.rooms.web.conftest import Serving

ROUTES = (*(f"/webhooks/{provider}" for provider in WEBHOOKS), "/replay/shop-prod")


def head(path: str, *lines: str) -> bytes:
    token = f"Authorization: Bearer {SECRETS['OPS']}"
    return "\r\n".join((f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", token, *lines, "", "")).encode()


def answered(connection: socket.socket) -> bytes:
    """Return all that comes until the server closes or resets. Raises TimeoutError: it does neither."""
    connection.settimeout(PATIENCE)
    found = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(4096):
            found += part
    return found


def status(answer: bytes) -> int:
    return int(answer.split()[1]) if answer else 0


def chunk(part: bytes) -> bytes:
    return f"{len(part):x}\r\n".encode() + part + b"\r\n"


@pytest.mark.parametrize("length", [MAX_BODY + 1, 10**12, 10**30])
def test_a_length_over_the_cap_is_refused_before_a_byte_of_it_came(door: Serving, length: int) -> None:
    for path in ROUTES:
        with door.connect() as connection:
            connection.sendall(head(path, f"Content-Length: {length}"))
            assert status(answered(connection)) == 413, path


def test_what_follows_a_body_that_is_longer_than_its_length_is_no_second_request(door: Serving) -> None:
    body = github_push()
    smuggled = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    signed = [f"{name}: {value}" for name, value in github_headers(body).items() if name != "Content-Type"]
    for path in ROUTES:
        lines = signed if path == "/webhooks/github" else []
        given = body if lines else b"{}"
        for framing, sent in ((f"Content-Length: {len(given)}", given), ("Transfer-Encoding: chunked", chunk(given) + b"0\r\n\r\n")):
            with door.connect() as connection:
                connection.sendall(head(path, framing, *lines) + sent + smuggled)
                answer = answered(connection)
            assert answer.count(b"HTTP/1.1 ") <= 1, path
            assert b'"web"' not in answer, path
    assert door.push() == 202


def test_both_framings_at_once_are_refused(door: Serving) -> None:
    for path in ROUTES:
        with door.connect() as connection:
            connection.sendall(head(path, "Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n")
            answer = answered(connection)
        assert status(answer) in (400, 0), path
        assert b'"web"' not in answer, path
