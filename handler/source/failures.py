"""What urllib3's exceptions mean, in our own words: a vendor's may hold a proxy's or a host's secrets."""

from __future__ import annotations

import ssl

from urllib3.exceptions import HTTPError, NameResolutionError, NewConnectionError, ProxyError, SSLError
from urllib3.exceptions import TimeoutError as TimedOut

from handler.model.errors import AnnealError, ConfigInvalid, GitUnavailable
from handler.model.tree import printable


def explained(error: Exception, subject: str) -> AnnealError:
    """Return the error that a vendor's exception stands for; our own stay as they are."""
    if isinstance(error, AnnealError):
        return error
    cause = error.args[-1] if isinstance(error, ProxyError) and error.args else error
    if isinstance(error, SSLError) or isinstance(cause, ssl.SSLError):
        return ConfigInvalid.of(subject, f"its TLS certificate is not trusted ({_tls_words(error)})", fix="set repository.tls.caFile")
    return GitUnavailable.of(subject, _words(error))


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


def _tls_words(error: Exception) -> str:
    """Return OpenSSL's reason, which names no secret."""
    inner = error.args[0] if error.args else None
    return printable(getattr(inner, "verify_message", "") or getattr(inner, "reason", "") or "handshake failed", 120)
