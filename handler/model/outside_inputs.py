"""What a render takes from elsewhere than git: the cluster's facts, values that live there, charts. Each answer is an input.

//tool/<name>                      the program's digest
//cluster/version, //cluster/apis  version of the cluster, digest of what it serves
//values/<kind>/<name>             uid and resourceVersion of an object in the target's namespace
//chart/<url>/<name>/<asked>       digest of a chart's archive
//instance/list/<resource>         digest of the objects of a resource that the target's trigger watches
//instance/secret-list/<resource>  the same where Secrets are among them: of them it has the versions alone
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self

from handler.model.chart_url import canonical
from handler.model.errors import OperatorError
from handler.model.tree import OUTSIDE

_API, _VERSION = re.compile(r"[A-Za-z0-9./-]+"), re.compile(r"v?[0-9]+\.[0-9]+[A-Za-z0-9.+-]*")
VERSION, APIS, VALUES, CHART_READ = (f"{OUTSIDE}{name}" for name in ("cluster/version", "cluster/apis", "values/", "chart/"))
LISTED, LISTED_SECRETS = f"{OUTSIDE}instance/list/", f"{OUTSIDE}instance/secret-list/"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What charts ask of a cluster: `version` (`v1.36.3`), `api_versions` (`apps/v1`, `apps/v1/Deployment`), sorted."""

    version: str
    api_versions: tuple[str, ...]

    @classmethod
    def of(cls, version: str, api_versions: Iterable[str]) -> Self:
        """Make them of what a server says, without what is no version and no kind: they become arguments of programs."""
        return cls(version if _VERSION.fullmatch(version) else "", tuple(each for each in api_versions if _API.fullmatch(each)))


@dataclass(frozen=True, slots=True)
class ChartReference:
    """A chart that git doesn't hold: `url` of the registry or repository, `name` in a repository, `version` or a range, `digest` if known.

    `place`: file:line of what asks for it.
    """

    url: str
    name: str
    version: str
    digest: str = ""
    place: str = ""

    @classmethod
    def of(cls, repository: str, name: str, version: str, place: str) -> Self:
        """Make one of a registry or repository and a name in it, as Chart.yaml and kustomizations have them: of oci://, one URL."""
        if repository.startswith("oci://"):
            return cls(f"{repository.rstrip('/')}/{name}", "", version, place=place)
        return cls(repository, name, version, place=place)


@dataclass(frozen=True, slots=True)
class FetchedChart:
    """A chart's archive. `version`: the one that a range led to; `digest`: `sha256:…` of `data`, a .tgz."""

    reference: ChartReference
    version: str
    digest: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class KnownChart:
    """A chart that was used before, or is locked in git. `url`, `name`, `asked`: as a reference has them, `asked` a version or a range.

    `version`: what that led to; `digest`: of the archive; `commit`: of a record, the one that was rendered with it; `place`: of a lock.
    """

    url: str
    name: str
    asked: str
    version: str
    digest: str
    commit: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One version of a chart in a repository's index. `digest`: 64 hex digits, or empty; `name`: as it says itself, or empty."""

    version: str
    urls: tuple[str, ...]
    digest: str = ""
    name: str = ""


def chart_identity(url: str, name: str) -> tuple[str, str]:
    """Return by what a chart is known: its URL without what doesn't distinguish it, and its name; the name of oci:// is in the URL."""
    url = canonical(url)
    return (f"{url}/{name}", "") if name and url.startswith("oci://") else (url, name)


def chart_read(reference: ChartReference) -> str:
    """Return the name of a chart in a read set: `//chart/<url>/<name>/<version asked>`; what it is there is the archive's digest."""
    return f"{CHART_READ}{reference.url}/{reference.name}/{reference.version}"


def chart_asked(read: str) -> ChartReference:
    """Return the reference that a read of `chart_read` names; neither names nor versions hold a slash."""
    rest, _, version = read.removeprefix(CHART_READ).rpartition("/")
    url, _, name = rest.rpartition("/")
    return ChartReference(url, name, version)


class OutsideInputs(Protocol):
    """What a render takes from elsewhere than git, for one target. Each answer is in the read set, under the name that `ask` takes."""

    def ask(self, name: str) -> str:
        """Return what an outside read (`//cluster`, `//values/Secret/shop/db`, `//chart/…`) is now. Raises AnnealError."""

    def cluster(self) -> ClusterFacts:
        """Return the version and API versions of the target's cluster. Raises AnnealError."""

    def values(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        """Return the data of a ConfigMap or Secret in the target's namespace, read with the target's rights; None: there is none."""

    def chart(self, reference: ChartReference) -> FetchedChart:
        """Return a chart's archive. Raises AnnealError: the operator doesn't list its URL, it isn't there, or its bytes have changed."""

    def listed(self, name: str) -> bytes:
        """Return the objects of a resource that the target's trigger watches, as JSON. Raises AnnealError: it watches none of that name."""

    def recorded(self) -> tuple[KnownChart, ...]:
        """Return what the record should hold of charts once this commit is recorded."""

    def forget_indexes(self) -> None:
        """Let go of what only further charts would be found by, once the commit is rendered; answers that were given stay."""


@dataclass(frozen=True, slots=True)
class NothingOutside:
    """Knows git only: `cluster` is the one that the tools assume by themselves, values and charts are refused."""

    def ask(self, name: str) -> str:  # noqa: ARG002 - the port's signature
        """Return nothing."""
        return ""

    def cluster(self) -> ClusterFacts:
        """Return no version and no API versions."""
        return ClusterFacts("", ())

    def values(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        """Raise OperatorError: no cluster is known."""
        raise OperatorError.of(f"{kind} {name}", "holds values, and no cluster is asked here")

    def chart(self, reference: ChartReference) -> FetchedChart:
        """Raise OperatorError: nothing is fetched."""
        raise OperatorError.of(
            f"chart {reference.name or reference.url}", "isn't in git, and nothing is fetched here", place=reference.place
        )

    def listed(self, name: str) -> bytes:
        """Raise OperatorError: nothing is watched."""
        raise OperatorError.of(f"resource {name}", "is listed for instances of a trigger, and this is none")

    def recorded(self) -> tuple[KnownChart, ...]:
        """Return nothing."""
        return ()

    def forget_indexes(self) -> None:
        """Do nothing: there are none."""
