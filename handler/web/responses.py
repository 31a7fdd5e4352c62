"""What every answer looks like: `{"matched": [...], "ignored": [...], "run": ...}`, JSON, never cached, never framed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flask import Response, jsonify

from handler.model.errors import AnnealError
from handler.model.event import Decision

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def accepted(decisions: Sequence[Decision], runs: Mapping[str, str]) -> Response:
    """Answer 202 when something runs, else 200. `runs`: run id by target; `run` is the first of them."""
    matched = [_row(decision) | {"run": runs[decision.target]} for decision in decisions if decision.matched]
    ignored = [_row(decision) for decision in decisions if not decision.matched]
    response = jsonify(matched=matched, ignored=ignored, run=next(iter(runs.values()), None))
    response.status_code = 202 if matched else 200
    return response


def refused(status: int, code: str, message: str) -> Response:
    """Answer a request that asks for nothing we do."""
    response = jsonify(matched=[], ignored=[], run=None, code=code, error=message)
    response.status_code = status
    return response


def error(raised: AnnealError) -> Response:
    """Answer with the status of a SenderError; anything else is ours: 500 without a word about the inside."""
    return refused(getattr(raised, "status", 500), raised.code, str(raised) if hasattr(raised, "status") else "internal error")


def _row(decision: Decision) -> dict[str, Any]:
    return {"target": decision.target or None, "reason": decision.reason}
