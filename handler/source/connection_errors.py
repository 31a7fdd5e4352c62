"""What urllib3's exceptions mean, in our own words: a vendor's may hold a proxy's or a host's secrets."""

from __future__ import annotations

import re
import ssl

from urllib3.exceptions import ProxyError, SSLError

from handler.config.git_settings import token_user
from handler.model.connection_failure import chain, tls_reason, words
from handler.model.errors import AccessDenied, AnnealError, ConfigInvalid, GitUnavailable

DENIALS = frozenset({401, 403, 404, 410})
"""Statuses that say no to who asks."""
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
        code = next((each.verify_code for each in chain(cause) if isinstance(each, ssl.SSLCertVerificationError)), 0)
        fix = _TLS_FIXES.get(code, "set repository.tls.caFile")
        return ConfigInvalid.of(subject, f"its TLS certificate is not trusted ({tls_reason(cause) or 'handshake failed'})", fix=fix)
    return GitUnavailable.of(subject, words(error) or "the host doesn't speak git's protocol")


def denied(status: int, subject: str, url: str, named: str) -> AccessDenied:
    """Return the error for an answer of `DENIALS`. `named`: how the credentials are called that were sent; empty: none were.

    Hosts answer 401, 403 or 404 alike to who may not know that a repository is there.
    """
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
    basic = f"{{username: {token_user(url)}, password: {{env: GIT_TOKEN}}}}"
    fix = f"{where} write in the target: repository: {{url: {url}, auth: {{basic: {basic}}}}}"
    return AccessDenied.of(subject, f"{seen}; credentials: none are configured", fix=fix)


def proxy_refused(subject: str) -> AccessDenied:
    """Return the error for a proxy's 407."""
    return AccessDenied.of(
        subject,
        "the proxy answered 407: it wants other credentials",
        fix="put them into HTTPS_PROXY or HTTP_PROXY as http://user:password@proxy:port, or name the host in NO_PROXY",
    )
