"""Bodies: what Content-Length claims is never trusted."""

from __future__ import annotations

import io
from typing import Any

import pytest

from handler.model.errors import BadPayload, TooLarge, WrongMediaType
from handler.web.request_body import STEP, read, require_json
from tests.unit.rows import each_row


class Endless(io.RawIOBase):
    """A body that never ends, and counts what was taken from it."""

    taken = 0

    def read(self, size: int = -1) -> bytes:
        assert size > 0
        self.taken += size
        return b" " * size


def environ(stream: Any, **more: Any) -> dict[str, Any]:
    return {"wsgi.input": stream, **more}


CHUNKED = {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}


def test_a_chunked_body_is_read_to_its_end() -> None:
    assert read(environ(io.BytesIO(b"x" * 200_000), **CHUNKED)) == b"x" * 200_000


@each_row("claim", [CHUNKED, {"CONTENT_LENGTH": "1000000"}])
def test_an_endless_body_is_refused_after_the_cap_and_one_step(claim: dict[str, Any]) -> None:
    stream = Endless()
    with pytest.raises(TooLarge):
        read(environ(stream, **claim), limit=500_000)
    assert stream.taken <= 500_000 + STEP


@each_row("length", ["5242881", str(10**12), "9" * 5000])
def test_a_length_over_the_cap_is_refused_unread(length: str) -> None:
    stream = Endless()
    with pytest.raises(TooLarge):
        read(environ(stream, CONTENT_LENGTH=length))
    assert stream.taken == 0


def test_no_more_is_read_than_was_declared() -> None:
    stream = io.BytesIO(b"bodynext request")
    assert read(environ(stream, CONTENT_LENGTH="4")) == b"body"
    assert stream.read() == b"next request"


def test_a_body_shorter_than_declared_is_refused() -> None:
    with pytest.raises(BadPayload):
        read(environ(io.BytesIO(b"bo"), CONTENT_LENGTH="4"))


@each_row("length", ["", "-1", "1.5", "٣", "abc"])
def test_without_a_length_there_is_no_body(length: str) -> None:
    assert read(environ(Endless(), CONTENT_LENGTH=length)) == b""
    assert read(environ(Endless(), HTTP_TRANSFER_ENCODING="chunked")) == b""


def test_whatever_the_server_raises_is_the_senders_mistake() -> None:
    class Broken(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise KeyError("bad chunk")

    with pytest.raises(BadPayload):
        read(environ(Broken(), **CHUNKED))


_WHERE = "at the git host's webhook or in the proxy that sets it"
_COMPRESSED = "header Content-Encoding: expected none, found gzip: compressed bodies are not read; switch gzip of request bodies off"
_MISUSED = "header Content-Encoding: expected none, found {}: bodies are read as they are, in UTF-8; take the header away, {}; {}"
_CHARSET = "a charset belongs to Content-Type"
_KIND = "header Content-Type: expected application/json, found {}: the body is not read as JSON; {}"
_SET = "set the webhook's content type to application/json"


@each_row(
    ("kind", "encoding", "told"),
    [
        ("application/json", "GZIP", f"{_COMPRESSED}, {_WHERE}"),
        ("application/json", "utf-8", _MISUSED.format("utf-8", _WHERE, _CHARSET)),
        ("application/json", "gzip, a-secret", _MISUSED.format("what names no compression", _WHERE, _CHARSET)),
        ("application/x-www-form-urlencoded; charset=utf-8", "", _KIND.format("application/x-www-form-urlencoded", _SET)),
        ("", "", _KIND.format("none", _SET)),
        ("a-secret", "identity", _KIND.format("another type", _SET)),
    ],
)
def test_a_header_that_keeps_a_body_unread_is_named_with_what_was_seen(kind: str, encoding: str, told: str) -> None:
    """But for words that a sender chose: refusals are kept, and logged."""
    with pytest.raises(WrongMediaType) as caught:
        require_json(kind, encoding)
    assert str(caught.value) == told


@each_row("encoding", ["", "identity", " Identity "])
def test_json_as_it_is_is_read(encoding: str) -> None:
    require_json("Application/JSON; charset=utf-8", encoding)
