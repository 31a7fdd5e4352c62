"""URLs of charts: read strictly, compared by origin and whole segments of the path, never as text.

Law: what two programs could read differently (user information, dots, escaped separators, backslashes) is no URL here; what is asked is
written anew from the parts that were compared.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import unquote, urljoin

_URL = re.compile(
    r"(oci|https?)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?::([1-9][0-9]{0,4}))?(/[^?#]*)?(?:\?([^#]*))?",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[!$-\[\]_a-z~]*")
"""Printable ASCII without blank, quotation mark, `#`, backslash, `^`, backtick, braces and `|`."""
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?")
_PORTS = {"http": 80, "https": 443, "oci": 443}
LONGEST = 2000  # characters: browsers and proxies take no more either


@dataclass(frozen=True, slots=True)
class ChartUrl:
    """A URL with the scheme oci, https or http. `port`: 0 where it is the scheme's own; `path`: as written, without `/` at its end."""

    scheme: str
    host: str
    port: int
    path: str
    query: str = ""

    @classmethod
    def of(cls, text: str) -> ChartUrl:
        """Read a URL. Raises ValueError, in words that follow the URL in a sentence."""
        if len(text) > LONGEST or not _PLAIN.fullmatch(text):
            raise ValueError("is too long, or holds a character that no URL has")
        if "@" in text.partition("://")[2].partition("/")[0]:
            raise ValueError("holds credentials")
        found = _URL.fullmatch(text)
        if not found:
            raise ValueError("is no oci://, https:// or http:// URL")
        scheme, host, port = found[1].lower(), found[2].lower(), int(found[3] or 0)
        if port > 65535:
            raise ValueError("has a port above 65535")
        url = cls(scheme, host, 0 if port == _PORTS[scheme] else port, (found[4] or "").rstrip("/"), found[5] or "")
        _judge(url.path)
        return url

    def __str__(self) -> str:
        """Write it without its query, which may sign a request."""
        return f"{self.scheme}://{self.netloc}{self.path}"

    @property
    def netloc(self) -> str:
        """Host, and port where it isn't the scheme's."""
        return f"{self.host}:{self.port}" if self.port else self.host

    @property
    def origin(self) -> tuple[str, str, int]:
        """What credentials belong to: scheme of the transport, host and port."""
        return "http" if self.scheme == "http" else "https", self.host, self.port or _PORTS[self.scheme]

    @property
    def segments(self) -> tuple[str, ...]:
        """The parts of the path, unescaped."""
        return tuple(map(unquote, self.path.split("/")[1:]))

    @property
    def root(self) -> ChartUrl:
        """The same origin, without a path."""
        return replace(self, path="", query="")

    @property
    def parent(self) -> ChartUrl:
        """The directory that it lies in."""
        return replace(self, path=self.path.rpartition("/")[0], query="")

    def covers(self, other: ChartUrl) -> bool:
        """Whether another URL is this one or lies below it. `http://` also covers `oci://` of its host: a registry without TLS."""
        if other.scheme == "oci" and self.scheme == "http":
            other = replace(other, scheme="http", port=0 if other.port == _PORTS["http"] else other.port)
        ours = self.segments
        return self.scheme == other.scheme and self.origin == other.origin and other.segments[: len(ours)] == ours

    def joined(self, reference: str) -> ChartUrl:
        """Read a reference that stands in what this URL was answered with, as RFC 3986 joins them. Raises ValueError."""
        if not _PLAIN.fullmatch(reference):
            raise ValueError("holds a character that no URL has")
        return ChartUrl.of(urljoin(f"{self}{'?' if self.query else ''}{self.query}", reference))

    def below(self, path: str, query: str = "") -> ChartUrl:
        """Return the URL of a path below this one."""
        return ChartUrl.of(f"{self}/{path}{'?' if query else ''}{query}")


def _judge(path: str) -> None:
    """Refuse dots, and escapes of what separates or of what needs none. Raises ValueError."""
    if any(part in (".", "..") for part in path.split("/")):
        raise ValueError("has a `.` or `..` in its path")
    for escape in _ESCAPE.finditer(path):
        char = chr(int(escape[1], 16)) if escape[1] else "%"
        if char in "./\\%" or not " " <= char <= "~":
            raise ValueError("has an escaped separator, dot or control character in its path")


def canonical(text: str) -> str:
    """Return a URL as charts are known by it: no port of the scheme's own, no `/` at its end; what is no URL stays as it is."""
    try:
        return str(ChartUrl.of(text))
    except ValueError:
        return text
