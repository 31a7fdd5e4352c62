"""Whether a secret can protect anything: what is too short or half a key is refused at start, by its place. Pure."""

from __future__ import annotations

import base64

from handler.config.git_settings import SecretRef
from handler.model.advice import advice

SHORTEST = 16  # characters that a webhook secret or replay token has at least, so that it isn't found by trying
KEY = 32  # characters that a key which signs has at least
SIGNING = "whsec_"  # how a signing token begins (Standard Webhooks); base64 follows
NEW = "make one with `openssl rand -hex 32`"
WHOLE = "copy the whole signing token, as GitLab shows it"


def way_out(ref: SecretRef, *, made: bool) -> str:
    """Return what to type where a secret isn't there; empty: its store says it. `made`: two sides agree on it, neither gives it out."""
    if ref.env:
        new = advice('export {}="$(openssl rand -hex 32)"; or set it to what the other side has already', ref.env)
        return new if made else advice("export {}=VALUE, where Anneal runs", ref.env)
    new = advice("(umask 077; openssl rand -hex 32 > {path}); or write into it what the other side has already", ref.file)
    return (new if made else "write it there, readable by the user whom Anneal runs as") if ref.file else ""


def is_long(value: str, least: int = SHORTEST) -> bool:
    """Whether a webhook secret, a token or a key is long enough; surrounding whitespace doesn't count."""
    return len(value.strip()) >= least


def can_sign(value: str) -> bool:
    """Whether a secret is either no signing token, or one that can be decoded."""
    if not value.startswith(SIGNING):
        return True
    try:
        return len(base64.b64decode(value.removeprefix(SIGNING), validate=True)) >= SHORTEST
    except ValueError:
        return False
