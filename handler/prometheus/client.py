"""Queries a Prometheus (https://prometheus.io/docs/prometheus/latest/querying/api/); its answer is bounded in size and time."""

from __future__ import annotations

import contextlib
import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3

from handler import __version__
from handler.config.git_settings import SecretRef
from handler.config.secrets import Reading
from handler.config.settings import PrometheusSettings
from handler.model.advice import advice
from handler.model.connection_failure import words
from handler.model.errors import RolloutFailed, SecretUnavailable, TransientError
from handler.model.rollout import Moments, Sample
from handler.prometheus.allowed_servers import AllowedQuery, AllowedServers


class MetricsUnavailable(TransientError, code="metrics-unavailable"):
    """A Prometheus doesn't answer a check, answers nonsense, or refuses; the check asks again until its time is over."""


TIMEOUT = urllib3.Timeout(connect=5.0, read=10.0)
LONGEST = 20.0  # seconds from an answer's headers to its end: the read time-out alone counts anew with each byte
LARGEST = 1 << 20  # bytes of an answer: thousands of series
_EVALUATION = "10s"  # Prometheus' own time limit for a query


class PrometheusClient:
    """The Prometheus servers of one configuration. Safe to share between threads. `clock`: seconds since the epoch."""

    def __init__(
        self, entries: Sequence[PrometheusSettings], secrets: Reading, *, anywhere: bool = False, clock: Callable[[], float] = time.time
    ) -> None:
        self.listed = AllowedServers(entries, anywhere)
        self._secrets, self._clock = secrets, clock
        self._pools: dict[tuple[str, str, object], urllib3.PoolManager] = {}
        self._lock = threading.Lock()

    def query(self, url: str, query: str, seconds: float = 0.0, step: float = 0.0) -> Moments:
        """Return what a query finds now, or every `step` seconds of the last `seconds` (`rollout.tables.Query`).

        Raises PlanRefused: the URL isn't listed; RolloutFailed: the query can't be evaluated, or finds too much;
        MetricsUnavailable: no valid answer, or access denied.
        """
        asked, now = self.listed.find(url), self._clock()
        form = {"query": query, "timeout": _EVALUATION}
        if not seconds:
            return self._ask(asked, "query", form | {"time": f"{now:.3f}"}, [now])
        gaps = max(1, math.ceil(round(seconds / step, 6)))  # whole steps stay as many, however their sum was rounded
        times = [now - seconds + index * seconds / gaps for index in range(gaps + 1)]
        form |= {"start": f"{times[0]:.3f}", "end": f"{times[-1] + seconds / gaps / 2:.3f}", "step": f"{seconds / gaps:.3f}"}
        return self._ask(asked, "query_range", form, times)

    def _ask(self, asked: AllowedQuery, kind: str, form: dict[str, str], times: list[float]) -> Moments:
        body = urlencode(form).encode()
        status, text = self._send(asked, kind, body, self._token(asked.by.token, again=False))
        if status == 401 and asked.by.token:
            status, text = self._send(asked, kind, body, self._token(asked.by.token, again=True))
        subject = f"prometheus {asked.url}"
        if status not in EXPECTED:
            raise _refusal(subject, status)
        try:
            return moments(status, text, times)
        except QueryRefused as error:
            fix = advice("see what it says: promtool query instant -- {} {}", asked.url, form["query"])
            raise RolloutFailed.of(subject, f"can't evaluate the query: {error}", fix=fix) from None
        except BadResponse as error:
            raise MetricsUnavailable.of(subject, f"{status}: {error}") from None

    def _token(self, ref: SecretRef | None, *, again: bool) -> dict[str, str]:
        if ref is None:
            return {}
        try:
            token = (self._secrets.again(ref) if again else self._secrets.read(ref)).reveal().strip()
        except SecretUnavailable as error:
            raise MetricsUnavailable(*error.problems) from error
        if not (token.isascii() and token.isprintable()):
            raise MetricsUnavailable.of(str(ref), "isn't plain text, so no header can hold it")
        return {"Authorization": f"Bearer {token}"}

    def _send(self, asked: AllowedQuery, kind: str, body: bytes, token: dict[str, str]) -> tuple[int, bytes]:
        headers = {"User-Agent": f"anneal/{__version__}", "Accept": "application/json", **token}
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        url, subject = f"{asked.url}/api/v1/{kind}", f"prometheus {asked.url}"
        options = {"redirect": False, "preload_content": False, "decode_content": False}
        try:
            response = self._pool(asked).request("POST", url, body=body, headers=headers, **options)  # type: ignore[arg-type]  # a mixed dict
            with contextlib.closing(response):
                text = _whole(response, subject)
                response.release_conn()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            fix = "name the authority that signed it: `caFile`" if "CERTIFICATE_VERIFY_FAILED" in str(error) else ""
            raise MetricsUnavailable.of(subject, f"can't be reached: {words(error)}", fix=fix) from None
        return response.status, text

    def _pool(self, asked: AllowedQuery) -> urllib3.PoolManager:
        file, parts = asked.by.ca_file, urlsplit(asked.url)
        key = (f"{parts.scheme}://{parts.netloc}", file, _stamp(file))
        with self._lock:
            if key not in self._pools:
                for old in [each for each in self._pools if each[:2] == key[:2]]:
                    self._pools.pop(old).clear()
                self._pools[key] = _pools(parts.scheme, parts.netloc, file)
            return self._pools[key]


