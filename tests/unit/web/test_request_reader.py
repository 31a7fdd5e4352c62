"""When a request is whole, however its bytes are cut: heads, lengths, chunks, and what can't become one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from gunicorn.config import Config
from gunicorn.http import errors

from handler.web.gunicorn_settings import SETTINGS
from handler.web.request_reader import FRAMING, MOST_HEAD, RequestReader
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

MOST = 100_000
STEPS = (1, 2, 3, 7, 10**9)
CHUNKED = b"POST /p HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


def incoming() -> RequestReader:
    cfg = Config()
    for name, value in SETTINGS.items():
        cfg.set(name, value)
    return RequestReader(cfg, ("192.0.2.1", 1), MOST)


def fed(sent: bytes, step: int) -> tuple[Any, int]:
    """Feed bytes in steps until the request is whole; return it and how many bytes that took, or None."""
    request = incoming()
    for start in range(0, len(sent), step):
        if request.feed(sent[start : start + step]):
            return request.taken(), min(start + step, len(sent))
    return None, len(sent)


@each_row("step", STEPS)
@each_row(
    ("sent", "body"),
    [
        (b"GET /p HTTP/1.1\r\nHost: x\r\n\r\n", b""),
        (b"GET /p HTTP/1.0\r\n\r\n", b""),
        (b"\r\nGET /p HTTP/1.1\r\n\r\n", b""),
        (b"POST /p HTTP/1.1\r\nContent-Length: 0\r\n\r\n", b""),
        (b"POST /p HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcde", b"abcde"),
        (CHUNKED + b"5\r\nabcde\r\n0\r\n\r\n", b"abcde"),
        (CHUNKED + b'5;name="a b" ;x\r\nabcde\r\n00003\r\nfgh\r\n0\r\nX-Sum: 1\r\n\r\n', b"abcdefgh"),
        (CHUNKED + b"0\r\n\r\n", b""),
    ],
)
def test_a_request_is_whole_with_its_last_byte(sent: bytes, body: bytes, step: int) -> None:
    request, taken = fed(sent, step)
    assert (request.path, request.body.read()) == ("/p", body)
    assert taken == len(sent)
    assert fed(sent[:-1], step)[0] is None


@each_row("step", STEPS)
@each_row("sent", [b"POST /p HTTP/1.1\r\nContent-Length: 2\r\n\r\nab", CHUNKED + b"2\r\nab\r\n0\r\n\r\n"])
def test_bytes_after_the_content_length_are_no_part_of_the_request(sent: bytes, step: int) -> None:
    request, _ = fed(sent + b"GET /q HTTP/1.1\r\n\r\n", step)
    assert (request.path, request.body.read()) == ("/p", b"ab")


@each_row("step", STEPS)
@each_row(
    ("sent", "error"),
    [
        (b"GET /p HTTP/1.1\nHost: x\n\n", errors.InvalidRequestLine),
        (b"GET /p HTTP/1.1\r\nHost: x\n\r\n\r\n", errors.ParseException),
        (b"GET /" + b"a" * 4000, errors.LimitRequestLine),
        (b"\x16\x03\x01" * 1000, errors.LimitRequestLine),
        (b"GET /p HTTP/1.1\r\n" + b"X: y\r\n" * 100 + b"\r\n", errors.LimitRequestHeaders),
        (b"GET /p HTTP/1.1\r\nX: " + b"a" * 9000 + b"\r\n\r\n", errors.LimitRequestHeaders),
        (CHUNKED + b"5\r\nabcdeX\r\n", errors.ParseException),
        (CHUNKED + b"5\r\nabcdefgh\r\n", errors.ParseException),
        (CHUNKED + b"zz\r\n", errors.ParseException),
        (CHUNKED + b"\r\n", errors.ParseException),
        (CHUNKED + b" 5\r\nabcde\r\n", errors.ParseException),
        (CHUNKED + b"5 \r\nabcde\r\n", errors.ParseException),
        (CHUNKED + b"+5\r\nabcde\r\n", errors.ParseException),
        (CHUNKED + b"0x5\r\nabcde\r\n", errors.ParseException),
        (CHUNKED + b"5\nabcde\r\n", errors.ParseException),
        (CHUNKED + b"1;" + b"a" * 9000, errors.ParseException),
        (CHUNKED + b"0\r\nContent-Length: 5\r\n\r\n", errors.ParseException),
        (CHUNKED + b"0\r\n" + b"X: y\r\n" * 100, errors.ParseException),
        (b"POST /p HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", errors.ParseException),
        (b"POST /p HTTP/1.1\r\nContent-Length: -1\r\n\r\n", errors.ParseException),
    ],
)
def test_what_cannot_become_a_request_is_refused_without_waiting(sent: bytes, error: type[Exception], step: int) -> None:
    with pytest.raises(error):
        fed(sent, step)


def test_a_head_without_end_is_refused_at_its_bound() -> None:
    request, line = incoming(), b"X-Filler: " + b"a" * 4000 + b"\r\n"
    request.feed(b"GET /p HTTP/1.1\r\n")
    while request.size + len(line) <= MOST_HEAD:
        assert not request.feed(line)
    with pytest.raises(errors.LimitRequestHeaders):
        request.feed(line)


@each_row("length", [MOST + 1, 10**12, 10**30])
def test_a_length_beyond_what_is_read_waits_for_no_byte(length: int) -> None:
    request = incoming()
    assert request.feed(f"POST /p HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode())
    assert request.taken().body.read() == b""


def test_chunks_beyond_what_is_read_are_handed_over_with_one_byte_too_many() -> None:
    request, part = incoming(), b"4000\r\n" + b"a" * 0x4000 + b"\r\n"
    request.feed(CHUNKED)
    parts = iter(range(100))
    while not request.feed(part):
        next(parts)
    assert MOST < len(request.taken().body.read()) <= MOST + 0x4000


def test_chunks_of_single_bytes_are_refused() -> None:
    def framed(parts: Sequence[bytes]) -> bytes:
        return CHUNKED + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"

    with pytest.raises(errors.InvalidChunkSize):
        fed(framed([b"a"] * FRAMING), 4096)
    assert fed(framed([b"a"] * 1000), 4096)[0].body.read() == b"a" * 1000
    assert fed(framed([b"a" * 64] * 1500), 4096)[0].body.read() == b"a" * 96_000


def test_a_header_that_came_twice_is_no_list_of_both() -> None:
    twice = b"X-Forwarded-Groups: a\r\nCookie: b=1\r\nx-forwarded-groups: c\r\nX_Forwarded_Groups: d\r\nCookie: e=2\r\nAccept: f, g\r\n"
    request, _ = fed(b"GET /p HTTP/1.1\r\n" + twice + b"\r\n", 10**9)
    assert request.headers == [("X-FORWARDED-GROUPS", "a\x1fc"), ("COOKIE", "b=1; e=2"), ("ACCEPT", "f, g")]


@each_row("name", [b"Host", b"Content-Type"])
def test_a_header_that_comes_once_is_refused_twice(name: bytes) -> None:
    with pytest.raises(errors.InvalidHeader):
        fed(b"GET /p HTTP/1.1\r\n" + (name + b": a\r\n") * 2 + b"\r\n", 10**9)
