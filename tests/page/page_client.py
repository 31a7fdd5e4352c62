"""The page without a browser: requests with a jar of cookies, and the bytes of a stream."""

from __future__ import annotations

import contextlib
import html
import http.client
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from types import MappingProxyType
from urllib.parse import urlencode, urlsplit

from tests.e2e.serve_process import Serving
from tests.patience import PATIENCE, until

_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')
NOTHING: Mapping[str, str] = MappingProxyType({})
LATE = "t answered within"
"""What a page says, with its apostrophe escaped or not, where a busy cluster was late for it and it shows what was seen before."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `headers`: by their names in lower case."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def form(self) -> dict[str, str]:
        """The hidden fields of the page's own form; the frame's form to sign out stands before it."""
        main = self.text.partition("<main")[2]
        return {name: html.unescape(value) for name, value in _HIDDEN.findall(main)}


@dataclass
class PageClient:
    """One person's client of a server; it follows no redirect."""

    server: Serving
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> Answer:
        """Ask for a page, and again while a cluster is late for it, as a person would."""
        found: list[Answer] = []

        def in_time() -> bool:
            found[:] = [self._answer("GET", path, "", headers)]
            return LATE not in found[0].text

        until(in_time, f"a cluster is late for {path}")
        return found[0]

    def post(self, path: str, fields: Mapping[str, str] = NOTHING, **headers: str) -> Answer:
        """Send a form as a browser does from a page of the server; a header with an empty value is left out."""
        usual = {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.server.url, "Sec_Fetch_Site": "same-origin"}
        return self._answer("POST", path, urlencode(fields), {**usual, **headers})

    def signed_in(self, token: str) -> PageClient:
        """Sign in with a token."""
        answer = self.post("/ui/login", {"token": token})
        assert answer.status == 303, answer.text
        return self

    def stream(self, topic: str, enough: Callable[[bytes], bool], **headers: str) -> bytes:
        """Return the bytes of a topic's stream, once there are enough of them."""
        found = b""
        with self._connection() as connection:
            connection.request("GET", f"/ui/live?{urlencode({'topic': topic})}", headers=self._headers(headers))
            response = connection.getresponse()
            assert response.status == 200, response.status

            def came() -> bool:
                nonlocal found
                found += response.read1(65536)
                return bool(enough(found))

            until(came, lambda: repr(found))
        return found

    def _answer(self, method: str, path: str, body: str, headers: Mapping[str, str]) -> Answer:
        with self._connection() as connection:
            connection.request(method, path, body.encode() or None, self._headers(headers))
            response = connection.getresponse()
            for kept in response.headers.get_all("Set-Cookie") or ():
                self.cookies |= {name: morsel.value for name, morsel in SimpleCookie(kept).items()}
            text = response.read().decode()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, text)

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items() if value)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return {name: value for name, value in {"Cookie": cookies, "Accept": "text/html", **named}.items() if value}

    @contextlib.contextmanager
    def _connection(self) -> Iterator[http.client.HTTPConnection]:
        connection = http.client.HTTPConnection(urlsplit(self.server.url).netloc, timeout=PATIENCE)
        try:
            yield connection
        finally:
            connection.close()
