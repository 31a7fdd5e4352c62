"""A chart in a repository: index.yaml, and the archives that it names (https://helm.sh/docs/topics/chart_repository/).

Law: index and archive are read in a render child, never here; an archive lies below a listed prefix, wherever the index says it is, and is
what the index says: by its digest, and by the name and version in its Chart.yaml.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from handler.model.chart_url import ChartUrl
from handler.model.errors import ChartUnavailable
from handler.model.outside_inputs import IndexEntry
from handler.source.bounded_connections import Deadline
from handler.source.charts.chart_http import ChartHttp, ChartRequest
from handler.source.charts.chart_index_cache import ChartIndexes
from handler.source.charts.chart_sources import ListedSource
from handler.source.charts.chart_versions import pick

ReadIndex = Callable[[bytes, str, str], Sequence[IndexEntry]]
"""(index.yaml, name of a chart, where it is from) -> its versions. Raises AnnealError."""
ReadName = Callable[[bytes, str], tuple[str, str]]
"""(an archive, what it is called) -> name and version that its Chart.yaml says; each empty: none. Raises AnnealError."""
_GZIP = b"\x1f\x8b"


class ChartRepository:
    """One repository, during one operation. `subject`: of errors; `source`: the prefix that covers it."""

    def __init__(self, http: ChartHttp, url: ChartUrl, source: ListedSource, deadline: Deadline, subject: str) -> None:
        self._http = http
        self._url = url
        self._index = url.below("index.yaml")
        self._source = source
        self._deadline = deadline
        self._subject = subject

    def entry(self, name: str, version: str, read: ReadIndex, indexes: ChartIndexes) -> IndexEntry:
        """Return the entry of exactly this version, else the highest in the range. Raises ChartUnavailable: none is."""
        request = ChartRequest(self._index, self._source, self._http.limits.index)
        index = indexes.of(self._url, lambda: self._http.get(self._deadline, request, self._subject).body)
        entries = read(index, name, str(self._index))
        if not entries:
            raise ChartUnavailable.of(self._subject, f"{self._index} knows no chart of that name", fix="correct the name, or publish it")
        found = pick([each.version for each in entries], version, self._subject, f"in {self._index}")
        return next(each for each in entries if each.version == found)

    def located(self, entry: IndexEntry) -> ChartUrl:
        """Return where an entry's archive is: `https://`, `http://`, or `oci://` with a tag. Raises ChartUnavailable: nowhere."""
        try:
            first = entry.urls[0] if entry.urls else ""
            return ChartUrl.of(first) if first.startswith("oci:") else self._index.joined(first)
        except ValueError as wrong:
            raise ChartUnavailable.of(self._subject, f"{self._index} has it at a URL that {wrong}") from None

    def archive(self, entry: IndexEntry, url: ChartUrl) -> bytes:
        """Return an entry's archive. Raises ChartNotAllowed: no prefix covers it; ChartUnavailable: it isn't what the index says."""
        source = self._http.sources.needed(url, self._subject, f"{self._index} has it at", url.parent)
        data = self._http.get(self._deadline, ChartRequest(url, source, self._http.limits.archive), self._subject).body
        found, wanted = hashlib.sha256(data).hexdigest(), entry.digest.removeprefix("sha256:")
        if wanted and wanted != found:
            raise ChartUnavailable.of(self._subject, f"{url} has sha256:{found}, and {self._index} says another")
        if not data.startswith(_GZIP):
            raise ChartUnavailable.of(self._subject, f"{url} answers something else than an archive (.tgz)")
        return data
