"""Which kinds the cluster serves, and their names in URLs: by aggregated discovery (KEP-3352); before 1.26 by group version."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from handler.cluster.api import Api
from handler.cluster.parallel import parallel
from handler.model.errors import AnnealError, ClusterUnavailable
from handler.model.names import GroupKind, Resource
from handler.model.quotation import quoted

_ALWAYS = {("v1", "ConfigMap"), ("coordination.k8s.io/v1", "Lease")}
_VERSION = re.compile(r"v[0-9][0-9A-Za-z.+-]{0,62}")
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


@dataclass(frozen=True, slots=True)
class ServedKinds:
    """The kinds of every served version, preferred versions first, and the groups that don't answer. `versions`: `apps/v1`, also theirs."""

    resources: tuple[Resource, ...]
    stale: frozenset[str]
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KindIndex:
    """One discovery, indexed. A reader keeps its index across a refresh."""

    served: ServedKinds
    exact: Mapping[tuple[str, str], Resource]
    preferred: Mapping[GroupKind, Resource]

    @classmethod
    def of(cls, served: ServedKinds) -> KindIndex:
        """Index served kinds."""
        exact: dict[tuple[str, str], Resource] = {}
        preferred: dict[GroupKind, Resource] = {}
        for resource in served.resources:
            exact.setdefault((resource.api_version, resource.kind), resource)
            preferred.setdefault(resource.group_kind, resource)
        return cls(served, exact, preferred)

    def listable(self) -> tuple[Resource, ...]:
        """Return one Resource per kind that can be listed and deleted: the kinds that members may have."""
        return tuple(resource for resource in self.preferred.values() if {"list", "delete"} <= resource.verbs)


class Discovery:
    """The kinds of one cluster, as `api` sees it, loaded at first use. Safe to share between threads."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._lock = threading.Lock()
        self._index: KindIndex | None = None
        self._version = ""

    def find(self, api_version: str, kind: str) -> Resource | None:
        """Return a kind in exactly this version (`apps/v1`, `Deployment`), or None."""
        return self.index().exact.get((api_version, kind))

    def preferred(self, group_kind: GroupKind) -> Resource | None:
        """Return a kind in the version its group prefers among those that serve it, or None."""
        return self.index().preferred.get(group_kind)

    def listable(self) -> tuple[Resource, ...]:
        """Return `KindIndex.listable`."""
        return self.index().listable()

    @property
    def stale(self) -> frozenset[str]:
        """Groups whose APIService is dead: their objects aren't known now."""
        return self.index().served.stale

    def version(self) -> str:
        """Return the server's version, e.g. `v1.36.3`. Raises AnnealError."""
        with self._lock:
            if not self._version:
                self._version = _server_version(self.api)
            return self._version

    def api_versions(self) -> tuple[str, ...]:
        """Return all that is served as Helm names it, sorted: `apps/v1` and `apps/v1/Deployment`. Raises AnnealError."""
        served = self.index().served
        kinds = (f"{resource.api_version}/{resource.kind}" for resource in served.resources)
        return tuple(sorted({*served.versions, *kinds}))

    def refresh(self) -> None:
        """Discover again at the next use."""
        with self._lock:
            self._index = None
            self._version = ""

    def index(self) -> KindIndex:
        """Return all that one discovery found, for who asks it more than once: another thread may refresh between. Raises AnnealError."""
        with self._lock:
            if self._index is None:
                index = KindIndex.of(_ask(self.api))
                if not index.exact.keys() >= _ALWAYS:  # recorded kinds would look gone
                    seen = "neither ConfigMaps nor Leases may be missing: this isn't all that the cluster serves"
                    raise ClusterUnavailable.of("discovery", seen)
                self._index = index
            return self._index


def _ask(api: Api) -> ServedKinds:
    answers = [_document(api, path) for path in ("/api", "/apis")]
    try:
        if all(answer.get("kind") == "APIGroupDiscoveryList" for answer in answers):
            return read_aggregated(answers)
        return _ask_classic(api, answers)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ClusterUnavailable.of("discovery", f"can't be read: {type(error).__name__}: {quoted(str(error), 150)}") from error


def _document(api: Api, path: str) -> dict[str, Any]:
    answer = api.get(path, accept=_AGGREGATED, subject=f"discovery {path}")
    if answer is None:
        raise ClusterUnavailable.of(f"discovery {path}", "answered 404: this is no API server")
    return answer


def _server_version(api: Api) -> str:
    found = (api.get("/version") or {}).get("gitVersion")
    if not isinstance(found, str) or not _VERSION.fullmatch(found):
        raise ClusterUnavailable.of("discovery /version", "names no version of Kubernetes")
    return found


def read_aggregated(documents: Iterable[dict[str, Any]]) -> ServedKinds:
    """Read APIGroupDiscoveryLists. A version of a dead APIService has freshness Stale and possibly no `resources`."""
    resources: list[Resource] = []
    stale: set[str] = set()
    versions: list[str] = []
    for document in documents:
        for item in document.get("items") or ():
            group = str((item.get("metadata") or {}).get("name") or "")
            for version in item.get("versions") or ():
                if version.get("freshness") == "Stale":
                    stale.add(group)
                versions.append(f"{group}/{version['version']}".lstrip("/"))
                resources.extend(_aggregated_version(group, version))
    return ServedKinds(tuple(resources), frozenset(stale), tuple(versions))


def _aggregated_version(group: str, version: dict[str, Any]) -> Iterator[Resource]:
    for row in version.get("resources") or ():
        kind = (row.get("responseKind") or {}).get("kind")
        if kind:
            verbs = frozenset(row.get("verbs") or ())
            status = any(each.get("subresource") == "status" for each in row.get("subresources") or ())
            yield Resource(group, version["version"], kind, row["resource"], row.get("scope") == "Namespaced", verbs, status)


def _ask_classic(api: Api, answers: list[dict[str, Any]]) -> ServedKinds:
    wanted = [("", str(version)) for version in answers[0].get("versions") or ()]
    for group in answers[1].get("groups") or ():
        preferred = (group.get("preferredVersion") or {}).get("version")
        versions = [str(row["version"]) for row in group.get("versions") or ()]
        wanted += [(group["name"], version) for version in sorted(versions, key=lambda version: version != preferred)]
    answered = parallel([partial(api.get, f"/apis/{group}/{version}" if group else f"/api/{version}") for group, version in wanted])
    resources: list[Resource] = []
    stale: set[str] = set()
    for (group_name, version), answer in zip(wanted, answered, strict=True):
        if isinstance(answer, ClusterUnavailable) or answer is None:
            stale.add(group_name)
        elif isinstance(answer, AnnealError):
            raise answer
        else:
            resources.extend(_classic_version(group_name, version, answer))
    return ServedKinds(tuple(resources), frozenset(stale), tuple(f"{group}/{version}".lstrip("/") for group, version in wanted))


def _classic_version(group: str, version: str, answer: dict[str, Any]) -> Iterator[Resource]:
    rows = answer.get("resources") or ()
    names = {row["name"] for row in rows}
    for row in rows:
        name = row["name"]
        if "/" not in name:
            verbs = frozenset(row.get("verbs") or ())
            yield Resource(group, version, row["kind"], name, bool(row.get("namespaced")), verbs, f"{name}/status" in names)
