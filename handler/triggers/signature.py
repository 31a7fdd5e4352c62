"""What proves a sender: header reading and constant-time comparison, shared by the providers.

`hmac.compare_digest` raises TypeError on non-ASCII text, so nothing but bytes and digests is ever compared.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from handler.model.errors import BadSignature

MAX_HEADER = 1024
"""Longer than any provider's signature, token or id; a longer header is not looked at."""
_DELIVERY = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Secret(Protocol):
    """A configured secret that doesn't show itself."""

    def reveal(self) -> str:
        """Return the value."""

    def matches(self, candidate: bytes) -> bool:
        """Compare in constant time, whatever the lengths."""


def header(headers: Mapping[str, str], name: str) -> str:
    """Return a header whatever its case; one that occurs twice is joined by a comma, as WSGI servers do (RFC 9110, 5.3)."""
    return ",".join(value for key, value in headers.items() if key.lower() == name)


def delivery_id(headers: Mapping[str, str], name: str) -> str:
    """Return the provider's id of this delivery, empty if it is missing or isn't one."""
    value = header(headers, name)
    return value if _DELIVERY.fullmatch(value) else ""


def signed_sha256(secret: Secret, body: bytes, hex_digest: str) -> bool:
    """Say whether `hex_digest` (64 lower-case hex digits, checked by the caller) is the HMAC-SHA256 of the raw body."""
    expected = hmac.new(secret.reveal().encode(), body, hashlib.sha256).digest()
    return hmac.compare_digest(expected, bytes.fromhex(hex_digest))


def require(proves: Callable[[Secret], bool], secrets: Sequence[Secret]) -> None:
    """Raise BadSignature unless one of the secrets proves it. All are tried, so that time doesn't tell which one did."""
    if not sum([proves(secret) for secret in secrets]):
        raise BadSignature.of("webhook", "missing or wrong signature")
