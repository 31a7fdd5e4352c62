"""The model's values as JSON and YAML: dataclasses become mappings with Kubernetes' camelCase keys. Pure."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from handler.model.names import GroupKind, Identity


def plain(value: Any) -> Any:
    """Return JSON of a value: identities and kinds as people write them, sets sorted, bytes left out."""
    if isinstance(value, Identity | GroupKind):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {_camel(item.name): plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=json.dumps)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, bytes) else str(value) if isinstance(value, str) else value


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


class _Dumper(yaml.SafeDumper):
    """Writes YAML that Go's decoders read as what it was: a text that could be taken for anything else is quoted."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - PyYAML's signature
        """Indent list items below their key, as Kubernetes' documentation does."""
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        """Write every value out."""
        return True


_SAFE = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*(?: [A-Za-z][A-Za-z0-9_./-]*)*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    tag = "tag:yaml.org,2002:str"
    if "\n" in text:
        return dumper.represent_scalar(tag, text, style="|")
    safe = _SAFE.fullmatch(text) and text.lower() not in _WORDS
    return dumper.represent_scalar(tag, text, style=None if safe else '"')


_Dumper.add_representer(str, _text)


def as_yaml(document: Any) -> str:
    """Return one YAML document, its keys in their own order."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 20)
