"""A mapping or list of YAML with placeholders in place of its values, each of its type; keys stay."""

from __future__ import annotations

import json
from typing import Any

import yaml

from handler.config.yaml_nodes import compose
from handler.model.errors import ConfigInvalid

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
