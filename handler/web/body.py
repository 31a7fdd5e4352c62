"""Request bodies within bounds: never more than the cap is kept, whatever Content-Length says or leaves unsaid."""

from __future__ import annotations

from typing import Any

from handler.model.errors import BadPayload, TooLarge, WrongMediaType

MAX_BODY = 5 * 1024 * 1024
STEP = 64 * 1024


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
    """Raise WrongMediaType unless a body is plain JSON: forms and compressed bodies are never decoded."""
    if content_encoding.strip().lower() not in ("", "identity"):
        raise WrongMediaType.of("body", "compressed bodies are not read", fix="send it without Content-Encoding")
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise WrongMediaType.of("body", "is not JSON", fix="set the webhook's content type to application/json")


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
