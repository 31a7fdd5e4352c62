"""Fetches the charts of targets that list the same sources: one request at a time for one chart, kept by digest.

Law: URL and prefix are judged first, also for what is kept; then what is known, before and after the bytes are here.
"""

from __future__ import annotations

import hashlib
import posixpath
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from handler.config.renderer_settings import ChartSource
from handler.config.secrets import Reading
from handler.model.advice import advice
from handler.model.chart_url import ChartUrl
from handler.model.deadline import left
from handler.model.errors import AnnealError, ChartUnavailable, SourceRefused
from handler.model.outside_inputs import ChartReference, FetchedChart, IndexEntry, chart_identity
from handler.model.singleflight import SingleFlight
from handler.model.tree import printable
from handler.source.bounded_connections import Deadline
from handler.source.charts.chart_http import ChartHttp, MakePools
from handler.source.charts.chart_index_cache import ChartIndexes
from handler.source.charts.chart_limits import ChartLimits
from handler.source.charts.chart_pins import ChartPins
from handler.source.charts.chart_repository import ChartRepository, ReadIndex, ReadName
from handler.source.charts.chart_sources import ListedSources, read_url
from handler.source.charts.chart_versions import ChartRange, is_exact, order_of_version, pick
from handler.source.charts.oci_registry import OciRegistry

_KEPT = 1000  # characters: of a longer URL, name or version the record would keep a part, and know the chart by that no longer
MISTAKEN = "another run asked for it, and failed unexpectedly; see the log"
UNKNOWN = ChartPins()
_NEEDING = ("Chart.yaml", "requirements.yaml")
"""Files of a chart that name the charts which it needs."""


