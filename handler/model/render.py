"""What passes between the pipeline and a renderer."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from handler.model.chart_url import canonical
from handler.model.errors import OperatorError
from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.tree import OUTSIDE, ReadSet

CHART_READ = f"{OUTSIDE}chart/"
Files = Mapping[tuple[str, str], tuple[Manifest, ...]]
"""(path, blob id) -> the file's documents: what has not changed needn't be read again."""
FILES = "file"
"""The renderer of plain manifests."""
Where = Callable[[Sequence[str]], Sequence[int]]
"""Paths of fields of a Rollout -> the line of each, or of the nearest parent that is there; 0: none is known."""


def nowhere(fields: Sequence[str]) -> Sequence[int]:
    """Know no line: what answers for a renderer that makes its Rollout, or one that was rendered before."""
    return [0] * len(fields)


def places(where: Where, document: str, fields: Sequence[str]) -> list[str]:
    """Return file:line of each field of a Rollout; that of the `document` where no line of its own is known."""
    path = document.rpartition(":")[0]
    return [f"{path}:{line}" if line else document for line in where(fields)]


@dataclass(frozen=True, slots=True)
class Called:
    """How commands name what is rendered. `namespaces`: the target's, its default first; `directory`: its files'; `in_git`: a commit's."""

    name: str = "app"
    namespaces: tuple[str, ...] = ("default",)
    directory: str = ""
    in_git: bool = False

    @property
    def namespaced(self) -> str:
        """The flag of a program that makes objects of one namespace; empty where every namespace is meant."""
        return f" --namespace {self.namespaces[0]}" if self.namespaces[0] != "*" else ""

    @property
    def command(self) -> str:
        """The command that applies what another program prints; where git has the files, by another name than the configured target's."""
        name = f"{self.name}-built" if self.in_git else self.name
        return f"anneal apply -f - --name {name} {' '.join(f'-n {shlex.quote(each)}' for each in self.namespaces)} -y"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What charts ask of a cluster: `version` (`v1.36.3`), `api_versions` (`apps/v1`, `apps/v1/Deployment`), sorted."""

    version: str
    api_versions: tuple[str, ...]


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
    """One version of a chart in a repository's index. `digest`: 64 hex digits, or empty."""

    version: str
    urls: tuple[str, ...]
    digest: str = ""


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


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """What to render. `path`: directory of the repository; `include`, `exclude`: globs below it; `known`: files rendered before.

    `rollout`: a Rollout's path from the root; empty: none. `older`: render without one that the commit lacks. `called`: for messages.
    `options`: the renderer's, each a typed value; None: its defaults. `configuration`: what a trigger hands to a renderer that takes one.
    `outside`: all that isn't git. `installed`: what `Rendered.installs` was when the target's first commit was recorded; empty: none was.
    `weak`: programs may run without walls for files and sockets.
    """

    path: str
    include: tuple[str, ...] = ("**/*.yaml", "**/*.yml", "**/*.json")
    exclude: tuple[str, ...] = ()
    rollout: str = ""
    known: Files = field(default_factory=dict, repr=False)
    older: bool = False
    called: Called = Called()
    options: object = None
    configuration: Mapping[str, object] = field(default_factory=dict, repr=False)
    outside: OutsideInputs = field(default_factory=NothingOutside, repr=False, compare=False)
    installed: str = ""
    weak: bool = False


@dataclass(frozen=True, slots=True)
class RecordedRender:
    """What a target's record says of its renders. `renderer`: of the recorded commit, empty: none is recorded; `installed`: see below."""

    renderer: str = ""
    installed: str = ""


@dataclass(frozen=True, slots=True)
class UnstableFields:
    """What of an object is made anew at each render. `paths`: JSON pointers; `why`: the functions and their lines."""

    paths: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """The documents, in path order, everything that was read to make them, and the same by file for the next render.

    `keys`: the Rollout's names of objects -> their identities in `manifests`. A file's document is called by the path below the request's,
    those after the first with `!1`, `!2` … behind it; a List is all its items. `where`: called only when the Rollout has mistakes.
    `renderer`: which one made them. `notes`: what a plan should say of the render. `unstable`: objects that a second render of the same
    inputs makes otherwise -> the fields that differ, with why. `installs`: digest of what a first install is made of; empty: no such thing.
    `charts`: those that were fetched, for the record.
    """

    manifests: tuple[Manifest, ...]
    reads: ReadSet
    files: Files = field(default_factory=dict, repr=False)
    rollout: Manifest | None = None
    keys: Mapping[str, tuple[Identity, ...]] = field(default_factory=dict, repr=False)
    where: Where = field(default=nowhere, repr=False, compare=False)
    renderer: str = FILES
    notes: tuple[str, ...] = ()
    unstable: Mapping[Identity, UnstableFields] = field(default_factory=dict)
    installs: str = ""
    charts: tuple[FetchedChart, ...] = field(default=(), repr=False)
