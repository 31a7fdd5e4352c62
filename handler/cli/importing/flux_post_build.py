"""`postBuild` of Flux' Kustomization -> that of a target. Pure.

Flux reads the objects of `substituteFrom` in the Kustomization's own namespace, a target in its `namespace`.
"""

from __future__ import annotations

from handler.cli.importing.custom_resource import SourceField
from handler.cli.importing.target_draft import TargetDraft, complaint
from handler.config.setting_rules import variables_are_texts
from handler.config.settings_shape import Json
from handler.model.advice import advice
from handler.model.manifest import canonical

_SETTING = "postBuild"


def put_post_build(draft: TargetDraft, found: SourceField) -> None:
    """Write a target's variables; a strategy that isn't written is Flux' default, which leaves out what nothing names."""
    if not found.mapping():
        found.itself("is empty")
        return
    values, strategy = found.at("substitute"), found.at("substituteStrategy")
    faults = list(variables_are_texts(Json(canonical(values.mapping()).decode())))
    if faults:
        values.lost(f"{faults[0].message}; {faults[0].fix}", halts=True)
    elif values.mapping():
        draft.take(values, f"{_SETTING}.substitute", values.mapping())
    rows = [row for entry in found.at("substituteFrom").items() if (row := _source(draft, entry))]
    if rows:
        draft.put(f"{_SETTING}.substituteFrom", rows)
    if strategy.text() not in ("", "WithVariables", "Always"):
        strategy.lost("isn't one of WithVariables, Always", halts=True)
    elif _SETTING in draft.settings or strategy.text() == "Always":
        draft.put(f"{_SETTING}.substituteStrategy", strategy.text() or "WithVariables")
    strategy.set(f"{_SETTING}.substituteStrategy", "Strict refuses a name that isn't known")


def _source(draft: TargetDraft, entry: SourceField) -> dict[str, object]:
    namespace, kind, name = draft.sources[0].namespace, entry.at("kind").text(), entry.at("name").text()
    wrong = complaint("objectName", name) if kind in ("ConfigMap", "Secret") and name else "needs a kind, ConfigMap or Secret, and a name"
    if wrong:
        entry.lost(wrong, halts=True)
        return {}
    ours = draft.settings.setdefault("namespace", namespace)
    if ours != namespace:
        way = advice("copy it there: kubectl get {} -n {} -o yaml prints it", f"{kind}/{name}", namespace)
        entry.lost(f"is in namespace {namespace}, and variables are read in the target's, {ours}; {way}", halts=True)
    for key in ("kind", "name", "optional"):
        entry.at(key).set(f"{_SETTING}.substituteFrom")
    return {"kind": kind, "name": name, **({"optional": True} if entry.at("optional").flag() else {})}
