"""The access log, a line of every request (`anneal serve --access-log`); deliveries, replays and refusals are logged in any case.

Law: a line holds nothing that the client chose but one of HTTP's own methods. The route is our rule, not the path; no query, no header.
Health checks have no line: they would be most of them.
"""

from __future__ import annotations

import logging

ROUTE = "anneal.route"
"""Key of the WSGI environment under which the application leaves the rule that a request has led to."""
OTHER = "other"  # the route of requests that lead nowhere
HEALTH = frozenset({"/healthz", "/readyz"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_LOG = logging.getLogger("anneal.access")


def log(method: str, route: str, status: int, sent: int, seconds: float, remote: str) -> None:
    """Log one request. `route`: our rule, or OTHER; `sent`: bytes of the answer's body; `remote`: the peer, maybe a proxy."""
    if route in HEALTH:
        return
    fields = {"method": method if method in _METHODS else OTHER, "route": route, "status": status, "bytes": sent}
    _LOG.info("request", extra={"fields": fields | {"seconds": seconds, "remote": remote}})
