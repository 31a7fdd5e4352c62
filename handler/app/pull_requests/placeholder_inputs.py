"""What a render for a pull request takes from elsewhere than git: charts and kinds as a run does, and no value of the cluster.

Law: a value of a ConfigMap or Secret never reaches a render that others see. Of a chart's values the keys stay, for templates look at them;
anything else is one placeholder, for a text may look like a mapping.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from handler.config.yaml_placeholders import with_placeholders
from handler.model.outside_inputs import VALUES, ChartReference, ClusterFacts, FetchedChart, KnownChart, OutsideInputs
from handler.render.variables.variables import PLACEHOLDERS


@dataclass(slots=True)
class PlaceholderInputs:
    """`handler.model.outside_inputs.OutsideInputs`. `number`: which set of placeholders (`RenderRequest`).

    `charts`: what holds values of charts: kind, name and key of each.
    """

    inputs: OutsideInputs
    number: int
    charts: Collection[tuple[str, str, str]] = ()

    def ask(self, name: str) -> str:
        """Return what an outside read is now; of values nothing: their version would tell that they change. Raises AnnealError."""
        return "" if name.startswith(VALUES) else self.inputs.ask(name)

    def cluster(self) -> ClusterFacts:
        """Return the version and API versions of the target's cluster. Raises AnnealError."""
        return self.inputs.cluster()

    def values(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        """Return the keys of a ConfigMap or Secret, each with placeholders in place of values. Raises AnnealError."""
        found = self.inputs.values(kind, name)
        if found is None:
            return None
        return {
            key: stood_in(value, self.number) if (kind, name, key) in self.charts else PLACEHOLDERS[self.number].encode()
            for key, value in found.items()
        }

    def chart(self, reference: ChartReference) -> FetchedChart:
        """Return a chart's archive. Raises AnnealError."""
        return self.inputs.chart(reference)

    def listed(self, name: str) -> bytes:
        """Return nothing: only an instance lists objects, and instances aren't planned here."""
        return self.inputs.listed(name)

    def recorded(self) -> tuple[KnownChart, ...]:
        """Return what a record would hold of charts."""
        return self.inputs.recorded()

    def forget_indexes(self) -> None:
        """Let go of the indexes of repositories."""
        self.inputs.forget_indexes()


def stood_in(value: bytes, number: int) -> bytes:
    """Return a text with placeholders of a set in place of its values: a mapping or list of YAML keeps its keys."""
    word = PLACEHOLDERS[number]
    return (with_placeholders(value, word, second=number > 1) or word).encode()
