"""HTTP to one git host: keep-alive, no redirects, every read bounded (git: gitprotocol-http(5)).

Credentials go only to the configured URL, and once more when the host refuses them and newer ones exist. A vendor's exception may hold a
proxy's or a host's secrets: errors are in our own words.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import SplitResult, urlsplit

from dulwich.errors import GitProtocolError
from urllib3.exceptions import HTTPError, LocationValueError, ProxyError, SSLError
from urllib3.response import BaseHTTPResponse

from handler.config.git_settings import token_user
from handler.model.advice import advice
from handler.model.connection_failure import chain, tls_reason, words
from handler.model.errors import AccessDenied, AnnealError, ConfigInvalid, GitUnavailable
from handler.source import git_protocol
from handler.source.bounded_connections import Deadline, HttpRequest, Pools, send
from handler.source.host_limits import HostLimits
from handler.source.signin import SignIn
from handler.source.upload_pack import by_hand, counted, shown_url

_PAGES = frozenset({"text/html", "text/plain", "application/json"})  # what those answer that don't speak git
DENIALS = frozenset({401, 403, 404, 410})  # statuses that refuse the caller
_TLS_FIXES = {
    9: "the host's certificate isn't valid yet: check this machine's clock",
    10: "renew the host's certificate, or check this machine's clock",
    62: "write the host in its URL as its certificate names it",
    64: "write the host in its URL as its certificate names it",
}
"""By OpenSSL's X509_V_ERR codes (x509_vfy.h)."""


def explained(
    error: Exception,
    subject: str,
    asked: str = "",
    *,
    unavailable: type[AnnealError] = GitUnavailable,
    no_url: type[AnnealError] = ConfigInvalid,
    trust: str = "set repository.tls.caFile",
    nonsense: str = "the host doesn't speak git's protocol",
) -> AnnealError:
    """Return the error that a vendor's exception stands for; our own stay as they are.

    `asked`: what was asked, before what was seen; empty: the subject says it. `unavailable`: the class of what is retried; `no_url`: of a
    name that no host can have, by who has written it. `trust`: the fix for an unknown authority. `nonsense`: what was seen where no
    connection failed.
    """
    if isinstance(error, AnnealError):
        return error
    at = f"{asked}: " if asked else ""
    cause = error.args[-1] if isinstance(error, ProxyError) and error.args else error
    if isinstance(cause, OSError) and re.match(r"Tunnel connection failed: 407\b", str(cause)):
        return proxy_refused(subject)
    if isinstance(error, SSLError) or isinstance(cause, ssl.SSLError):
        code = next((each.verify_code for each in chain(cause) if isinstance(each, ssl.SSLCertVerificationError)), 0)
        seen = f"{at}its TLS certificate is not trusted ({tls_reason(cause) or 'handshake failed'})"
        return ConfigInvalid.of(subject, seen, fix=_TLS_FIXES.get(code, trust))
    if isinstance(error, LocationValueError):
        return no_url.of(subject, f"{at}isn't a URL: {words(error)}")
    return unavailable.of(subject, f"{at}{words(error) or nonsense}")


def denied(status: int, subject: str, url: str, named: str) -> AccessDenied:
    """Return the error for a status of `DENIALS`. `named`: the credentials that were sent; empty: none."""
    unseen = status in (404, 410)
    seen = f"the host answered {status}" + (": not found, or no access" if unseen else "")
    if named:
        fixes = {
            401: f"they are wrong or have ended: give a token that may read {url}",
            403: f"they may not read it: let them read {url}, or give others",
        }
        at_last = f"correct repository.url, or let them read {url}"
        return AccessDenied.of(subject, f"{seen} {'for' if unseen else 'to'} our credentials ({named})", fix=fixes.get(status, at_last))
    where = "correct repository.url; or, if it is private," if unseen else "if it is private,"
    basic = {"username": token_user(url), "password": {"env": "GIT_TOKEN"}}
    fix = advice("{text} write in the target: repository: {yaml}", where, {"url": url, "auth": {"basic": basic}})
    return AccessDenied.of(subject, f"{seen}; credentials: none are configured", fix=fix)


