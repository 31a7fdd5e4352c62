"""Request bodies within bounds: never more than the cap is kept, whatever Content-Length says or leaves unsaid."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from handler.model.errors import BadPayload, TooLarge, WrongMediaType

MAX_BODY = 5 * 1024 * 1024
STEP = 64 * 1024
COMPRESSED = ("gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd")
CHARSETS = ("utf-8", "utf8", "us-ascii", "iso-8859-1", "windows-1252", "chunked", "json", "application/json", "none", "aws-chunked")
"""What stands in Content-Encoding by mistake."""
KINDS = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain", "text/json", "application/octet-stream")
_WHERE = "at the git host's webhook or in the proxy that sets it"


def read(environ: dict[str, Any], limit: int = MAX_BODY) -> bytes:
    """Return the raw body of a WSGI request. Raises TooLarge after at most `limit` + 64 KiB, BadPayload when it is cut short."""
    declared = _declared(environ)
    if declared is not None and declared > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    total = 0
    while declared is None or total < declared:
        part = _part(environ["wsgi.input"], STEP if declared is None else min(STEP, declared - total))
        if not part:
            break
        parts.append(part)
        total += len(part)
        if total > limit:
            raise _too_large(limit)
    if declared is not None and total < declared:
        raise _cut_short()
    return b"".join(parts)


def require_json(content_type: str, content_encoding: str) -> None:
    """Raise WrongMediaType unless the headers say that a body is plain JSON: forms and compressed bodies are never decoded."""
    encoding, kind = content_encoding.strip().lower(), content_type.partition(";")[0].strip().lower()
    if encoding in COMPRESSED:
        seen = f"expected none, found {encoding}: compressed bodies are not read"
        raise WrongMediaType.of("header Content-Encoding", seen, fix=f"switch {encoding} of request bodies off, {_WHERE}")
    if encoding not in ("", "identity"):
        seen = f"expected none, found {_known(encoding, CHARSETS, 'what names no compression')}: bodies are read as they are, in UTF-8"
        raise WrongMediaType.of("header Content-Encoding", seen, fix=f"take the header away, {_WHERE}; a charset belongs to Content-Type")
    if kind != "application/json":
        seen = f"expected application/json, found {_known(kind, KINDS, 'another type') if kind else 'none'}: the body is not read as JSON"
        raise WrongMediaType.of("header Content-Type", seen, fix="set the webhook's content type to application/json")


def _known(seen: str, known: Collection[str], other: str) -> str:
    """Return what was seen if it is a word of ours: refusals are kept, and nothing that a sender writes is."""
    return seen if seen in known else other


def _declared(environ: dict[str, Any]) -> int | None:
    """Return Content-Length; None for a chunked body, which the server ends itself (`wsgi.input_terminated`)."""
    length = environ.get("CONTENT_LENGTH") or ""
    if environ.get("HTTP_TRANSFER_ENCODING"):
        return None if environ.get("wsgi.input_terminated") else 0
    if not length.isascii() or not length.isdigit():
        return 0
    return int(length) if len(length) < 20 else MAX_BODY + 1


def _part(stream: Any, size: int) -> bytes:
    try:
        return bytes(stream.read(size))
    except Exception as error:  # each WSGI server has its own class for a body that breaks off or is badly chunked
        raise _cut_short() from error


def _too_large(limit: int) -> TooLarge:
    return TooLarge.of("body", f"is larger than {limit} bytes")


def _cut_short() -> BadPayload:
    return BadPayload.of("body", "ended too early or is badly framed")
