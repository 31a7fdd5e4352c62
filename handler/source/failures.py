"""What urllib3's exceptions mean, in our own words: a vendor's may hold a proxy's or a host's secrets."""

from __future__ import annotations

import re
import ssl

from urllib3.exceptions import HTTPError, NameResolutionError, NewConnectionError, ProxyError, SSLError
from urllib3.exceptions import TimeoutError as TimedOut

from handler.model.errors import AccessDenied, AnnealError, ConfigInvalid, GitUnavailable
from handler.model.tree import printable

_TLS_FIXES = {
    9: "the host's certificate isn't valid yet: check this machine's clock",
    10: "renew the host's certificate, or check this machine's clock",
    62: "write the host in repository.url as its certificate names it",
    64: "write the host in repository.url as its certificate names it",
}
"""By OpenSSL's X509_V_ERR codes (x509_vfy.h)."""


def explained(error: Exception, subject: str) -> AnnealError:
    """Return the error that a vendor's exception stands for; our own stay as they are."""
    if isinstance(error, AnnealError):
        return error
    cause = error.args[-1] if isinstance(error, ProxyError) and error.args else error
    if isinstance(cause, OSError) and re.match(r"Tunnel connection failed: 407\b", str(cause)):
        return proxy_refused(subject)
    if isinstance(error, SSLError) or isinstance(cause, ssl.SSLError):
        inner = _inner(cause)
        fix = _TLS_FIXES.get(getattr(inner, "verify_code", 0), "set repository.tls.caFile")
        return ConfigInvalid.of(subject, f"its TLS certificate is not trusted ({_tls_words(inner)})", fix=fix)
    return GitUnavailable.of(subject, _words(error))


def proxy_refused(subject: str) -> AccessDenied:
    """Return the error for a proxy's 407."""
    return AccessDenied.of(
        subject,
        "the proxy answered 407: it wants other credentials",
        fix="put them into HTTPS_PROXY or HTTP_PROXY as http://user:password@proxy:port, or name the host in NO_PROXY",
    )


def _words(error: Exception) -> str:
    """Say in our own words how a connection failed."""
    for kind, words in (
        (NameResolutionError, "its host name doesn't resolve"),
        (NewConnectionError, "its host refuses connections"),
        (TimedOut, "its host doesn't answer in time"),
        (ProxyError, "the proxy doesn't let us through"),
        (HTTPError, "the host broke off the connection or its answer"),
        (OSError, "the connection broke"),
    ):
        if isinstance(error, kind):
            return words
    return "the host doesn't speak git's protocol"


def _inner(error: Exception) -> object:
    """Return the exception of OpenSSL inside urllib3's."""
    while isinstance(error, HTTPError) and error.args and isinstance(error.args[-1], Exception):
        error = error.args[-1]
    return error


def _tls_words(inner: object) -> str:
    """Return OpenSSL's reason, which names no secret."""
    return printable(getattr(inner, "verify_message", "") or getattr(inner, "reason", "") or "handshake failed", 120)