def _pools(scheme: str, netloc: str, file: str) -> urllib3.PoolManager:
    options: dict[str, object] = {"timeout": TIMEOUT, "retries": False, "cert_reqs": "CERT_REQUIRED", "ca_certs": file or None}
    proxy = "" if proxy_bypass(netloc) else getproxies().get(scheme, "")
    if proxy:
        return urllib3.ProxyManager(proxy if "://" in proxy else f"http://{proxy}", **options)  # type: ignore[arg-type]  # a mixed dict
    return urllib3.PoolManager(**options)  # type: ignore[arg-type]  # a mixed dict of options


def _stamp(file: str) -> object:
    try:
        found = Path(file).stat() if file else None
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns) if found else None


def _whole(response: urllib3.BaseHTTPResponse, subject: str) -> bytes:
    """Return an answer's body. Raises RolloutFailed: too large; MetricsUnavailable: too slow."""
    end, found = time.monotonic() + LONGEST, bytearray()
    while part := response.read1(1 << 16):
        found += part
        if len(found) > LARGEST:
            fix = "aggregate: sum by (…) of few labels"
            raise RolloutFailed.of(subject, f"answers with more than {LARGEST >> 20} MiB of series", fix=fix)
        if time.monotonic() > end:
            raise MetricsUnavailable.of(subject, f"its answer hasn't ended after {LONGEST:g} s")
    return bytes(found)


def _refusal(subject: str, status: int) -> MetricsUnavailable:
    if status in (401, 403):
        seen, fix = "doesn't accept the token, or wants one", "see `prometheus[].token` in anneal.yaml"
    elif 300 <= status < 400:
        seen, fix = "redirects elsewhere, which is never followed", "list where it leads in anneal.yaml"
    elif status == 404:
        seen, fix = "answers, but not as Prometheus", "its URL may need a path, e.g. /prometheus"
    else:
        seen, fix = "doesn't answer the query", ""
    return MetricsUnavailable.of(subject, f"{status}: {seen}", fix=fix)


EXPECTED = frozenset({200, 400, 422, 503})
"""What Prometheus itself answers: found, a bad query, one that can't be executed, one that took too long."""
_KINDS = frozenset({"timeout", "canceled", "execution", "bad_data", "internal", "unavailable", "not_found", "not_acceptable"})
"""Prometheus' own kinds of errors (`errorType`)."""
_VALUE = re.compile(r"[+-]?(?:Inf|NaN|[0-9.]+(?:[eE][+-]?[0-9]+)?)")


class QueryRefused(Exception):
    """The query is wrong, whatever the data."""


class BadResponse(Exception):
    """No answer of Prometheus, or one that may differ next time."""


def moments(status: int, text: bytes, times: Sequence[float]) -> Moments:
    """Return what was found at these times (one: an instant query; several: a range). Raises QueryRefused, BadResponse."""
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
    """Return the error by its kind. Its text is left out: the server knows our token."""
    kind = answer.get("errorType")
    if status == 400 and kind == "bad_data":
        return QueryRefused("it is no query that Prometheus can read")
    return BadResponse(f"its error is {kind}" if isinstance(kind, str) and kind in _KINDS else "it names no kind of error that is known")


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
    step = times[1] - times[0]
    for at, value in _value(series, "values"):
        index = round((float(at) - times[0]) / step)
        if 0 <= index < len(times):
            yield index, _number(value)


def _number(value: Any) -> float:
    """Read a sample's value; `float` alone would also take `1_0`, blanks and other scripts' digits."""
    if isinstance(value, str) and not _VALUE.fullmatch(value):
        raise ValueError(value)
    return float(value)


def _value(series: dict[str, Any], name: str) -> Any:
    if name not in series and any(key.startswith("histogram") for key in series):
        raise QueryRefused("it is a native histogram; compare histogram_quantile(…) or histogram_count(…) of it")
    return series[name]


def _labels(series: dict[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in series["metric"].items()}
