"""What a render that is only shown takes from elsewhere than git: as a run does, but a cluster that can't be asked stops no chart.

Law: what helm assumes by itself then stands for the cluster, and placeholders for variables that live there; a note says so. Values of a
chart have no such stand-in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from handler.config.post_build import SubstituteFrom
from handler.model.errors import AccessDenied, AnnealError, ClusterUnavailable, OperatorError, Problem
from handler.model.outside_inputs import APIS, VALUES, VERSION, ChartReference, ClusterFacts, FetchedChart, KnownChart, OutsideInputs


@dataclass(slots=True)
class ShownInputs:
    """`handler.model.render.OutsideInputs` of one render. `inputs`: a run's; `notes`: what of them couldn't be had."""

    inputs: OutsideInputs
    notes: list[str] = field(default_factory=list)

    def ask(self, name: str) -> str:
        """Return what an outside read is now; of a cluster that can't be asked nothing. Raises AnnealError."""
        if self.notes and name in (VERSION, APIS):
            return ""
        with _named(*name.removeprefix(VALUES).split("/")) if name.startswith(VALUES) else nullcontext():
            return self.inputs.ask(name)

    def cluster(self) -> ClusterFacts:
        """Return the version and API versions of the target's cluster; none where it can't be asked."""
        try:
            return self.inputs.cluster()
        except AnnealError as error:
            self.notes.append(f"the cluster wasn't asked, and helm's own assumption of one stands for it: {error.problems[0]}")
            return ClusterFacts("", ())

    def values(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        """Return the data of a ConfigMap or Secret in the target's namespace. Raises AnnealError: it can't be read."""
        with _named(kind, name):
            return self.inputs.values(kind, name)

    def chart(self, reference: ChartReference) -> FetchedChart:
        """Return a chart's archive. Raises AnnealError."""
        return self.inputs.chart(reference)

    def listed(self, name: str) -> bytes:
        """Return the objects of a resource that the target's trigger watches. Raises AnnealError."""
        return self.inputs.listed(name)

    def lacks(self, sources: Iterable[SubstituteFrom]) -> bool:
        """Whether placeholders must stand for variables of the cluster, for it can't be asked; noted then."""
        try:
            for source in sources:
                self.inputs.values(source.kind, source.name)
        except (ClusterUnavailable, AccessDenied, OperatorError) as error:
            self.notes.append(f"the cluster wasn't asked, and placeholders stand for its variables: {error.problems[0]}")
            return True
        return False

    def recorded(self) -> tuple[KnownChart, ...]:
        """Return what a record would hold of charts."""
        return self.inputs.recorded()

    def forget_indexes(self) -> None:
        """Let go of the indexes of repositories."""
        self.inputs.forget_indexes()


@contextmanager
def _named(kind: str, name: str) -> Iterator[None]:
    """Say of an error for which values the cluster was asked."""
    try:
        yield
    except AnnealError as error:
        error.problems = (Problem(f"{kind} {name}", "renderer.valuesFrom takes values from it, and it can't be read"), *error.problems)
        raise
