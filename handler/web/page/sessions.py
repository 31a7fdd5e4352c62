"""Cookies of the page: a session, signed, at most 12 hours long; and what a sign-in elsewhere must bring back, for ten minutes.

Law: a cookie says who signed in and how, never what is allowed. Nothing is kept here: replicas with the same key know each other's
sessions, and another key ends all of them. What is signed for one purpose counts for no other.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from flask import Request, Response
from itsdangerous import BadData, URLSafeSerializer

from handler.config.secrets import Secret
from handler.web.page.roles import PageSession

LIFE = 12 * 3600.0  # seconds
PENDING_LIFE = 600.0
AHEAD = 60.0  # seconds by which another replica's clock may be ahead
LONGEST = 4000  # characters of a cookie: browsers keep 4096 bytes of it with its name
SESSION, PENDING = "session", "sign-in"


@dataclass(frozen=True, slots=True)
class Cookies:
    """The page's cookies. `encrypted`: browsers reach it by https; `clock`: seconds since the epoch."""

    encrypted: bool
    clock: Callable[[], float]

    def session(self, request: Request, key: Secret) -> PageSession | None:
        """Return the session that a request brings; None: there is none, it isn't ours, or it is over."""
        found = self._read(request, key, SESSION, LIFE)
        try:
            return PageSession(found["n"], tuple(found["g"]), found["w"], found["i"], found["t"], found["b"]) if found else None
        except (KeyError, TypeError):  # signed by another version of ours
            return None

    def begin(self, response: Response, key: Secret, session: PageSession) -> bool:
        """Give the browser a session; return whether a cookie has room for it."""
        content = {"n": session.name, "g": session.groups, "w": session.way, "i": session.id, "b": session.binding}
        return self._write(response, key, SESSION, content, session.issued, LIFE)

    def pending(self, request: Request, key: Secret) -> dict[str, Any] | None:
        """Return what a sign-in that began in this browser must bring back."""
        return self._read(request, key, PENDING, PENDING_LIFE)

    def begin_pending(self, response: Response, key: Secret, content: Mapping[str, Any]) -> None:
        """Let the browser keep what its sign-in elsewhere must bring back."""
        self._write(response, key, PENDING, content, self.clock(), PENDING_LIFE)

    def end(self, response: Response, purpose: str) -> None:
        """Let the browser forget a cookie."""
        response.delete_cookie(self.name(purpose), path="/", secure=self.encrypted, httponly=True, samesite="Lax")

    def name(self, purpose: str) -> str:
        """Return a cookie's name; a browser takes `__Host-` only by https, from this very host."""
        return f"{'__Host-' if self.encrypted else ''}anneal-{purpose}"

    def _read(self, request: Request, key: Secret, purpose: str, life: float) -> dict[str, Any] | None:
        text = request.cookies.get(self.name(purpose), "")
        if not text or len(text) > LONGEST:
            return None
        try:
            found = _signer(key, purpose).loads(text)
        except BadData:
            return None
        now = self.clock()
        valid = isinstance(found, dict) and isinstance(found.get("t"), int | float) and now - life < found["t"] <= now + AHEAD
        return found if valid else None

    def _write(self, response: Response, key: Secret, purpose: str, content: Mapping[str, Any], issued: float, life: float) -> bool:
        text = str(_signer(key, purpose).dumps({**content, "t": issued}))
        if len(text) > LONGEST:
            return False
        left = max(int(issued + life - self.clock()), 0)
        name = self.name(purpose)
        response.set_cookie(name, text, max_age=left, path="/", secure=self.encrypted, httponly=True, samesite="Lax")
        return True


def new_id() -> str:
    """Return an id that can't be guessed."""
    return secrets.token_urlsafe(24)


def form_token(key: Secret, session: PageSession) -> str:
    """Return what a form of this session carries."""
    return digest(key, "form", session.way, session.name, session.id)


def digest(key: Secret, *parts: str) -> str:
    """Return a keyed digest of texts, each apart from the next."""
    return hmac.new(key.reveal().encode(), json.dumps(["anneal.page", *parts]).encode(), hashlib.sha256).hexdigest()


def _signer(key: Secret, purpose: str) -> URLSafeSerializer:
    how = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
    return URLSafeSerializer(key.reveal(), salt=f"anneal.page.{purpose}", signer_kwargs=how)
