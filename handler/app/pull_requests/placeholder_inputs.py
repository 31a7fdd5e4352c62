"""What a render for a pull request takes from elsewhere than git: charts and kinds as a run does, and no value of the cluster.

Law: a value of a ConfigMap or Secret never reaches a render that others see. Of YAML the keys stay, for charts look at them; what can't be
read so is one placeholder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from handler.config.yaml_nodes import compose
from handler.model.errors import AnnealError
from handler.model.outside_inputs import VALUES, ChartReference, ClusterFacts, FetchedChart, KnownChart, OutsideInputs
from handler.render.variables.variables import PLACEHOLDERS

_NUMBERS = ("", "0", "17")
_TYPED = {
    "tag:yaml.org,2002:int": _NUMBERS,
    "tag:yaml.org,2002:float": ("", "0.5", "1.25"),
    "tag:yaml.org,2002:bool": ("", "false", "true"),
}
_NULL = "tag:yaml.org,2002:null"
_DEEPEST = 50


@dataclass(slots=True)
class PlaceholderInputs:
    """`handler.model.outside_inputs.OutsideInputs`. `number`: which set of placeholders (`RenderRequest`)."""

    inputs: OutsideInputs
    number: int

    def ask(self, name: str) -> str:
        """Return what an outside read is now; of values nothing: their version would tell that they change. Raises AnnealError."""
        return "" if name.startswith(VALUES) else self.inputs.ask(name)

    def cluster(self) -> ClusterFacts:
        """Return the version and API versions of the target's cluster. Raises AnnealError."""
        return self.inputs.cluster()

    def values(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        """Return the keys of a ConfigMap or Secret, each with placeholders in place of values. Raises AnnealError."""
        found = self.inputs.values(kind, name)
        return found if found is None else {key: stood_in(value, self.number) for key, value in found.items()}

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
    try:
        node = compose(value.decode(), "values")
        made = _placed(node, number) if isinstance(node, yaml.MappingNode | yaml.SequenceNode) else PLACEHOLDERS[number]
    except (AnnealError, UnicodeDecodeError, ValueError):
        made = PLACEHOLDERS[number]
    return (made if isinstance(made, str) else json.dumps(made)).encode()


def _placed(node: yaml.Node, number: int, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _placed(value, number, depth + 1) for key, value in node.value if isinstance(key, yaml.ScalarNode)}
    if isinstance(node, yaml.SequenceNode):
        return [_placed(item, number, depth + 1) for item in node.value]
    if node.tag == _NULL:
        return None
    typed = _TYPED.get(node.tag)
    return json.loads(typed[number]) if typed else PLACEHOLDERS[number]
