"""Which Prometheus servers may be queried: those that the configuration lists, by origin and path prefix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from handler.config.settings import PrometheusSettings
from handler.config.value_formats import FORMS
from handler.model.advice import advice
from handler.model.errors import PlanRefused, Problem

_ENCODED = re.compile(r";|%(?:2[5ef]|3b|5c)", re.IGNORECASE)
"""`.`, `/`, `\\` and `%` encoded, which some servers decode; and `;`, at which some end a segment."""
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class AllowedQuery:
    """A server that a check may query: its URL, and the configuration's entry that allows it."""

    url: str
    by: PrometheusSettings


@dataclass(frozen=True, slots=True)
class AllowedServers:
    """The entries of the configuration. `anywhere`: every URL is allowed (local directories, not git)."""

    entries: Sequence[PrometheusSettings]
    anywhere: bool = False

    def find(self, url: str) -> AllowedQuery:
        """Return the server of a check's `url`; empty: the first listed. Raises PlanRefused: not listed, with the line that allows it."""
        problem = self.problem(url)
        if problem:
            raise PlanRefused(problem)
        return self._allowed(url) or AllowedQuery(url.rstrip("/"), PrometheusSettings(url))

    def problem(self, url: str) -> Problem | None:
        """Return what is wrong with a check's `url`; a text that isn't a plain URL is never quoted, for it may hold a password."""
        if not url:
            fix = "add `prometheus: [{url: https://prometheus.example.com}]` to anneal.yaml, or name one: `url`"
            return None if self.entries else Problem("prometheus", "no check may ask any: none is listed", fix=fix)
        seen = FORMS["metricsUrl"].complaint(url)
        if seen or _ENCODED.search(url):
            message = seen[0] if seen else "expected a URL without semicolons, and without encoded dots, slashes and percent signs"
            return Problem("prometheus", message, fix="write it as anneal.yaml lists it, e.g. https://prometheus.example.com")
        if self.anywhere or self._allowed(url):
            return None
        fix = advice("ask the operator for this line in anneal.yaml: prometheus: {yaml}", [{"url": _origin(url)[0]}])
        return Problem("prometheus", f"{url} isn't listed, and a URL in git alone is never asked", fix=fix)

    def _allowed(self, url: str) -> AllowedQuery | None:
        if not url:
            return AllowedQuery(self.entries[0].url.rstrip("/"), self.entries[0]) if self.entries else None
        matching = [entry for entry in self.entries if _is_within(url, entry.url)]
        longest = max(matching, key=lambda entry: len(entry.url), default=None)
        return AllowedQuery(url.rstrip("/"), longest) if longest else None


def _is_within(url: str, listed: str) -> bool:
    """Whether a URL has the listed one's origin and whole segments of its path first."""
    (origin, path), (wanted, prefix) = _origin(url), _origin(listed)
    return origin == wanted and (path == prefix or path.startswith(f"{prefix}/"))


def _origin(url: str) -> tuple[str, str]:
    """Return the normalized origin, and the path without a slash at its end."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme.lower()]
    shown = f"[{host}]" if ":" in host else host
    plain = f"{parts.scheme}://{shown}" + ("" if port == _PORTS[parts.scheme] else f":{port}")
    return plain, parts.path.rstrip("/")
