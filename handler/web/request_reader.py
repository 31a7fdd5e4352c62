"""When a request is whole: its bytes as they arrive, without a thread that waits for them.

Law: gunicorn's parser alone says what a head means; here is found where it ends and how much body follows. A body is taken out of its
chunks as strictly as gunicorn does (RFC 9112, 7.1), each byte looked at once. What can't become a request is refused at once, by gunicorn's
exceptions; nothing past the end of a request is looked at.
"""

from __future__ import annotations

import io
import re
from collections.abc import Generator
from typing import Any

from gunicorn.http import errors
from gunicorn.http.body import ChunkedReader, LengthReader
from gunicorn.http.message import Request
from gunicorn.http.unreader import IterUnreader

from handler.web.repeated_headers import each_once

MOST_HEAD = 64 * 1024
"""Bytes of a whole head; gunicorn bounds its lines and their number, which together would be half a megabyte."""
FRAMING = 64 * 1024
"""Bytes that the framing of chunks may take, beside an eighth of what they hold: no client sends single bytes, which cost time."""
_END = b"\r\n\r\n"
_SIZE = re.compile(rb"([0-9a-fA-F]{1,16})(?:[ \t]*;[\t -~]*)?")  # how a chunk begins; its extensions mean nothing to us


class RequestReader:
    """One request on its way. `cfg`: gunicorn's settings; `client`: the peer's address; `most`: bytes of a body that are kept."""

    def __init__(self, cfg: Any, client: Any, most: int) -> None:
        self.request: Any = None
        """Gunicorn's request, once its head is there."""
        self._cfg, self._client, self._most = cfg, client, most
        self._raw = bytearray()
        self._body = bytearray()
        self._wanted = 0
        self._chunks: Generator[None] | None = None

    @property
    def size(self) -> int:
        """Bytes that are held."""
        return len(self._raw) + len(self._body)

    def feed(self, data: bytes) -> bool:
        """Take received bytes; return whether the request is whole, or its body exceeds the limit. Raises gunicorn's exceptions."""
        if self.request is None:
            before = len(self._raw)
            self._raw += data
            end = self._raw.find(_END, max(before - 3, 0))
            if end < 0:
                self._doubt(before)
                return False
            data = self._begin(end + len(_END))
        return self._whole(data)

    def taken(self) -> Any:
        """Return the whole request, its body ready to be read, each of its headers once."""
        self.request.headers = [(name.upper(), value) for name, value in each_once(self.request.headers).items()]
        self.request.body = io.BytesIO(bytes(self._body))
        self._raw, self._body, self._chunks = bytearray(), bytearray(), None
        return self.request

    def _doubt(self, before: int) -> None:
        """Refuse a head that will never end as it must, instead of waiting for its end."""
        raw, limit = self._raw, self._cfg.limit_request_line
        if raw.count(b"\n", before) != raw.count(b"\r\n", max(before - 1, 0)):
            raise errors.InvalidRequestLine("bare LF as line terminator")
        if len(raw) > limit + 2 and raw.find(b"\r\n", 2, limit + 2) < 0:
            raise errors.LimitRequestLine(len(raw), limit)
        if len(raw) > MOST_HEAD:
            raise errors.LimitRequestHeaders("limit request headers size")

    def _begin(self, end: int) -> bytes:
        head, rest = bytes(self._raw[:end]), bytes(self._raw[end:])
        self._raw = bytearray()
        request: Any = Request(self._cfg, IterUnreader([head]), self._client)
        reader = request.body.reader
        request.body = None  # a reader of chunks is part of a circle
        if isinstance(reader, ChunkedReader):
            self._chunks = _unchunked(self._raw, self._body, request)
        elif isinstance(reader, LengthReader):
            self._wanted = reader.length
        self.request = request
        return rest

    def _whole(self, data: bytes) -> bool:
        if self._chunks:
            self._raw += data
            return next(self._chunks, self) is self or len(self._body) > self._most
        if self._wanted > self._most:
            return True  # it is refused by its length alone
        self._body += data[: self._wanted - len(self._body)]
        return len(self._body) == self._wanted


def _unchunked(raw: bytearray, body: bytearray, request: Any) -> Generator[None]:
    """Move what chunks hold from `raw` to `body`; yield for more bytes, end with the last trailer."""
    longest, framing = request.limit_request_field_size, 0
    while size := _size(line := (yield from _line(raw, longest))):
        framing += len(line) + 4
        if framing > FRAMING + len(body) // 8:
            raise errors.InvalidChunkSize(b"chunks of next to nothing")
        while True:
            part = raw[:size]
            body += part
            del raw[: len(part)]
            size -= len(part)
            if not size:
                break
            yield
        if after := (yield from _line(raw, 1)):
            raise errors.ChunkMissingTerminator(after)
    trailers = list[bytes]()
    while trailer := (yield from _line(raw, longest)):
        trailers.append(trailer)
        if len(trailers) > request.limit_request_fields:
            raise errors.LimitRequestHeaders("limit request trailer fields")
    if trailers:
        request.trailers = request.parse_headers(b"\r\n".join(trailers), from_trailer=True)


def _line(raw: bytearray, longest: int) -> Generator[None, None, bytes]:
    """Take a line off `raw`; yield for more bytes."""
    seen = 0
    while (end := raw.find(b"\r\n", seen)) < 0 and len(raw) <= longest:
        seen = max(len(raw) - 1, 0)
        yield
    if not 0 <= end <= longest or b"\n" in raw[:end]:
        raise errors.InvalidChunkSize(bytes(raw[:20]))
    line = bytes(raw[:end])
    del raw[: end + 2]
    return line


def _size(line: bytes) -> int:
    found = _SIZE.fullmatch(line)
    if not found:
        raise errors.InvalidChunkSize(line[:20])
    return int(found[1], 16)
