"""Installation tokens of a GitHub App: short-lived, for one repository, with no more permissions than are asked for.

A JWT signed with the app's key buys one (docs.github.com: "Generating a JSON Web Token (JWT) for a GitHub App", "Create an installation
access token for an app"). All targets of a repository share it until five minutes before its end. What the API
says is never shown, for it knows our token: a message has its status.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import jwt
import urllib3
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from handler.config.git_settings import GitHubAppAuth
from handler.model.errors import AccessDenied, AnnealError, ConfigInvalid, GitUnavailable
from handler.source.bounded_connections import pools_for
from handler.source.host_limits import HostLimits
from handler.source.http_transport import explained
from handler.source.signin import ReadSecret, basic
from handler.source.upload_pack import shown_url

USER = "x-access-token"
CONTENTS = {"contents": "read"}
_BACKDATED = 60  # seconds: GitHub refuses a token from the future, and clocks differ
_LIFETIME = 540  # GitHub takes at most ten minutes
_SPARE = 300.0  # before its end a token is replaced: a fetch may take a while
_YOUNG = 10.0  # a token refused so soon isn't an expired one
_SKEW = 30.0
_LARGEST = 65_536
_TOKEN = re.compile(r"[\x21-\x7e]{1,2048}")


@dataclass(frozen=True, slots=True)
class _Token:
    """A token. `made`, `until`: on the monotonic clock."""

    value: str = field(repr=False)
    made: float
    until: float


@dataclass(frozen=True, slots=True)
class AppUse:
    """What tokens of an app are for: `permissions` they have at most, the `block` of settings that names the app, the header's `form`."""

    permissions: Mapping[str, str] = field(default_factory=lambda: CONTENTS)
    block: str = "auth"
    form: Callable[[str], str] = lambda token: basic(USER, token)

    def __str__(self) -> str:
        return " and ".join(f"{what}: {access}" for what, access in self.permissions.items())


