"""A client of a made-up git host that sends what a test gives it, right or wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import urllib3

from tests.fakes.git_hosts.served_host import TOKEN, ServedHost

SHA, OTHER = "4f1b0c7e2d9a5836be0174c2f6a98d3e5b7c1a20", "9c3d5e1f7a2b4860d1e2f3a4b5c6d7e8f9a0b1c2"


@dataclass(frozen=True)
class Reply:
    """What came back. `body`: its JSON, None: it has none."""

    status: int
    body: Any
    headers: urllib3.HTTPHeaderDict

    @property
    def text(self) -> str:
        return json.dumps(self.body)


@dataclass
class Client:
    """`headers`: of each request; `timeout`: seconds."""

    host: ServedHost
    headers: Mapping[str, str] = field(default_factory=lambda: {"Authorization": f"Bearer {TOKEN}"})
    timeout: float = 30

    def __call__(self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None, **headers: str) -> Reply:
        """Send one request; `path`: below the API, or with a slash below the host; `headers`: names with underscores."""
        place = f"{self.host.origin}{path}" if path.startswith("/") else f"{self.host.url}/{path}"
        url = f"{place}{'?' if query else ''}{urlencode(query or {})}"
        sent = {"User-Agent": "a-test", **self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            sent = {"Content-Type": "application/json", **sent}
        response = urllib3.request(method, url, body=content, headers=sent, redirect=False, retries=False, timeout=self.timeout)
        is_json = response.headers.get("Content-Type", "").startswith("application/json") and response.data
        return Reply(response.status, json.loads(response.data) if is_json else None, response.headers)
