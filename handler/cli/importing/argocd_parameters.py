"""Helm parameters of an Argo CD Application, and paths of jq -> single values and JSON pointers. Pure."""

from __future__ import annotations

import re
from typing import Any

from handler.cli.importing.custom_resource import SourceField

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
BUILD_VALUES = re.compile(r"\$\{?(?:ARGOCD_|KUBE_VERSION|KUBE_API_VERSIONS)")
"""Argo CD's build environment: it writes such a variable into a source before it renders that."""
OF_BUILD = "is made of Argo CD's build environment; write the value"
_STEP = re.compile(
    r"""\.?(?:(?P<name>(?<=\.)[A-Za-z_][A-Za-z0-9_]*)|\["(?P<key>[^"\\]+)"\]|(?<=\.)"(?P<quoted>[^"\\]+)"|\[(?P<index>\d*)\])"""
)


def helm_sets(parameters: SourceField) -> dict[str, Any]:
    """Return parameters as `renderer.set`: values as Helm's --set reads them, those with forceString as they are."""
    found: dict[str, Any] = {}
    for each in parameters.items():
        name, value, forced = each.at("name").text(), each.at("value"), each.at("forceString")
        if not name or BUILD_VALUES.search(value.text()):
            each.lost(OF_BUILD if name else "has no name", halts=True)
            continue
        found[name] = value.text() if forced.flag() else _read(value.text())
        for part in (each.at("name"), value, forced):
            part.set("renderer.set")
    return found


def _read(text: str) -> Any:
    """Return a value as `helm template --set` types it."""
    if text.startswith("{") and text.endswith("}"):
        return [_read(part) for part in text[1:-1].split(",")] if text != "{}" else []
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _WHOLE.fullmatch(text) else text.replace("\\,", ",")


def pointer_of(expression: str) -> str:
    """Return the JSON pointer of a path of jq (`.spec.containers[].image`); empty: it is more than a path."""
    steps: list[str] = []
    at = 0
    text = expression.strip()
    while at < len(text):
        found = _STEP.match(text, at)
        if not found or found.end() == at:
            return ""
        name = found["name"] or found["key"] or found["quoted"]
        steps.append(name.replace("~", "~0").replace("/", "~1") if name else found["index"] or "*")
        at = found.end()
    return "".join(f"/{step}" for step in steps)
