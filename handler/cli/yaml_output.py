"""Values as YAML that every decoder reads as what they were. Pure."""

from __future__ import annotations

import re
from typing import Any

import yaml


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
