"""What one run of a target takes from elsewhere than git: its cluster, values that live there, charts, tools.

    //tool/<name>                      sha256 of the program or library
    //directory/<path>                 sha256 of a directory that the target's settings name, with all below it
    //cluster/version, //cluster/apis  its version; sha256 of the list of what it serves
    //values/<kind>/<name>             uid/resourceVersion of an object in the target's namespace; empty: there is none
    //instance/list/<resource>       sha256 of the objects that an instance's trigger lists
    //chart/<url>/<name>/<asked>       digest of the archive

Law: made for one run and one commit, and gone with it: within it each answer is asked for once and stays, the next run asks anew. A
repository's index, which may be large, stays no longer than the render: a run may wait long after it. Values are read with the target's
rights, discovery with the handler's own.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.lister import lean
from handler.config.settings import Target
from handler.model.errors import ClusterUnavailable
from handler.model.manifest import canonical
from handler.model.outside_inputs import (
    APIS,
    CHART_READ,
    LISTED,
    LISTED_SECRETS,
    VALUES,
    VERSION,
    ChartReference,
    ClusterFacts,
    FetchedChart,
    KnownChart,
    NothingOutside,
    chart_asked,
    chart_identity,
    chart_read,
)
from handler.model.tree import OUTSIDE
from handler.render.nix import nixpkgs
from handler.render.render_tools import digest
from handler.source.charts.chart_index_cache import ChartIndexes
from handler.source.charts.chart_pins import ChartPins

if TYPE_CHECKING:
    from handler.source.charts.chart_fetcher import ChartFetcher

_TOOL = f"{OUTSIDE}tool/"
_PLURALS = {"ConfigMap": "configmaps", "Secret": "secrets"}


@dataclass(slots=True)
class TargetInputs:
    """`handler.model.render.OutsideInputs` of one run. `pins`: what the record knows of charts.

    `api`: returns the way to the cluster as the target's identity, `discovery`: what it serves; called where something of it is needed.
    `lists`: returns what an instance's trigger lists, by the resource's name; None: the target is no instance.
    """

    target: Target
    api: Callable[[], Api]
    discovery: Callable[[], Discovery]
    fetcher: Callable[[], ChartFetcher]
    pins: ChartPins = field(default_factory=ChartPins)
    lists: Callable[[str], list[dict[str, Any]]] | None = None
    _indexes: ChartIndexes = field(default_factory=ChartIndexes)
    _charts: dict[str, FetchedChart] = field(default_factory=dict)
    _lists: dict[str, bytes] = field(default_factory=dict)
    _objects: dict[tuple[str, str], dict[str, Any] | None] = field(default_factory=dict)

    def ask(self, name: str) -> str:
        """Return what an outside read is now; empty for one that isn't known. Raises AnnealError: it can't be asked."""
        if name.startswith(_TOOL):
            return digest(name.removeprefix(_TOOL))
        if name.startswith(nixpkgs.READ):
            return self._directory(name.removeprefix(nixpkgs.READ))
        if name in (VERSION, APIS) or name.startswith((VALUES, LISTED, LISTED_SECRETS)):
            return self._of_cluster(name)
        return self._chart_digest(name) if name.startswith(CHART_READ) else ""

    def _of_cluster(self, name: str) -> str:
        if name == VERSION:
            return self.discovery().version()
        if name == APIS:
            return hashlib.sha256("\n".join(self.discovery().api_versions()).encode()).hexdigest()
        if name.startswith((LISTED, LISTED_SECRETS)):
            return hashlib.sha256(canonical([_shown(live) for live in json.loads(self.listed(name.rpartition("/")[2]))])).hexdigest()
        kind, _, which = name.removeprefix(VALUES).partition("/")
        return _version_of(self._object(kind, which))

    def cluster(self) -> ClusterFacts:
        """Return the version and API versions of the target's cluster, as discovery knows them. Raises AnnealError."""
        return ClusterFacts.of(self.discovery().version(), self.discovery().api_versions())

    def values(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        """Return the data of a ConfigMap or Secret in the target's namespace, read with the target's rights; None: there is none."""
        live = self._object(kind, name)
        if live is None:
            return None
        texts = live.get("data") or {} if kind == "ConfigMap" else {}
        encoded = live.get("binaryData") if kind == "ConfigMap" else live.get("data")
        try:
            binary = {key: base64.b64decode(value, validate=True) for key, value in (encoded or {}).items()}
            return {**{key: value.encode() for key, value in texts.items()}, **binary}
        except (binascii.Error, AttributeError, TypeError, ValueError):
            raise ClusterUnavailable.of(f"{kind}/{self.namespace}/{name}", "holds what is no data of a ConfigMap or Secret") from None

    def chart(self, reference: ChartReference) -> FetchedChart:
        """Return a chart's archive, fetched at most once. Raises AnnealError: see `ChartFetcher.fetch`."""
        name = chart_read(reference)
        kept = self._charts.get(name)
        if kept is None or reference.digest not in ("", kept.digest):
            kept = self._charts[name] = self.fetcher().fetch(reference, self.pins, self._indexes)
        return replace(kept, reference=reference)

    def listed(self, name: str) -> bytes:
        """Return the objects of a resource that an instance's trigger watches, by their keys. Raises AnnealError: it watches none such."""
        if self.lists is None:
            return NothingOutside().listed(name)
        if name not in self._lists:
            found = sorted(self.lists(name), key=lambda live: (live["metadata"].get("namespace") or "", live["metadata"]["name"]))
            self._lists[name] = canonical([lean(live) for live in found])
        return self._lists[name]

    def recorded(self) -> tuple[KnownChart, ...]:
        """Return what the record should hold of charts: what it holds, and those that were fetched for this commit."""
        return self.pins.recorded(self._charts.values())

    def forget_indexes(self) -> None:
        """Let go of the indexes of repositories; the charts that were found by them stay known."""
        self._indexes = ChartIndexes()

    @property
    def namespace(self) -> str:
        """Where values live: the target's namespace, or the first of its whitelist."""
        first = self.target.namespaces[0]
        return self.target.namespace or (first if first != "*" else "default")

    def _directory(self, path: str) -> str:
        """Return the digest of a directory that the target names; of no other, whatever a record says."""
        found = next((name for name, each in nixpkgs.paths(self.target.renderer.nix_path).items() if each == path), "")
        return nixpkgs.find(found, path).digest if found else ""

    def _chart_digest(self, name: str) -> str:
        """Return the digest that a chart has for this commit; nothing is asked where it is known."""
        reference = chart_asked(name)
        if name not in self._charts:
            reference = replace(reference, digest=self._written(reference))
            version = self.pins.version(reference)
            expected = self.pins.expected(reference, version) if version else None
            if expected:
                return expected.digest
        return self.chart(reference).digest

    def _written(self, reference: ChartReference) -> str:
        """Return the digest that the target itself gives its chart."""
        chart = self.target.renderer.chart
        if chart is None or chart.version != reference.version:
            return ""
        ours = chart_identity(chart.oci or chart.repository, chart.name)
        return chart.digest if ours == chart_identity(reference.url, reference.name) else ""

    def _object(self, kind: str, name: str) -> dict[str, Any] | None:
        if (kind, name) not in self._objects:
            path = f"/api/v1/namespaces/{self.namespace}/{_PLURALS[kind]}/{name}"
            self._objects[kind, name] = self.api().get(path, subject=f"{kind}/{self.namespace}/{name}")
        return self._objects[kind, name]


def _shown(live: dict[str, Any]) -> dict[str, Any]:
    """Return what the digest of a list is made of: of a Secret its version, for a record holds the digest."""
    if (live.get("apiVersion"), live.get("kind")) != ("v1", "Secret"):
        return live
    return {key: live["metadata"].get(key) for key in ("namespace", "name", "uid", "resourceVersion")}


def _version_of(live: dict[str, Any] | None) -> str:
    if live is None:
        return ""
    metadata = live["metadata"]
    return f"{metadata.get('uid')}/{metadata.get('resourceVersion')}"
