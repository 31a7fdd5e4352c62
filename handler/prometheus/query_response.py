"""An answer of Prometheus' HTTP API -> samples. What answers may be anything; it is read as if it were hostile."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from handler.model.metric_sample import Moments, Sample

EXPECTED = frozenset({200, 400, 422, 503})
"""What Prometheus itself answers: found, a bad query, one that can't be executed, one that took too long."""
LONGEST = 300
"""Characters of what it says."""
_VALUE = re.compile(r"[+-]?(?:Inf|NaN|[0-9.]+(?:[eE][+-]?[0-9]+)?)")


class QueryRefused(Exception):
    """The query is wrong, whatever the data."""


class BadResponse(Exception):
    """No answer of Prometheus, or one that may differ next time."""


def moments(status: int, text: bytes, times: Sequence[float]) -> Moments:
    """Return what was found at these times (one: an instant query; several at equal distances: a range). Raises Refused, Nonsense."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise BadResponse("answers no JSON") from None
    if not isinstance(answer, dict) or answer.get("status") not in ("success", "error"):
        raise BadResponse("answers, but not as Prometheus")
    if answer["status"] == "error" or status != 200:
        raise _error(status, answer)
    data = answer.get("data")
    try:
        return _read(data["resultType"], data["result"], times)  # type: ignore[index]  # whatever else it is ends below
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        raise BadResponse("answers, but not as Prometheus") from None


def _error(status: int, answer: dict[str, Any]) -> Exception:
    said = "".join(char if char.isprintable() else " " for char in str(answer.get("error", "")))[:LONGEST]
    return QueryRefused(said) if status == 400 and answer.get("errorType") == "bad_data" else BadResponse(said or "says no more")


def _read(kind: str, result: Any, times: Sequence[float]) -> Moments:
    if kind == "scalar":
        return [[Sample({}, _number(result[1]))]]
    if kind == "vector":
        return [[Sample(_labels(series), _number(_value(series, "value")[1])) for series in result]]
    if kind == "matrix" and len(times) > 1:
        found: list[list[Sample]] = [[] for _ in times]
        for series in result:
            for index, value in _points(series, times):
                found[index].append(Sample(_labels(series), value))
        return found
    raise QueryRefused(f"it is a {'range vector' if kind == 'matrix' else 'text'}; one value a series is compared")


def _points(series: dict[str, Any], times: Sequence[float]) -> Iterator[tuple[int, float]]:
    """Yield which moment each point belongs to, and its value."""
    step = times[1] - times[0]
    for at, value in _value(series, "values"):
        index = round((float(at) - times[0]) / step)
        if 0 <= index < len(times):
            yield index, _number(value)


def _number(value: Any) -> float:
    """Read a sample's value as Prometheus writes it; `float` alone would also take `1_0`, blanks and digits of other scripts."""
    if isinstance(value, str) and not _VALUE.fullmatch(value):
        raise ValueError(value)
    return float(value)


def _value(series: dict[str, Any], name: str) -> Any:
    if name not in series and any(key.startswith("histogram") for key in series):
        raise QueryRefused("it is a native histogram; compare histogram_quantile(…) or histogram_count(…) of it")
    return series[name]


def _labels(series: dict[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in series["metric"].items()}