def proxy_refused(subject: str) -> AccessDenied:
    """Return the error for a proxy's 407."""
    return AccessDenied.of(
        subject,
        "the proxy answered 407: it wants other credentials",
        fix="put them into HTTPS_PROXY or HTTP_PROXY as http://user:password@proxy:port, or name the host in NO_PROXY",
    )


class HttpTransport:
    """One repository's URL and the connections to its host (`upload_pack.UploadPack`)."""

    def __init__(self, url: str, sign_in: SignIn, ca_file: str, limits: HostLimits, pools: Callable[[str, str, str], Pools]) -> None:
        parts = _checked(url)
        if ca_file and not Path(ca_file).is_file():
            raise ConfigInvalid.of(ca_file, "no such file", fix="set repository.tls.caFile")
        self.subject, self.by_hand = f"repository {shown_url(url)}", by_hand(url)
        self._url = url.rstrip("/")
        self._sign_in = sign_in
        self._limits = limits
        self._pools = pools(parts.scheme, parts.netloc, ca_file)

    def advertisement(self, deadline: Deadline, most: int) -> AbstractContextManager[BinaryIO]:
        """Ask what the host offers."""
        return self._exchange(deadline, "info/refs?service=git-upload-pack", git_protocol.ADVERTISEMENT, most)

    def command(self, deadline: Deadline, request: bytes, most: int) -> AbstractContextManager[BinaryIO]:
        """Send one request."""
        return self._exchange(deadline, "git-upload-pack", git_protocol.RESULT, most, request)

    @contextmanager
    def _exchange(self, deadline: Deadline, tail: str, result: str, most: int, body: bytes | None = None) -> Iterator[BinaryIO]:
        """Send one request, yield its answer. `result`: its media type; `most`: its bytes; `body`: POSTed; None: GET."""
        try:
            request = HttpRequest(f"{self._url}/{tail}", self._headers(result, posted=body is not None), body)
            response = send(self._pools.present(), request, self._sign_in, self._limits, deadline)
            try:
                self._refuse(response, result)
                reader = counted(lambda size: response.read1(size, decode_content=False), most, self.subject)
                yield reader
                if not reader.read(1):  # read to its end: the connection can be used again
                    response.release_conn()
            finally:
                deadline.watch(None)
                response.close()
        except (AnnealError, HTTPError, OSError, GitProtocolError, ValueError, IndexError) as error:
            raise (self._too_long(deadline) if deadline.expired else explained(error, self.subject)) from None
        if deadline.expired:  # an answer without a length, cut by us, looks whole
            raise self._too_long(deadline)

    def close(self) -> None:
        """Close the idle connections."""
        self._pools.close()

    def _headers(self, result: str, *, posted: bool) -> Mapping[str, str]:
        """Return the headers of one request; hosts recognize a git client by its agent's prefix."""
        headers = {"User-Agent": "git/anneal", "Accept": result, "Git-Protocol": "version=2", "Pragma": "no-cache"}
        return {**headers, "Content-Type": "application/x-git-upload-pack-request"} if posted else headers

    def _refuse(self, response: BaseHTTPResponse, result: str) -> None:
        status = response.status
        if 300 <= status < 400:
            seen = f"the host answered {status}, a redirect; redirects are refused"
            raise ConfigInvalid.of(self.subject, seen, fix=f"set repository.url to its real URL; {self.by_hand}")
        if status == 407:
            raise proxy_refused(self.subject)
        if status in DENIALS:
            raise denied(status, self.subject, shown_url(self._url), self._sign_in.named)
        if status != 200:
            raise GitUnavailable.of(self.subject, f"the host answered {status}")
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip()
        if kind != result or "Content-Encoding" in response.headers:
            known = kind if kind in _PAGES else f"{'another' if kind else 'no'} media type"
            seen = f"the host answered with {known} instead of {result}"
            raise GitUnavailable.of(self.subject, seen, fix=self.by_hand)

    def _too_long(self, deadline: Deadline) -> GitUnavailable:
        return GitUnavailable.of(self.subject, f"took longer than {deadline.seconds:g} s")


def _checked(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        plain = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        plain = False
    if not plain or not url.isprintable():
        raise ConfigInvalid.of(shown_url(url), "is not an http:// or https:// URL", fix="set repository.url")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigInvalid.of(shown_url(url), "has credentials, a query or a fragment in it", fix="put credentials into repository.auth")
    return parts
