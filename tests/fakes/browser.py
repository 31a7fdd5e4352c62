"""A browser without pages: it keeps cookies by host, follows redirects, and says what browsers say of themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from urllib.parse import urlencode, urljoin, urlsplit

import urllib3

from tests.patience import PATIENCE


@dataclass(frozen=True)
class Answer:
    """What came back, and for which address."""

    url: str
    status: int
    text: str
    headers: urllib3.HTTPHeaderDict


@dataclass
class Browser:
    """`places`: origins that are answered elsewhere, as behind an ingress that ends TLS; `sent`: headers of every request."""

    places: dict[str, str] = field(default_factory=dict)
    sent: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, dict[str, str]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._pool = urllib3.PoolManager(retries=False, timeout=PATIENCE)

    def get(self, url: str, **headers: str) -> Answer:
        """GET, and follow where it leads, twenty times at most."""
        for _ in range(20):
            answer = self.once("GET", url, headers={name.replace("_", "-"): value for name, value in headers.items()})
            if answer.status not in (301, 302, 303, 307):
                return answer
            url = urljoin(url, answer.headers["Location"])
        raise AssertionError(f"redirects without end: {self.seen[-5:]}")

    def post(self, url: str, form: dict[str, str], origin: str = "") -> Answer:
        """POST a form of a page of the same origin, or of another, and follow where it leads."""
        own = _origin(url)
        headers = {"Origin": origin or own, "Sec-Fetch-Site": "cross-site" if origin and origin != own else "same-origin"}
        answer = self.once("POST", url, form, headers)
        return self.get(urljoin(url, answer.headers["Location"])) if answer.status in (302, 303) else answer

    def once(self, method: str, url: str, form: dict[str, str] | None = None, headers: dict[str, str] | None = None) -> Answer:
        """Send one request, and keep the cookies of its answer."""
        self.seen.append(url)
        origin, host = _origin(url), urlsplit(url).netloc
        real = self.places.get(origin, origin) + url[len(origin) :]
        given = {"Host": host, **self.sent, **(headers or {})}
        if kept := self.cookies.get(host):
            given["Cookie"] = "; ".join(f"{name}={value}" for name, value in kept.items())
        if form is not None:
            given["Content-Type"] = "application/x-www-form-urlencoded"
        response = self._pool.request(method, real, headers=given, body=urlencode(form) if form is not None else None, redirect=False)
        for line in response.headers.getlist("Set-Cookie"):
            self._keep(host, line)
        return Answer(url, response.status, response.data.decode(), response.headers)

    def _keep(self, host: str, line: str) -> None:
        for name, morsel in SimpleCookie(line).items():
            jar = self.cookies.setdefault(host, {})
            if morsel["max-age"] == "0" or not morsel.value or "1970" in morsel["expires"]:
                jar.pop(name, None)
            else:
                jar[name] = morsel.value


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
