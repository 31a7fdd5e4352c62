"""HTTP client of a running server, for `anneal replay`. The token is sent to the named server only.

Law: certificates are verified, redirects refused, plain http:// only to this machine unless that is asked for by name.
"""

from __future__ import annotations

import ipaddress
import json
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import urllib3

from handler import __version__
from handler.model.connection_failure import tls_reason, words
from handler.model.errors import AccessDenied, AnnealError, ConfigInvalid, OperatorError, Problem, TransientError

TIMEOUT = urllib3.Timeout(connect=10.0, read=30.0)
LONGEST = 60.0  # seconds from an answer's headers to its end: the read timeout alone counts anew with each byte
LARGEST = 8 << 20
NOTHING: Mapping[str, str] = MappingProxyType({})
_AGAIN = frozenset({429, 500, 502, 503, 504})
_TOKEN = "set ANNEAL_TOKEN to the value of one of its `replay.tokens`"  # noqa: S105 - says where a token is found


class ServerRefused(OperatorError, code="server-refused"):
    """A running Anneal refused what it was asked. `status`: its HTTP status."""

    def __init__(self, *problems: Problem, status: int = 0) -> None:
        """Keep the status."""
        super().__init__(*problems)
        self.status = status


class ServerUnavailable(TransientError, code="server-unavailable"):
    """A running Anneal isn't reached, or can't answer now. `answer`: what it said."""

    def __init__(self, *problems: Problem, answer: Mapping[str, Any] | None = None) -> None:
        """Keep the answer."""
        super().__init__(*problems)
        self.answer = answer or {}


class ServerClient:
    """One server, with one token. `url`: http(s)://host[:port][/path]; `ca_file`: PEM of the authorities to trust, empty: the system's.

    Raises ConfigInvalid: the URL, the token or the file can't be used.
    """

    def __init__(self, url: str, token: str, ca_file: str = "", *, insecure_http: bool = False) -> None:
        _check_url(url, insecure_http=insecure_http)
        if not token.isascii() or not token.isprintable():
            raise ConfigInvalid.of("ANNEAL_TOKEN", "isn't plain text", fix=_TOKEN)
        if ca_file and not Path(ca_file).is_file():
            raise ConfigInvalid.of("--ca-file", f"expected a file, found none at {ca_file}")
        self.url = url.rstrip("/")
        self._headers = {"User-Agent": f"anneal/{__version__}", "Accept": "application/json"}
        self._headers |= {"Authorization": f"Bearer {token}"} if token else {}
        try:  # plain http needs no trust: to read the system's certificates takes 20 ms
            trust = ssl.create_default_context(cafile=ca_file or None) if ca_file or not url.lower().startswith("http:") else None
        except OSError as error:
            raise ConfigInvalid.of("--ca-file", f"{ca_file} holds no certificate: {error}") from error
        self._pool = urllib3.PoolManager(ssl_context=trust, timeout=TIMEOUT, retries=False)

    def post(self, *path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send JSON; return the answer. Raises AccessDenied, ServerRefused, ServerUnavailable."""
        return self._send("POST", path, json.dumps(body).encode())

    def get(self, *path: str, **query: str) -> dict[str, Any]:
        """Read JSON. Raises AccessDenied, ServerRefused, ServerUnavailable."""
        return self._send("GET", path, None, query)

    def worker(self) -> str:
        """Return its worker process as the web process sees it: `ok` or `unreachable`. Raises ServerRefused, ServerUnavailable."""
        try:
            return str(self.get("readyz").get("worker"))
        except ServerUnavailable as error:
            if error.answer.get("web") != "ok":
                raise
            return str(error.answer.get("worker"))

    def _send(self, method: str, path: tuple[str, ...], body: bytes | None, query: Mapping[str, str] = NOTHING) -> dict[str, Any]:
        headers = self._headers | ({"Content-Type": "application/json"} if body is not None else {})
        url = "/".join((self.url, *(quote(part, safe="") for part in path))) + (f"?{urlencode(query)}" if query else "")
        try:
            response = self._pool.request(method, url, body=body, headers=headers, redirect=False, preload_content=False)
            text = _whole(response)
            response.release_conn()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._unreached(error) from error
        answer = _json(text)
        if 200 <= response.status < 300 and answer is not None:
            return answer
        raise self._refusal(response, answer or {})

    def _refusal(self, response: urllib3.BaseHTTPResponse, answer: dict[str, Any]) -> AnnealError:
        subject, status = f"server {self.url}", response.status
        said = str(answer.get("error") or f"answers {status}, and not as Anneal does")
        if status == 401:
            return AccessDenied.of(subject, "doesn't accept the token", fix=_TOKEN)
        if status == 403:
            return AccessDenied.of(subject, said, fix="the token's `targets` and `may` say what it may do")
        if 300 <= status < 400:
            seen = f"{status}: it redirects elsewhere, where the token doesn't belong"
            return ServerRefused(Problem(subject, seen, fix="name that server itself if it is the right one"), status=status)
        if status in _AGAIN:
            return ServerUnavailable(Problem(subject, f"{status}: {said}"), answer=answer)
        return ServerRefused(Problem(subject, said), status=status)

    def _unreached(self, error: Exception) -> AnnealError:
        subject = f"server {self.url}"
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            fix = "pass --ca-file with the authority that signed it"
            return ServerRefused(Problem(subject, f"its certificate isn't trusted: {tls_reason(error)}", fix=fix))
        return ServerUnavailable.of(subject, f"can't be reached: {str(error) if type(error) is TimeoutError else words(error)}")


def _check_url(url: str, *, insecure_http: bool) -> None:
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ConfigInvalid.of("--server", f"isn't a URL: {error}", fix="write https://anneal.example.com") from error
    if parts.scheme not in ("http", "https") or not host or parts.username is not None or parts.query or parts.fragment:
        raise ConfigInvalid.of("--server", "expected http(s)://host[:port][/path], nothing else", fix="write https://anneal.example.com")
    if parts.scheme == "http" and not insecure_http and not _is_here(host):
        seen = "plain http:// sends the token unencrypted"
        raise ConfigInvalid.of(f"--server {url}", seen, fix="use https://, or pass --insecure-http where the network is private")


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _whole(response: urllib3.BaseHTTPResponse) -> bytes:
    end, found = time.monotonic() + LONGEST, bytearray()
    while len(found) < LARGEST and (part := response.read1(LARGEST - len(found))):
        found += part
        if time.monotonic() > end:
            raise TimeoutError(f"its answer hasn't ended after {LONGEST:g} s")
    return bytes(found)


def _json(text: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None
