"""A provider of OpenID Connect on this machine whose every answer a test may bend: for what dex, a sound one, never sends."""

from __future__ import annotations

import functools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey


@functools.cache
def rsa(kid: str) -> RSAKey:
    """Return a key, made once."""
    return RSAKey.generate_key(2048, {"kid": kid} if kid else None)


class Provider:
    """What it answers. `token`: makes the ID token of the claims it would give; `answers`: by path, in place of its own."""

    def __init__(self) -> None:
        self.key = rsa("one")
        self.published = [self.key]
        self.claims: dict[str, Any] = {"email": "ada@example.com", "email_verified": True, "groups": ["platform"]}
        self.header: dict[str, Any] = {"alg": "RS256", "kid": "one"}
        self.nonce = ""
        self.userinfo: dict[str, Any] = {}
        self.answers: dict[str, tuple[int, bytes, dict[str, str]]] = {}
        self.asked: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.document: dict[str, Any] = {}
        self.url = ""

    def sound(self) -> dict[str, Any]:
        """Return the claims of a sound token, with those of this provider."""
        now = int(time.time())
        about = {"iss": self.url, "aud": "anneal", "sub": "s-1", "iat": now, "exp": now + 60, "nonce": self.nonce}
        return about | self.claims

    def token(self) -> str:
        """Return the ID token of the next answer."""
        return jwt.encode(self.header, self.sound(), self.key)

    def answer(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        """Return status, body and headers."""
        if path in self.answers:
            return self.answers[path]
        found: dict[str, Any] = {
            "/.well-known/openid-configuration": {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/auth",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
                "userinfo_endpoint": f"{self.url}/userinfo",
                "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
                **self.document,
            },
            "/keys": KeySet(list(self.published)).as_dict(private=False),
            "/userinfo": {"sub": "s-1", **self.userinfo},
        }
        if path == "/token":
            found[path] = {"access_token": "access-CANARY", "token_type": "Bearer", "id_token": self.token()}
        return (200, json.dumps(found[path]).encode(), {}) if path in found else (404, b"{}", {})


@contextmanager
def provider() -> Iterator[Provider]:
    """Serve one until the end."""
    made = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            made.asked.append((self.path, dict(self.headers.items()), dict(parse_qsl(body))))
            status, text, headers = made.answer(self.path)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(text)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_GET  # noqa: N815 - http.server's name

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