class GitHubApp:
    """Signs in as an installation of an app (`signin.SignIn`)."""

    def __init__(
        self,
        auth: GitHubAppAuth,
        url: str,
        read: ReadSecret,
        ca_file: str,
        limits: HostLimits,
        clock: Callable[[], float] = time.monotonic,
        again: ReadSecret | None = None,
        use: AppUse = AppUse(),
    ) -> None:
        """Prepare. `url`: names the repository that the token is bound to. `again`: re-reads a refused key."""
        self.subject = f"GitHub App {auth.app_id}, installation {auth.installation_id}"
        self.named = f"{use.block}.githubApp: app {auth.app_id}, installation {auth.installation_id}"
        self._use = use
        self._auth = auth
        self._repository = repository_name(url)
        self._read = read
        self._again = again or read
        self._ca_file = ca_file
        self._limits = limits
        self._clock = clock
        self._token: _Token | None = None
        self._making = threading.Lock()

    def __repr__(self) -> str:
        return f"GitHubApp({self.subject})"

    def authorization(self) -> str:
        """Return the header's value, renewed in time. Raises ConfigInvalid, SecretUnavailable, AccessDenied, GitUnavailable."""
        with self._making:
            if self._token is None or self._clock() >= self._token.until:
                self._token = self._made()
            return self._use.form(self._token.value)

    def refused(self, authorization: str) -> bool:
        """Forget a token that the git host refuses, unless it was made just now: another one would fare no better."""
        with self._making:
            token = self._token
            if token is None or self._use.form(token.value) != authorization:
                return True
            if self._clock() - token.made < _YOUNG:
                return False
            self._token = None
            return True

    def _made(self) -> _Token:
        """Ask for a token; the answer's own date decides how long it lives."""
        key = self._read(self._auth.private_key).reveal()
        bearer, since = self._bearer(key), self._clock()
        try:
            status, answered, body = self._post(bearer)
            newer = self._again(self._auth.private_key).reveal() if status == 401 else key
            if newer != key:
                since = self._clock()
                status, answered, body = self._post(self._bearer(newer))
        except (AnnealError, HTTPError, OSError, ValueError) as error:
            raise explained(error, self.subject) from None
        if status != 201:
            raise self._refusal(status, answered, limited=status == 403 and _is_limited(body))
        token, ends = self._checked(body)
        left = ends - (answered or time.time())
        if left <= 0:
            raise GitUnavailable.of(self.subject, "the API gave a token that has ended already")
        return _Token(token, since, since + max(left - _SPARE, left / 2))

    def _bearer(self, text: str) -> str:
        now = int(time.time())
        claims = {"iat": now - _BACKDATED, "exp": now - _BACKDATED + _LIFETIME, "iss": self._auth.app_id}
        return jwt.encode(claims, app_key(text, str(self._auth.private_key)), algorithm="RS256")

    def _post(self, bearer: str) -> tuple[int, float, bytes]:
        url = f"{self._auth.api_url.rstrip('/')}/app/installations/{self._auth.installation_id}/access_tokens"
        asked: dict[str, Any] = {"permissions": dict(self._use.permissions)}
        if self._repository:
            asked["repositories"] = [self._repository]
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {bearer}",
            "Content-Type": "application/json",
            "User-Agent": "anneal",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        parts = urlsplit(url)
        pools = pools_for(parts.scheme, parts.netloc, self._ca_file)
        timeout = urllib3.Timeout(connect=self._limits.connect, read=self._limits.read)
        try:
            response = pools.request(
                "POST",
                url,
                body=json.dumps(asked).encode(),
                headers=headers,
                preload_content=False,
                redirect=False,
                retries=False,
                timeout=timeout,
            )
            return response.status, _date(response.headers.get("Date", "")), self._body(response)
        finally:
            pools.clear()

    def _body(self, response: BaseHTTPResponse) -> bytes:
        try:
            body = response.read(_LARGEST + 1, decode_content=False)
        finally:
            response.close()
        if len(body) > _LARGEST:
            raise GitUnavailable.of(self.subject, f"the API answered with more than {_LARGEST} bytes")
        return body

    def _checked(self, body: bytes) -> tuple[str, float]:
        try:
            answer = json.loads(body)
            token, ends = answer["token"], datetime.fromisoformat(answer["expires_at"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise GitUnavailable.of(self.subject, "the API's answer has no token, or no time of its end") from None
        if not isinstance(token, str) or not _TOKEN.fullmatch(token) or ends.tzinfo is None:
            raise GitUnavailable.of(self.subject, "the API's answer has a token or a time that can't be one")
        return token, ends.timestamp()

    def _refusal(self, status: int, answered: float, *, limited: bool) -> AnnealError:
        auth, place, block = self._auth, shown_url(self._auth.api_url), self._use.block
        words = f"{place} answered {status}{': a rate limit is passed' if limited else ''}"
        skew = time.time() - answered if answered else 0.0
        if 300 <= status < 400:
            return ConfigInvalid.of(self.subject, f"{words}; redirects are refused", fix=f"set {self._use.block}.githubApp.apiUrl")
        if status == 401 and abs(skew) > _SKEW:
            ahead = "ahead of" if skew > 0 else "behind"
            return ConfigInvalid.of(
                self.subject, f"{words}; our clock is {abs(skew):.0f} s {ahead} its", fix="set this machine's clock (NTP)"
            )
        if limited or status == 429 or status >= 500:
            return GitUnavailable.of(self.subject, words)
        checks = {
            401: f"check that {block}.githubApp.privateKey ({auth.private_key}) is a key of app {auth.app_id}",
            403: f"check that the installation isn't suspended and has {self._use}",
            404: f"check {block}.githubApp.installationId and apiUrl, and that the app is still installed",
            422: f"let the installation have {self._use} for the repository {self._repository or 'that it is for'}",
        }
        if status in checks:
            return AccessDenied.of(self.subject, words, fix=checks[status])
        return GitUnavailable.of(self.subject, words)


def repository_name(url: str) -> str:
    """Return the name of a repository whose URL is `https://<host>/<owner>/<name>[.git]`; empty: the URL has another shape."""
    found = re.fullmatch(r"/[A-Za-z0-9._-]+/([A-Za-z0-9._-]+?)(?:\.git)?/?", urlsplit(url).path)
    return found[1] if found else ""


def app_key(text: str, subject: str) -> RSAPrivateKey:
    """Load an app's key. Raises ConfigInvalid: it isn't an unencrypted RSA key in PEM."""
    try:
        key = load_pem_private_key(text.strip().encode() + b"\n", None)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # a vendor's words may show a part of it
        key = None
    if not isinstance(key, RSAPrivateKey):
        fix = "download one from the app's settings and reference it by auth.githubApp.privateKey"
        raise ConfigInvalid.of(subject, "is not an unencrypted RSA private key in PEM, as GitHub makes it for an app", fix=fix)
    return key


def _date(text: str) -> float:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError):
        return 0.0


def _is_limited(body: bytes) -> bool:
    """Whether a 403 says that a rate limit is passed (docs.github.com: rate limits for the REST API)."""
    return b"rate limit" in body.lower()
