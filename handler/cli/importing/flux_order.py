"""Flux' `dependsOn` -> that of targets: what comes first is named by the target that stands for it. Pure.

Which resources become targets, and their names, are known once all are converted: until then a draft knows the resources.
"""

from __future__ import annotations

from collections.abc import Sequence

from handler.cli.importing.custom_resource import LOST, SourceField
from handler.cli.importing.references import References
from handler.cli.importing.target_draft import TargetDraft
from handler.config.target_order import circle

_FIELD = ("spec", "dependsOn")
_ABSENT = "isn't in the input; write the name of the target that stands for it into dependsOn"
_READY = "a target is ready once it has what git says and is healthy; what healthy is, healthCheckExprs of that target can say"


def take_order(draft: TargetDraft, spec: SourceField, references: References) -> None:
    """Note of each entry what it becomes, and keep the resource that comes first."""
    source = draft.sources[0]
    for entry in spec.at("dependsOn").items():
        name, namespace = entry.at("name"), entry.at("namespace")
        found = references.look(source.kind, namespace.text() or source.namespace, name.text(), source.group)
        if found is None or found is source:
            entry.lost(_ABSENT if found is None else "is itself")
            continue
        draft.after.append(found)
        for each in (name, namespace):
            each.set("dependsOn", str(found))
        entry.at("readyExpr").lost(_READY)


def put_order(drafts: Sequence[TargetDraft]) -> None:
    """Name in each target those that it depends on; what became no target, or would wait in a circle, is lost."""
    names = {id(draft.sources[0]): str(draft.settings["name"]) for draft in drafts}
    for draft in drafts:
        first = [names[id(each)] for each in draft.after if id(each) in names]
        if first:
            draft.put("dependsOn", list(dict.fromkeys(first)))
        for each in draft.after:
            if id(each) not in names:
                draft.sources[0].note(LOST, _FIELD, f"{each} became no target")
    while found := circle({str(draft.settings["name"]): draft.settings.get("dependsOn", ()) for draft in drafts}):
        draft = next(each for each in drafts if each.settings["name"] == found[0])
        draft.settings["dependsOn"].remove(found[1 % len(found)])  # what else comes first, comes first still
        if not draft.settings["dependsOn"]:
            del draft.settings["dependsOn"]
        draft.sources[0].note(LOST, _FIELD, f"these wait for each other in a circle: {', '.join(found)}")
