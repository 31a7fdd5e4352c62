"""What a network, a proxy or a busy API server can do to a request, as rules for the wire between a handler and the cluster."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.api_proxy import Chosen, is_object_write
from tests.rooms.cluster.faulty_proxy import Handler, Trick, reset_after, reset_before

FOR_EVER = 10_000


# --- tricks
def silent_before(handler: Handler) -> bool:
    """Swallow the request; say nothing until the client hangs up."""
    _until_it_hangs_up(handler)
    return False


def silent_after(handler: Handler) -> bool:
    """Let the server do it, and say nothing: a time-out after the effect."""
    handler.forward(deaf=True)
    _until_it_hangs_up(handler)
    return False


def _until_it_hangs_up(handler: Handler) -> None:
    with contextlib.suppress(OSError):
        while handler.connection.recv(1024):
            pass
    handler.close_connection = True


def said(status: int, body: Any, content_type: str = "application/json", **headers: str) -> Trick:
    """Answer so, without asking the server."""

    def trick(handler: Handler) -> bool:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.answer(status, {"Content-Type": content_type} | {key.replace("_", "-"): value for key, value in headers.items()}, data)
        return False

    return trick


def status(code: int, reason: str, message: str, **details: Any) -> Trick:
    """Answer with the API server's own form of a refusal."""
    return said(code, {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message, "details": details})


def done_but(trick: Trick) -> Trick:
    """Let the server do it, and answer otherwise all the same."""

    def both(handler: Handler) -> bool:
        handler.forward(deaf=True)
        return trick(handler)

    return both


def truncated(handler: Handler) -> bool:
    """Answer with the first half of the JSON, and with a length that says it is all."""
    answer = handler.answer
    handler.answer = lambda status, headers, data: answer(status, headers, data[: len(data) // 2])  # type: ignore[method-assign]  # this once
    handler.forward()
    handler.answer = answer  # type: ignore[method-assign]  # as it was
    return False


def doubled(handler: Handler) -> bool:
    """Answer with what the request before was answered on this connection, then with this one's: a proxy that lost count."""
    before = handler.last
    handler.forward(deaf=before is not None)
    if before:
        handler.answer(*before)
    return False


def next_page(*pages: Trick) -> Trick:
    """Give these answers to the requests for following pages, one after the other; make the first page short."""
    left = list(pages)

    def trick(handler: Handler) -> bool:
        if "continue=" in handler.path and left:
            return left.pop(0)(handler)
        handler.path = handler.path.replace("limit=500", "limit=1")
        return True

    return trick


# --- places
def _at(part: str) -> Chosen:
    return lambda method, path: part in path


PLACES: dict[str, Chosen] = {
    "discovery": lambda method, path: path in ("/api", "/apis"),
    "list": lambda method, path: method == "GET" and "labelSelector=" in path and "watch=true" not in path,
    "write": is_object_write,
    "apply": lambda method, path: method == "PATCH" and is_object_write(method, path),
    "read state": lambda method, path: method == "GET" and "/configmaps/anneal-s-" in path,
    "write state": lambda method, path: method in ("POST", "PUT") and "/namespaces/anneal-e2e/configmaps" in path,
    "lease": _at("/leases"),
    "watch": _at("watch=true"),
    "gone": lambda method, path: method == "GET" and "fieldSelector=" in path,
    "anything": lambda method, path: True,
}


@dataclass(frozen=True)
class Rule:
    """`times` requests at a place are met by a trick. `ends`: the codes with which the run may end, by who must act; empty: it recovers.

    `deadline`, `silence`: seconds, of the requests at that place.
    """

    place: str
    name: str
    trick: Trick = field(compare=False)
    times: int = 1
    ends: tuple[str, ...] = ()
    who: str = "nobody"
    deadline: float = 30.0
    silence: float = 60.0

    def __str__(self) -> str:
        return f"{self.place}: {self.name}{'' if self.times == 1 else ' for ever' if self.times == FOR_EVER else f' {self.times} times'}"


def once(place: str, name: str, trick: Trick, *ends: str, who: str = "nobody", times: int = 1, silence: float = 60.0) -> Rule:
    return Rule(place, name, trick, times, ends, who, silence=silence)


def always(place: str, name: str, trick: Trick, *ends: str, who: str = "nobody", silence: float = 60.0) -> Rule:
    return Rule(place, name, trick, FOR_EVER, ends or ("cluster-unavailable",), who, deadline=0.5, silence=silence)


UNAUTHORIZED = status(401, "Unauthorized", "Unauthorized")
BUSY = said(429, b"Too many requests, please try again later.\n", "text/plain", Retry_After="1", X_Kubernetes_PF_FlowSchema_UID="f")
_CAUSE = {"reason": "FieldManagerConflict", "message": 'conflict with "x"', "field": ".data.key"}
CONFLICT = status(409, "Conflict", "Apply failed with 1 conflict", causes=[_CAUSE])
TERMINATING = status(403, "Forbidden", "is being terminated", causes=[{"reason": "NamespaceTerminating", "message": "is being terminated"}])
EXPIRED = status(410, "Expired", "The provided continue parameter is too old")
PAGE = said(200, b"<html>sign in</html>", "text/html")
GATEWAY = said(502, b"<html>bad gateway</html>", "text/html")
NOT_FOUND = said(404, b"default backend - 404", "text/plain")
EMPTY = said(200, {})
SUCCESS = said(200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})
UNAVAILABLE = status(503, "ServiceUnavailable", "apiserver not ready")

BROKEN = "cluster-unavailable"
RULES: tuple[Rule, ...] = (
    once("watch", "reset before", reset_before, times=2),
    once("lease", "reset after the effect", reset_after),
    once("write state", "reset after the effect", reset_after, BROKEN, ""),
    once("write", "silence after the effect", silent_after, silence=2.0),
    always("list", "silence", silent_before, silence=0.5),
    *(once(place, "truncated JSON", truncated, BROKEN, "") for place in ("discovery", "write")),
    always("read state", "a page instead of JSON", PAGE),
    once("write", "a page instead of JSON after the effect", done_but(PAGE), BROKEN, ""),
    *(once(place, "an empty object", EMPTY, BROKEN, "") for place in ("discovery", "list", "read state", "gone")),
    once("apply", "a Status that says success", SUCCESS, BROKEN, ""),
    *(always(place, "another's 404", NOT_FOUND) for place in ("read state", "lease")),
    always("list", "410 on each second page", next_page(*[EXPIRED] * FOR_EVER), BROKEN, ""),
    once("list", "the second page is empty", next_page(EMPTY), BROKEN, "", times=6),
    once("watch", "401", UNAUTHORIZED),
    always("list", "401", UNAUTHORIZED, "access-denied", who="operator"),
    once("anything", "429 with Retry-After", BUSY),
    always("write", "429 with Retry-After", BUSY, BROKEN, ""),
    once("write", "502 after the effect", done_but(GATEWAY), times=2),
    always("write state", "503", UNAVAILABLE, BROKEN, ""),
    always("write", "409", CONFLICT, "moved", ""),
    always("write", "the Namespace is terminating", TERMINATING, "not-ready", ""),
    once("anything", "the answer to the request before", doubled, times=4),
)
"""Those that requests alone can't show (`tests/rooms/cluster/test_requests.py`, `test_watch.py`): what a run makes of them."""


def laid_out(rule: Rule) -> tuple[Callable[[str, str], bool], list[Trick]]:
    """Return what a Wire needs: which requests are met, and by what."""
    return PLACES[rule.place], [rule.trick] * rule.times
