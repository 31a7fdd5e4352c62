"""The port to a host's `git-upload-pack`, spoken by `http_transport` and `ssh`; what a host sends is counted as it is read."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol, cast
from urllib.parse import urlsplit

from handler.model.advice import advice
from handler.model.errors import SourceRefused
from handler.model.tree import printable
from handler.source.bounded_connections import Deadline

CHUNK = 65536


class UploadPack(Protocol):
    """A repository's `git-upload-pack`, thread-safe; `subject`: its name. Requests and streams raise only AnnealErrors.

    `by_hand`: what shows a person the host's own words, which aren't quoted: it knows our credentials.
    """

    subject: str
    by_hand: str

    def advertisement(self, deadline: Deadline, most: int) -> AbstractContextManager[BinaryIO]:
        """Ask what the host offers (git: gitprotocol-v2(5), version 2 preferred); at most `most` bytes of it."""

    def command(self, deadline: Deadline, request: bytes, most: int) -> AbstractContextManager[BinaryIO]:
        """Send one request and give its answer; at most `most` bytes of it."""

    def close(self) -> None:
        """Close idle connections."""


class Counted(io.RawIOBase):
    """Bytes that arrive by `read1` (at most so many, empty at the end), counted."""

    def __init__(self, read1: Callable[[int], bytes], most: int, subject: str) -> None:
        super().__init__()
        self._read1 = read1
        self._left = most
        self._most = most
        self._subject = subject

    def readable(self) -> bool:
        """Say yes: `io.BufferedReader` asks."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # BufferedReader always hands a memoryview
        """Read what has arrived, at most the buffer's size. Raises SourceRefused: it is more than `most`."""
        data = self._read1(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise SourceRefused.of(self._subject, f"sends more than {self._most} bytes in one answer")
        buffer[: len(data)] = data
        return len(data)


def counted(read1: Callable[[int], bytes], most: int, subject: str) -> BinaryIO:
    """Return a stream over `read1` that ends with SourceRefused after `most` bytes."""
    return cast(BinaryIO, io.BufferedReader(Counted(read1, most, subject), CHUNK))


def by_hand(url: str) -> str:
    """Return what shows a person what a host says, and where it redirects. `url`: one without a password, as the configuration has them."""
    return advice("see what it says: git ls-remote {}", url)


def shown_url(url: str) -> str:
    """Return a URL without credentials, query and fragment."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "(not a URL)"
    return printable(f"{parts.scheme}://{host}{parts.path}" if host else parts.path) or "nowhere"
