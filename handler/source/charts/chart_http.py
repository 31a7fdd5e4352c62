"""One bounded GET: what it may send, how long it may take, where it may lead, whom it may trust.

Law: a redirect is followed only below a listed prefix; each request carries what its own prefix signs in with, and a token of a registry
stays with that registry. Bodies are never unpacked, so that a size is a size. Errors are in our own words, and name what was asked; of
where a host leads they name the origin alone: it knows our credentials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from handler import __version__
from handler.model.advice import advice
from handler.model.chart_url import ChartUrl
from handler.model.errors import AccessDenied, AnnealError, ChartUnavailable
from handler.source.bounded_connections import Deadline, HttpRequest, Pools, content, location, send
from handler.source.charts.chart_limits import ChartLimits
from handler.source.charts.chart_sources import ListedSource, ListedSources
from handler.source.http_transport import explained, proxy_refused
from handler.source.signin import Anonymous

MakePools = Callable[[str, str, str], Pools]  # (scheme, host:port, file of authorities) -> the connections, shared or not


@dataclass(frozen=True, slots=True)
class ChartAnswer:
    """What a host answered. `url`: where in the end; `asked`: what was asked, for messages; `headers`: without regard to case."""

    status: int
    url: ChartUrl
    asked: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ChartRequest:
    """One GET. `most`: bytes of its answer; `authorization`: instead of what the source signs in with; None: that.

    `expected`: statuses that are returned, beside 200, instead of raised. `shown`: how messages name it; empty: by its URL.
    """

    url: ChartUrl
    source: ListedSource
    most: int
    accept: str = "*/*"
    authorization: str | None = None
    expected: frozenset[int] = frozenset()
    shown: str = ""


class ChartHttp:
    """The way to the hosts of one target's charts. Safe to share between threads."""

    def __init__(self, sources: ListedSources, pools: MakePools, limits: ChartLimits) -> None:
        self.sources = sources
        self.limits = limits
        self._pools = pools

    def get(self, deadline: Deadline, asked: ChartRequest, subject: str) -> ChartAnswer:
        """Return an answer, redirects followed.

        Raises ChartNotAllowed: a redirect elsewhere; AccessDenied; ConfigInvalid: its certificate isn't trusted, or no host can have the
        listed name; ChartUnavailable: it isn't there, too large, too slow, or no answer at all.
        """
        request, shown = asked, asked.shown or str(asked.url)
        for _ in range(self.limits.redirects + 1):
            answer = self._answer(deadline, request, shown, subject)
            place = location(answer.status, answer.headers)
            if not place:
                return answer if answer.status in {200, *asked.expected} else _refuse(answer, request.source, subject)
            request = self._redirected(request, place, shown, subject)
        raise ChartUnavailable.of(subject, f"{shown} redirects more than {self.limits.redirects} times")

    def _redirected(self, request: ChartRequest, place: str, asked: str, subject: str) -> ChartRequest:
        try:
            url = request.url.joined(place)
        except ValueError as wrong:
            raise ChartUnavailable.of(subject, f"{asked} redirects to what {wrong}") from None
        if request.source.api.covers(request.url) and request.source.api.covers(url):
            return ChartRequest(url, request.source, request.most, request.accept, request.authorization)
        source = self.sources.needed(url, subject, f"{asked} redirects to", told=True)
        kept = request.authorization if source is request.source and url.origin == request.url.origin else None
        return ChartRequest(url, source, request.most, request.accept, kept)

    def _answer(self, deadline: Deadline, request: ChartRequest, asked: str, subject: str) -> ChartAnswer:
        try:
            response = self._sent(deadline, request)
            try:
                body = b"" if location(response.status, response.headers) else content(response, request.most, deadline)
                if body is None:
                    raise ChartUnavailable.of(subject, f"{asked} sends more than {request.most:,} bytes")
                return ChartAnswer(response.status, request.url, asked, response.headers, body)
            finally:
                deadline.watch(None)
                response.close()
        except (AnnealError, HTTPError, OSError, ValueError) as error:
            if deadline.expired:
                raise ChartUnavailable.of(subject, f"{asked} took longer than {deadline.seconds:g} s") from None
            fix = advice("charts: [{url: {yaml}, caFile: <PEM file>}]", str(request.source.prefix))
            raise explained(error, subject, asked, unavailable=ChartUnavailable, trust=fix, nonsense="no valid answer") from None

    def _sent(self, deadline: Deadline, request: ChartRequest) -> BaseHTTPResponse:
        url, sign_in = request.url, request.source.sign_in
        headers = {"User-Agent": f"anneal/{__version__}", "Accept": request.accept, "Accept-Encoding": "identity"}
        if request.authorization is not None:
            sign_in = Anonymous()
            headers |= {"Authorization": request.authorization} if request.authorization else {}
        pools = self._pools(url.scheme, url.netloc, request.source.ca_file).present()
        return send(pools, HttpRequest(f"{url}{'?' if url.query else ''}{url.query}", headers), sign_in, self.limits, deadline)


def _refuse(answer: ChartAnswer, source: ListedSource, subject: str) -> NoReturn:
    if answer.status in (401, 403):
        raise denied(answer.status, answer.asked, source, subject)
    if answer.status == 407:
        raise proxy_refused(subject)
    if answer.status in (404, 410):
        raise ChartUnavailable.of(subject, f"{answer.asked} answers {answer.status}: it isn't there, or not for these credentials")
    raise ChartUnavailable.of(subject, f"{answer.asked} answers {answer.status}")


def denied(status: int, url: str, source: ListedSource, subject: str) -> AccessDenied:
    """Return the error for a host that refuses what a source signs in with, or wants that it does."""
    if source.sign_in.named:
        seen = f"{url} answered {status} to our credentials ({source.sign_in.named})"
        return AccessDenied.of(subject, seen, fix=f"give others in the target's charts[{source.prefix}], or let them read it")
    basic = "{username: <user>, password: {env: CHARTS_PASSWORD}}"
    fix = advice("write in the target: charts: [{url: {yaml}, auth: {text}}]", str(source.prefix), basic)
    return AccessDenied.of(subject, f"{url} answered {status}, and no credentials are configured for it", fix=fix)
