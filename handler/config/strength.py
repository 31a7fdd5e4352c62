"""Whether a secret can protect anything: what is too short or half a key is refused at start, by its place. Pure."""

from __future__ import annotations

import base64

SHORTEST = 16
"""Characters that a webhook secret or replay token has at least: nobody should find it by trying."""
SIGNING = "whsec_"
"""How a signing token begins (Standard Webhooks); base64 follows."""
NEW = "make one with `openssl rand -hex 32`"
WHOLE = "copy the whole signing token, as GitLab shows it"


def is_long(value: str) -> bool:
    """Whether a webhook secret or replay token is long enough; surrounding whitespace doesn't count."""
    return len(value.strip()) >= SHORTEST


def can_sign(value: str) -> bool:
    """Whether a secret is either no signing token, or one that can be decoded."""
    if not value.startswith(SIGNING):
        return True
    try:
        return len(base64.b64decode(value.removeprefix(SIGNING), validate=True)) >= SHORTEST
    except ValueError:
        return False
