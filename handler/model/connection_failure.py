"""What a failed connection means, in our own words: a vendor's text may hold a proxy's password. Pure.

Exceptions are distinguished by the names of their classes: this room imports no vendor.
"""

from __future__ import annotations

import errno
import ssl
from collections.abc import Iterator

from handler.model.tree import printable

_WORDS = {
    "NameResolutionError": "its host name doesn't resolve",
    "gaierror": "its host name doesn't resolve",
    "ConnectionRefusedError": "its host refuses connections",
    "NewConnectionError": "no connection to its host can be made",
    "TimeoutError": "its host doesn't answer in time",
    "SSLError": "TLS with its host fails",
    "ProxyError": "the proxy doesn't let us through",
    "LocationValueError": "no host has such a name or port",
    "HTTPError": "the host broke off the connection or its answer",
    "ConnectionError": "the host broke off the connection",
    "OSError": "the connection broke",
}
"""By the name of a class, of urllib3's, of OpenSSL's or of the language."""
_BY_NUMBER = {
    errno.ECONNREFUSED: "its host refuses connections",
    errno.EHOSTUNREACH: "no network leads to its host",
    errno.ENETUNREACH: "no network leads to its host",
    errno.ENOENT: "the file of authorities isn't there",
    errno.EACCES: "the file of authorities can't be read",
}


def words(error: BaseException) -> str:
    """Say how a connection failed; empty: by nothing that is known of connections."""
    names = [kind.__name__ for kind in type(error).__mro__]
    found = next((_WORDS[name] for name in names if name in _WORDS), "")
    if names[0] in ("NewConnectionError", "OSError", "SSLError") or isinstance(error, ConnectionError):
        found = next((_BY_NUMBER[each.errno] for each in chain(error) if isinstance(each, OSError) and each.errno in _BY_NUMBER), found)
    reason = tls_reason(error)
    return f"{found} ({reason})" if found and reason else found


def tls_reason(error: BaseException) -> str:
    """Return OpenSSL's reason, which names no secret; empty: there is none."""
    inner = next((each for each in chain(error) if isinstance(each, ssl.SSLError)), None)
    if inner is None:
        return ""
    return printable(getattr(inner, "verify_message", "") or getattr(inner, "reason", "") or "handshake failed", 120)


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those that it stands for, the innermost last."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        last = found.args[-1] if found.args else None
        reason = getattr(found, "reason", None)
        found = next((each for each in (reason, last, found.__cause__) if isinstance(each, BaseException)), None)
