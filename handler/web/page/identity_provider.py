"""A provider of OpenID Connect over HTTP: its discovery document, its keys, and what it answers, each bounded in time and size.

Law: only what the configured issuer names is asked, over TLS (or on this machine); no redirect is followed. Few requests are under way at
once, and none for a while after a failure: threads that wait for a provider would be missing elsewhere.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import urllib3
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from handler import __version__
from handler.config.page_settings import PageOidc
from handler.model.connection_failure import words
from handler.model.errors import SenderError
from handler.source.bounded_connections import Deadline, HttpRequest, Pools, content, send
from handler.source.signin import Anonymous

SECONDS = 8.0  # for a whole answer
LARGEST = 256 * 1024  # bytes of an answer
KEPT = 3600.0  # seconds that the document and the keys are used
AGAIN = 30.0  # seconds between two looks for a key that isn't there
PAUSE = 5.0  # seconds between a failure and the next look
AT_ONCE = 2  # requests that are under way
TURN = 1.0  # seconds that a request waits for its turn
_LOG = logging.getLogger("anneal.page")
_JSON = {"Accept": "application/json", "User-Agent": f"anneal/{__version__}", "Accept-Encoding": "identity"}
_DOCUMENT = "/.well-known/openid-configuration"


class ProviderUnavailable(SenderError, code="sign-in-unavailable", status=503):
    """The provider doesn't answer, answers nonsense, or too many sign in at once: try again."""


class ProviderRefused(Exception):
    """The provider refuses a request: a code or a client that it doesn't know. `status`: HTTP's; its text may hold what was sent."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True)
class ProviderTimeouts:
    """How long is waited for a connection and for the next bytes."""

    connect: float = 4.0
    read: float = 6.0


@dataclass(slots=True)
class _Kept:
    """What was fetched, and when; `failed`: when that was tried last without success. `lock`: its holder fetches."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    value: Any = None
    fetched: float = float("-inf")
    failed: float = float("-inf")


class IdentityProvider:
    """What one provider says. Safe to share between threads. `clock`: seconds that only grow."""

    def __init__(self, oidc: PageOidc, clock: Callable[[], float] = time.monotonic) -> None:
        self._oidc, self._clock = oidc, clock
        self._pools: dict[tuple[str, str], Pools] = {}
        self._document, self._keys = _Kept(), _Kept()
        self._room = threading.BoundedSemaphore(AT_ONCE)

    def document(self) -> Mapping[str, Any]:
        """Return the discovery document. Raises ProviderUnavailable: there is none, or it is another issuer's."""
        found: Mapping[str, Any] = self._fetched(self._document, KEPT, self._discover)
        return found

    def keys(self, *, unknown: bool = False) -> KeySet:
        """Return the keys that sign its tokens. `unknown`: one of them is missing, it may be new. Raises ProviderUnavailable."""
        found: KeySet = self._fetched(self._keys, AGAIN if unknown else KEPT, self._key_set)
        return found

    def endpoint(self, name: str) -> str:
        """Return an address of its document; empty: it has none. Raises ProviderUnavailable: it isn't encrypted."""
        url = str(self.document().get(name) or "")
        if url and not self._is_safe(url):
            raise self._unavailable(f"its {name} is no https:// address")
        return url

    def ask(self, url: str, headers: Mapping[str, str], body: bytes | None = None) -> dict[str, Any]:
        """Return a JSON object that it answers: to a POST, or a GET without body. Raises ProviderUnavailable, ProviderRefused."""
        status, text = self._send(HttpRequest(url, {**headers, **_JSON}, body))
        if 400 <= status < 500 and status != 429:
            raise ProviderRefused(status)
        if status != 200:
            raise self._unavailable(f"it answers {status}")
        return self._object(text)

    def _discover(self) -> Mapping[str, Any]:
        found = self._json(f"{self._oidc.issuer.rstrip('/')}{_DOCUMENT}")
        if found.get("issuer") != self._oidc.issuer:
            raise self._unavailable("its document names another issuer", "write `page.oidc.issuer` as the provider does")
        return found

    def _key_set(self) -> KeySet:
        found = self._json(self.endpoint("jwks_uri"))
        try:
            return KeySet.import_key_set(found)  # type: ignore[arg-type]  # what isn't a key set is refused there
        except (JoseError, KeyError, TypeError, ValueError):
            raise self._unavailable("its keys can't be read") from None

    def _fetched(self, kept: _Kept, life: float, fetch: Callable[[], Any]) -> Any:
        """Return what is kept, fetched anew when it is older than `life`; the old one where that fails."""
        if self._clock() - kept.fetched >= life and kept.lock.acquire(timeout=TURN):
            try:
                self._renew(kept, life, fetch)
            finally:
                kept.lock.release()
        if kept.value is None:
            raise self._unavailable("it doesn't answer just now")
        return kept.value

    def _renew(self, kept: _Kept, life: float, fetch: Callable[[], Any]) -> None:
        now = self._clock()
        if now - kept.fetched < life or now - kept.failed < PAUSE:
            return
        try:
            kept.value, kept.fetched = fetch(), self._clock()
        except ProviderUnavailable as error:
            kept.failed = self._clock()
            _LOG.warning("the provider of sign-ins is unavailable", extra={"fields": {"seen": str(error)}})
            if kept.value is None:
                raise

    def _json(self, url: str) -> dict[str, Any]:
        try:
            return self.ask(url, {})
        except ProviderRefused as refused:
            raise self._unavailable(f"{urlsplit(url).path} answers {refused.status}") from None

    def _send(self, request: HttpRequest) -> tuple[int, bytes]:
        if not self._room.acquire(timeout=TURN):
            raise self._unavailable("too many sign in at once")
        try:
            pools = self._pool(request.url)
            with Deadline(SECONDS) as deadline:
                response = send(pools, request, Anonymous(), ProviderTimeouts(), deadline)
                text = content(response, LARGEST, deadline)
                deadline.watch(None)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            fix = "name the authority that signed it: `page.oidc.caFile`" if "CERTIFICATE_VERIFY_FAILED" in str(error) else ""
            raise self._unavailable(words(error) or "the connection broke", fix) from None
        finally:
            self._room.release()
        if text is None:
            raise self._unavailable(f"its answer is larger than {LARGEST} bytes")
        return response.status, text

    def _pool(self, url: str) -> urllib3.PoolManager:
        if not self._is_safe(url):
            raise self._unavailable("an address of it isn't https://")
        parts = urlsplit(url)
        pools = self._pools.setdefault((parts.scheme, parts.netloc), Pools(parts.scheme, parts.netloc, self._oidc.ca_file))
        return pools.present()

    def _is_safe(self, url: str) -> bool:
        """Whether an address is encrypted; an issuer on this machine (the settings refuse others) may name this machine unencrypted."""
        issuer, parts = urlsplit(self._oidc.issuer), urlsplit(url)
        return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme, parts.hostname) == (issuer.scheme, issuer.hostname))

    def _object(self, text: bytes) -> dict[str, Any]:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self._unavailable("its answer is no JSON object")
        return found

    def _unavailable(self, seen: str, fix: str = "") -> ProviderUnavailable:
        return ProviderUnavailable.of(f"provider {self._oidc.issuer}", seen, fix=fix)