class ChartCache:
    """The last archives of a process by digest, at most `most` bytes; a larger one isn't kept. Safe to share between threads."""

    def __init__(self, most: int = ChartLimits().cache) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[object, str], bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, owner: object, digest: str) -> bytes | None:
        """Return an archive that was fetched for this owner: a version of a chart, from the sources of some targets and for no others."""
        with self._lock:
            found = self._kept.get((owner, digest))
            if found is not None:
                self._kept.move_to_end((owner, digest))
            return found

    def put(self, owner: object, digest: str, data: bytes) -> None:
        """Keep an archive; the least recently used go."""
        with self._lock:
            self._kept[owner, digest] = data
            self._kept.move_to_end((owner, digest))
            while sum(map(len, self._kept.values())) > self._most:
                self._kept.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One question, as its URL is shared between callers."""

    url: ChartUrl
    name: str
    reference: ChartReference
    pins: ChartPins
    indexes: ChartIndexes
    subject: str


class ChartFetcher:
    """Safe to share between threads. `read_index`, `read_name`: read apart from this process; `cache`: shared with other fetchers."""

    def __init__(
        self,
        sources: Sequence[ChartSource],
        secrets: Reading,
        read_index: ReadIndex,
        read_name: ReadName,
        pools: MakePools,
        cache: ChartCache | None = None,
        limits: ChartLimits = ChartLimits(),  # noqa: B008 - frozen
    ) -> None:
        """Prepare; nothing is asked yet. Raises ConfigInvalid: a source is no URL, or its file of authorities isn't there."""
        self._http = ChartHttp(ListedSources(sources, secrets), pools, limits)
        self._limits = limits
        self._read_index = read_index
        self._read_name = read_name
        self._cache = cache or ChartCache(limits.cache)
        self._owner = object()
        self._flights: SingleFlight[tuple[object, ...], FetchedChart] = SingleFlight()

    def fetch(self, reference: ChartReference, pins: ChartPins = UNKNOWN, indexes: ChartIndexes | None = None) -> FetchedChart:
        """Return a chart's archive. `pins`: what the target's record knows, for this commit. `indexes`: of its render; None: of this call.

        Raises ChartNotAllowed: what would be asked is below none of the sources; ChartChanged: other bytes than are known;
        SourceRefused: its URL or name can't be one; ConfigInvalid: its version isn't one; ChartUnavailable, AccessDenied.
        """
        with _placed(reference.place):
            wanted = self._wanted(reference, pins, indexes or ChartIndexes())
            version = pins.version(reference)
            expected = pins.expected(reference, version) if version else None
            kept = self._cache.get(self._owner_of(wanted, version), expected.digest) if expected else None
            if kept is not None and expected:
                return FetchedChart(reference, version, expected.digest, kept)
            seen = wanted.indexes if wanted.url in wanted.indexes else None  # what this run saw may be older than another run is
            key = (*chart_identity(reference.url, reference.name), version or reference.version, reference.digest, pins, seen)
            found = self._flights.do(key, lambda: self._fetched(wanted, version), lambda: ChartUnavailable.of(wanted.subject, MISTAKEN))
            return replace(found, reference=reference)

    def _wanted(self, reference: ChartReference, pins: ChartPins, indexes: ChartIndexes) -> _Wanted:
        """Judge what is asked for before anything is."""
        subject = f"chart {printable(reference.name or reference.url.rpartition('/')[2], 80)} {printable(reference.version, 80)}".rstrip()
        url, name = read_url(reference.url, subject), reference.name
        if "/" in name or not name.isprintable() or (not name and url.scheme != "oci"):
            raise SourceRefused.of(subject, "a chart of a repository has a name without slashes", fix="write its name as in index.yaml")
        if url.scheme == "oci" and name:
            url, name = read_url(f"{url}/{name}", subject), ""
        if any(len(text) > _KEPT for text in (str(url), name, reference.version)):
            raise SourceRefused.of(subject, f"its URL, name or version is longer than {_KEPT:,} characters")
        if not is_exact(reference.version):
            ChartRange(reference.version)
        self._http.sources.needed(url, subject, prefix=url.parent if url.scheme == "oci" else url, instead=_pull(reference))
        return _Wanted(url, name, reference, pins, indexes, subject)

    def _owner_of(self, wanted: _Wanted, version: str) -> object:
        return self._owner, str(wanted.url), wanted.name, version

    def _fetched(self, wanted: _Wanted, version: str) -> FetchedChart:
        with Deadline(left(self._limits.total)) as deadline:
            of = self._of_registry if wanted.url.scheme == "oci" else self._of_repository
            version, data, entry = of(wanted, version or wanted.reference.version, deadline)
        if len(version) > _KEPT:
            raise ChartUnavailable.of(wanted.subject, f"{wanted.url} has a version longer than {_KEPT:,} characters")
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        wanted.pins.judge(wanted.reference, version, digest)
        if entry:
            self._judge(wanted, entry, data)
        self._cache.put(self._owner_of(wanted, version), digest, data)
        return FetchedChart(wanted.reference, version, digest, data)

    def _judge(self, wanted: _Wanted, entry: IndexEntry, data: bytes) -> None:
        """Raise ChartUnavailable if the archive says another name or version than its entry, whatever digest is locked."""
        name, version = self._read_name(data, f"{wanted.name}-{printable(entry.version, 80)}.tgz")
        asked, orders = entry.name or wanted.name, (order_of_version(version), order_of_version(entry.version))
        same = orders[0] == orders[1] if all(orders) else version == entry.version
        if name in ("", asked) and (same or not version):
            return
        asked, name, told, version = (printable(each, 80) for each in (asked, name, entry.version, version))
        seen = f"{wanted.url.below('index.yaml')} has it as {asked} {told}, and the Chart.yaml in its archive says {name} {version}"
        fix = "ask who publishes it to correct that; or, if this chart is wanted, unpack it into git and let the target render it there"
        raise ChartUnavailable.of(wanted.subject, seen, fix=fix)

    def _of_registry(self, wanted: _Wanted, version: str, deadline: Deadline) -> tuple[str, bytes, None]:
        registry = OciRegistry(self._http, wanted.url, self._http.sources.needed(wanted.url, wanted.subject), deadline, wanted.subject)
        if not is_exact(version):
            version = pick(registry.versions(), version, wanted.subject, f"at {wanted.url}")
        return version, self._pulled(registry, wanted, version), None

    def _pulled(self, registry: OciRegistry, wanted: _Wanted, version: str, tag: str = "") -> bytes:
        layer = registry.layer(tag or version)
        wanted.pins.judge(wanted.reference, version, layer.digest)
        kept = self._cache.get(self._owner_of(wanted, version), layer.digest)
        return registry.archive(layer) if kept is None else kept

    def _of_repository(self, wanted: _Wanted, version: str, deadline: Deadline) -> tuple[str, bytes, IndexEntry]:
        source = self._http.sources.needed(wanted.url, wanted.subject)
        repository = ChartRepository(self._http, wanted.url, source, deadline, wanted.subject)
        entry = repository.entry(wanted.name, version, self._read_index, wanted.indexes)
        url = repository.located(entry)
        if url.scheme != "oci":
            return entry.version, repository.archive(entry, url), entry
        path, _, tag = url.path.rpartition(":")
        url = replace(url, path=path) if path else url
        source = self._http.sources.needed(url, wanted.subject, "its index has it at", url.parent)
        registry = OciRegistry(self._http, url, source, deadline, wanted.subject)
        return entry.version, self._pulled(registry, wanted, entry.version, tag if path else ""), entry


def _pull(reference: ChartReference) -> str:
    """Return the command after which git holds a chart that another one needs; empty: no Chart.yaml asks for it."""
    file = reference.place.rpartition(":")[0]
    if posixpath.basename(file) not in _NEEDING:
        return ""
    origin = [reference.name, "--repo", reference.url] if reference.name else [reference.url]
    charts = posixpath.join(posixpath.dirname(file), "charts")
    words = [*origin, "--version", reference.version, "--untar", "--untardir", charts]
    return advice("helm pull{words}", words)


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """Give errors the place of what asks for the chart; those of a shared question carry another's, or none."""
    try:
        yield
    except AnnealError as error:
        if place:
            error.problems = tuple(replace(problem, place=place) for problem in error.problems)
        raise
