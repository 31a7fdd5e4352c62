"""One file over HTTP, for `anneal vendor`.

Law: no credentials are sent, a redirect never leaves TLS; a file is taken whole or not at all, and never unpacked.
"""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from handler.model.errors import AnnealError, GitUnavailable, SourceRefused
from handler.source.bounded_connections import Deadline, HttpRequest, content, location, pools_for, send
from handler.source.host_limits import HostLimits
from handler.source.http_transport import explained, proxy_refused
from handler.source.signin import Anonymous
from handler.source.upload_pack import shown_url

REDIRECTS = 5
_SCHEMES = ("http", "https")


def fetch_file(url: str, limits: HostLimits = HostLimits()) -> bytes:  # noqa: B008 - frozen
    """Return what a URL holds.

    Raises GitUnavailable: the host fails or has no such file; SourceRefused: it is no URL, too large, or leads away; AccessDenied: a proxy
    wants other credentials; ConfigInvalid: the host's certificate isn't trusted, or HTTP(S)_PROXY is no URL.
    """
    subject, base, place = shown_url(url), "", url
    with Deadline(limits.total) as deadline:
        try:
            for _ in range(REDIRECTS + 1):
                base = _joined(base, place, subject)
                found, place = _asked(base, subject, limits, deadline)
                if found is not None:
                    return found
        except (AnnealError, HTTPError, OSError, ValueError) as error:
            if deadline.expired:
                raise GitUnavailable.of(subject, f"took longer than {deadline.seconds:g} s") from None
            trust = "set SSL_CERT_FILE=<PEM file of its authority>"
            raise explained(error, subject, no_url=SourceRefused, trust=trust, nonsense="no valid answer") from None
    raise SourceRefused.of(subject, f"is redirected more than {REDIRECTS} times")


def _joined(base: str, place: str, subject: str) -> str:
    """Return the URL of a place that `base` leads to; empty: one that is asked first. Raises SourceRefused: it is none, or leaves TLS."""
    try:
        url = urljoin(base, place)
        parts = urlsplit(url)
        plain = parts.scheme in _SCHEMES and parts.hostname and parts.port != 0 and "@" not in parts.netloc and url.isprintable()
    except ValueError:
        plain = False
    if not plain:
        raise SourceRefused.of(subject, f"{'is redirected to what ' if base else ''}isn't a plain http:// or https:// URL")
    if base.startswith("https:") and parts.scheme == "http":
        raise SourceRefused.of(subject, "is redirected to plain http://")
    return url


def _asked(url: str, subject: str, limits: HostLimits, deadline: Deadline) -> tuple[bytes | None, str]:
    """Return the content of a URL, or None and where it leads."""
    parts = urlsplit(url)
    request = HttpRequest(url, {"User-Agent": "anneal"})
    response = send(pools_for(parts.scheme, parts.netloc, ""), request, Anonymous(), limits, deadline)
    try:
        place = location(response.status, response.headers)
        return (None, place) if place else (_content(response, subject, limits, deadline), "")
    finally:
        deadline.watch(None)
        response.close()


def _content(response: BaseHTTPResponse, subject: str, limits: HostLimits, deadline: Deadline) -> bytes:
    if response.status == 407:
        raise proxy_refused(subject)
    if response.status != 200:
        raise GitUnavailable.of(subject, f"the host answered {response.status}")
    if "Content-Encoding" in response.headers:
        raise SourceRefused.of(subject, "is sent packed, which wasn't asked for")
    data = content(response, limits.object, deadline)
    if data is None:
        raise SourceRefused.of(subject, f"has more than {limits.object:,} bytes")
    return data
