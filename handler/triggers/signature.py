"""What proves a sender: header reading and constant-time comparison, shared by the providers.

`hmac.compare_digest` raises TypeError on non-ASCII text, so nothing but bytes and digests is ever compared.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Protocol

MAX_HEADER = 1024  # longer than any provider's signature, token or id; a longer header is not looked at
_HEX = re.compile(r"[0-9a-f]{64}")
_DELIVERY = re.compile(r"[A-Za-z0-9._-]{1,64}")


class WebhookSecret(Protocol):
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


def signed_sha256(secret: WebhookSecret, body: bytes, value: str, prefix: str = "") -> bool:
    """Say whether a header's value is `prefix` and the HMAC-SHA256 of the raw body in lower-case hex (RFC 2104)."""
    found = _HEX.fullmatch(value.removeprefix(prefix)) if value.startswith(prefix) else None
    if found is None:
        return False
    expected = hmac.new(secret.reveal().encode(), body, hashlib.sha256).digest()
    return hmac.compare_digest(expected, bytes.fromhex(found[0]))
