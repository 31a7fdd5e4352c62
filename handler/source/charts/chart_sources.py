"""Which of the operator's prefixes covers a URL, and what signs in there.

Law: what no prefix covers is never asked, whatever names it: git, an index, a redirect, a registry's challenge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from handler.config.renderer_settings import ChartSource
from handler.config.secrets import Reading
from handler.model.advice import advice
from handler.model.chart_url import ChartUrl
from handler.model.errors import ChartNotAllowed, ConfigInvalid, SourceRefused
from handler.model.tree import printable
from handler.source.signin import Anonymous, Basic, SignIn


@dataclass(frozen=True, slots=True)
class ListedSource:
    """A prefix of the operator's. `prefix`: as it was read."""

    prefix: ChartUrl
    sign_in: SignIn
    ca_file: str

    @property
    def api(self) -> ChartUrl:
        """Where a registry's API is for names below the prefix (OCI distribution spec)."""
        scheme = "http" if self.prefix.scheme == "http" else "https"
        return ChartUrl(scheme, self.prefix.host, self.prefix.port, f"/v2{self.prefix.path}")


class ListedSources:
    """The prefixes of one target."""

    def __init__(self, sources: Iterable[ChartSource], secrets: Reading) -> None:
        """Raises ConfigInvalid: a prefix is no URL, or its file of authorities isn't there."""
        self._sources = [_listed(source, secrets) for source in sources]

    def covering(self, url: ChartUrl) -> ListedSource | None:
        """Return the longest prefix that covers a URL."""
        found = [source for source in self._sources if source.prefix.covers(url)]
        return max(found, key=lambda source: len(source.prefix.segments), default=None)

    def needed(
        self,
        url: ChartUrl,
        subject: str,
        seen: str = "comes from",
        prefix: ChartUrl | None = None,
        instead: str = "",
        *,
        told: bool = False,
    ) -> ListedSource:
        """Return the same. `seen`: how the URL came up; `prefix`: what to list for it; None: itself; `instead`: a command without listing.

        `told`: a host has led there, which knows our credentials: of the URL only the origin is named.

        Raises ChartNotAllowed with the line to add: no prefix covers it.
        """
        found = self.covering(url)
        if found is None:
            url, prefix = (url.root, url.root) if told else (url, prefix or url)
            fix = advice("where that may be, add to the target: charts: {yaml}", [{"url": str(prefix)}])
            fix = advice("{text}; or let git hold it: {text}", fix, instead) if instead else fix
            raise ChartNotAllowed.of(subject, f"{seen} {printable(str(url))}, which is below none of the target's `charts`", fix=fix)
        return found


def read_url(text: str, subject: str) -> ChartUrl:
    """Read a URL that git or the configuration names. Raises SourceRefused."""
    try:
        url = ChartUrl.of(text)
    except ValueError as wrong:
        raise SourceRefused.of(subject, f"its URL {wrong}", fix="write oci://<host>/<path> or https://<host>/<path>") from None
    if url.query:
        raise SourceRefused.of(subject, "its URL has a query", fix="leave out `?` and what follows")
    return url


def _listed(source: ChartSource, secrets: Reading) -> ListedSource:
    try:
        prefix = ChartUrl.of(source.url)
    except ValueError as wrong:
        raise ConfigInvalid.of("charts[].url", str(wrong), fix="write oci://<host>/<path> or https://<host>/<path>") from None
    if source.ca_file and not Path(source.ca_file).is_file():
        raise ConfigInvalid.of(source.ca_file, "no such file", fix=f"set caFile of charts[{source.url}]")
    sign_in: SignIn = Basic(source.auth, secrets.read, secrets.again) if source.auth else Anonymous()
    return ListedSource(prefix, sign_in, source.ca_file)
