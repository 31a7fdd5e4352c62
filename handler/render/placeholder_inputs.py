"""What a render takes from elsewhere than git where placeholders stand for values of the cluster: charts and kinds as a run does.

    PlaceholderInputs   for a pull request: no value of a ConfigMap or Secret reaches a render that others see
    SecretInputs        for a run: which Secrets a renderer was given; and for the renders beside it, all but what these say

Law: of a chart's values the keys stay, for templates look at them; anything else is one placeholder, for a text may look like a mapping.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from handler.config.renderer_settings import RendererSettings
from handler.config.yaml_nodes import compose
from handler.model.errors import ConfigInvalid
from handler.model.outside_inputs import VALUES, ChartReference, ClusterFacts, FetchedChart, KnownChart, OutsideInputs
from handler.render.jsonnet.listed_secrets import secrets_of, without_values
from handler.render.variables.variables import PLACEHOLDERS

ChartValues = Collection[tuple[str, str, str]]
"""What holds values of charts: kind, name and key of each."""


@dataclass(slots=True)
class PlaceholderInputs:
    """`handler.model.outside_inputs.OutsideInputs`. `number`: which set of placeholders (`RenderRequest`)."""

    inputs: OutsideInputs
    number: int
    charts: ChartValues = ()

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
        """Return what a trigger lists; instances aren't planned for pull requests."""
        return self.inputs.listed(name)

    def recorded(self) -> tuple[KnownChart, ...]:
        """Return what a record would hold of charts."""
        return self.inputs.recorded()

    def forget_indexes(self) -> None:
        """Let go of the indexes of repositories."""
        self.inputs.forget_indexes()


@dataclass(slots=True)
class SecretInputs(PlaceholderInputs):
    """The same for Secrets alone. `number`: 0: what they say themselves. `given`: which of them were, as messages name them."""

    given: tuple[str, ...] = ()

    def ask(self, name: str) -> str:
        """Return what an outside read is now: what a render chooses by that stays the same. Raises AnnealError."""
        return self.inputs.ask(name)

    def values(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        """Return the data of a ConfigMap or Secret. Raises AnnealError."""
        found = self.inputs.values(kind, name)
        if kind == "Secret" and found is not None:
            self.given = (*self.given, f"{kind} {name}")
        return PlaceholderInputs.values(self, kind, name) if kind == "Secret" and self.number else found

    def listed(self, name: str) -> bytes:
        """Return the objects that a trigger lists, as JSON. Raises AnnealError."""
        found = self.inputs.listed(name)
        if not secrets_of(documents := json.loads(found)):
            return found
        self.given = (*self.given, f"the Secrets of {name}")
        return json.dumps(without_values(documents, PLACEHOLDERS[self.number])).encode() if self.number else found


def charts_of(settings: object) -> ChartValues:
    """Return what holds whole values of charts by a renderer's settings."""
    sources = settings.values_from if isinstance(settings, RendererSettings) else ()
    return frozenset((each.kind, each.name, each.key) for each in sources if not each.target_path)


def stood_in(value: bytes, number: int) -> bytes:
    """Return a text with placeholders of a set in place of its values: a mapping or list of YAML keeps its keys."""
    word = PLACEHOLDERS[number]
    return (with_placeholders(value, word, second=number > 1) or word).encode()


_CORE = "tag:yaml.org,2002:"
_MERGE = f"{_CORE}merge"
_TYPED: dict[str, tuple[Any, Any]] = {f"{_CORE}int": (0, 17), f"{_CORE}float": (0.5, 1.72), f"{_CORE}bool": (False, True)}


def with_placeholders(value: bytes, word: str, *, second: bool) -> str:
    """Return JSON with `word` in place of texts; empty: it is no mapping or list that can be read (`yaml_nodes.compose`'s bounds).

    `second`: numbers and truth values are of the second set.
    """
    try:
        node = compose(value.decode(), "values")
    except (ConfigInvalid, UnicodeDecodeError):
        return ""
    return json.dumps(_placed(node, word, second=second)) if isinstance(node, yaml.MappingNode | yaml.SequenceNode) else ""


def _placed(node: yaml.Node, word: str, *, second: bool) -> Any:
    if isinstance(node, yaml.MappingNode):
        pairs = [(key, _placed(value, word, second=second)) for key, value in node.value if isinstance(key, yaml.ScalarNode)]
        own = {str(key.value): value for key, value in pairs if key.tag != _MERGE}
        return _inherited([value for key, value in pairs if key.tag == _MERGE]) | own
    if isinstance(node, yaml.SequenceNode):
        return [_placed(item, word, second=second) for item in node.value]
    if node.tag == f"{_CORE}null":
        return None
    typed = _TYPED.get(node.tag)
    return typed[second] if typed else word


def _inherited(merged: list[Any]) -> dict[str, Any]:
    """Return what mappings bring that a mapping names under `<<`; of two the first counts (yaml.org/type/merge.html)."""
    found: dict[str, Any] = {}
    for each in merged:
        for one in reversed(each) if isinstance(each, list) else (each,):
            found |= one if isinstance(one, dict) else {}
    return found
