"""`directory.jsonnet` of an Argo CD Application -> options of the renderer jsonnet. Pure.

Argo CD evaluates each `*.jsonnet` of the directory with the same variables; a target has one program, which may import the others.
"""

from __future__ import annotations

import json
import re
from typing import Any

from handler.cli.importing.argocd_parameters import BUILD_VALUES, OF_BUILD
from handler.cli.importing.custom_resource import SourceField
from handler.cli.importing.target_draft import TargetDraft

_PROGRAM = re.compile(r"[^*?\[\]{}]+\.jsonnet")
_EACH = (
    "Argo CD evaluates each *.jsonnet of the directory; name one program, which may import the others:"
    " renderer: {type: jsonnet, entrypoint: main.jsonnet}"
)


def put_jsonnet(part: TargetDraft, directory: SourceField) -> None:
    """Take over the program, its variables and its directories of imports."""
    include, jsonnet = directory.at("include"), directory.at("jsonnet")
    if _PROGRAM.fullmatch(include.text()):
        part.take(include, "renderer.entrypoint", include.text(), "treeFile")
    else:
        (include if include.text() else jsonnet).lost(_EACH, halts=True)
    for key, option in (("extVars", "extVars"), ("tlas", "topLevelArguments")):
        if values := _values(jsonnet.at(key), f"renderer.{option}"):
            part.put(f"renderer.{option}", values)
    if jsonnet.at("libs").texts():
        part.take(jsonnet.at("libs"), "renderer.jpath", [each.lstrip("/") for each in jsonnet.at("libs").texts()], "treeFile")
    for key in ("recurse", "exclude", "disableExtensionFilter"):
        directory.at(key).itself("one program is rendered")


def _values(variables: SourceField, place: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in variables.items():
        name, text, code = each.at("name").text(), each.at("value").text(), each.at("code").flag()
        if not name or BUILD_VALUES.search(text):
            each.lost(OF_BUILD if name else "has no name", halts=True)
            continue
        try:
            found[name] = json.loads(text) if code else text
        except ValueError:
            each.lost("is code, of which a configuration takes JSON only; write it into the program", halts=True)
            continue
        for key in ("name", "value", "code"):
            each.at(key).set(place)
    return found
