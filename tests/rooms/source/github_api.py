"""GitHub's endpoint for installation tokens on loopback, by its documentation: it checks the JWT as strictly, and answers in its shape.

docs.github.com/rest/apps/apps: "Create an installation access token for an app". What it answers can be turned bad.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import jwt

from tests.rooms.source.http_server import Listening

APP, INSTALLATION = "Iv23liExample", 4711


@dataclass
class GitHubApi(Listening):
    """The API. `gave`: every token, in order. `issued`: called with each. `answer`: (status, body), instead of the real one. `echo`: repeat
    the JWT in a refusal."""

    directory: Path
    repositories: tuple[str, ...] = ("shop",)
    lifetime: float = 3600
    clock_ahead: float = 0
    answer: tuple[int, bytes] | None = None
    echo: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    issued: Callable[[str], None] = lambda _: None
    gave: list[str] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.key = self.new_key("app")
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.api = self
        self._listen(self._server)
        return self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/v3"

    def new_key(self, name: str) -> Path:
        """Make an app's key as GitHub hands it out: RSA, PKCS#1, PEM."""
        file = self.directory / f"{name}.pem"
        subprocess.run(["openssl", "genrsa", "-traditional", "-out", str(file), "2048"], check=True, capture_output=True)
        return file

    def now(self) -> float:
        return time.time() + self.clock_ahead

    def respond(self, path: str, authorization: str, body: bytes) -> tuple[int, bytes]:
        """Answer one request."""
        if self.answer:
            return self.answer
        if self.echo:
            return 401, _told(f"you sent {authorization}")
        if complaint := self._complaint(authorization):
            return 401, _told(complaint)
        if path != f"/api/v3/app/installations/{INSTALLATION}/access_tokens":
            return 404, _told("Not Found")
        asked = json.loads(body)
        self.asked.append(asked)
        if not set(asked.get("repositories", ())) <= set(self.repositories):
            return 422, _told("There is at least one repository that does not exist or is not accessible to the parent installation.")
        token = f"ghs_{secrets.token_hex(18)}"
        self.gave.append(token)
        self.issued(token)
        ends = datetime.fromtimestamp(self.now() + self.lifetime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        permissions = {**asked["permissions"], "metadata": "read"}
        return 201, json.dumps(
            {"token": token, "expires_at": ends, "permissions": permissions, "repository_selection": "selected"}
        ).encode()

    def _complaint(self, authorization: str) -> str:
        """Say what is wrong with a JWT, as GitHub does."""
        public = subprocess.run(["openssl", "rsa", "-in", str(self.key), "-pubout"], check=True, capture_output=True).stdout
        lax = {"verify_exp": False, "verify_iat": False, "require": ["iat", "exp", "iss"]}
        try:
            claims = jwt.decode(authorization.removeprefix("Bearer "), public, algorithms=["RS256"], options=lax)  # type: ignore[arg-type]  # a dict of options
        except jwt.PyJWTError:
            return "A JSON web token could not be decoded"
        if claims["iss"] != APP:
            return "Integration not found"
        if claims["iat"] > self.now():
            return "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
        if not self.now() < claims["exp"] <= self.now() + 600:
            return "'Expiration time' claim ('exp') is too far in the future"
        return ""


def _told(message: str) -> bytes:
    return json.dumps({"message": message, "documentation_url": "https://docs.github.com/rest"}).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    api: GitHubApi

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients hang up on answers that are too long."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        api = self.server.api
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, answer = api.respond(self.path, self.headers.get("Authorization", ""), body)
        self.send_response_only(status)
        headers = {"Date": formatdate(api.now(), usegmt=True), "Content-Type": "application/json; charset=utf-8"}
        for name, value in (headers | api.headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        pass
