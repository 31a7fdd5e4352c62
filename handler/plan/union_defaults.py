"""What the server once filled in for a choice that git now makes otherwise: it goes, for beside what git chooses it is refused. Pure.

    spec.strategy.rollingUpdate           git declares type: Recreate
    spec.updateStrategy.rollingUpdate     git declares type: OnDelete of a StatefulSet
    …volumes[name=cache].emptyDir         git declares a source for a volume that had none

Law: only what no other manager owns. An apply leaves what the server filled in as it is, so that git alone can't let go of it; what a
client wrote is its own. A null in git is no choice. Other unions of the built-in kinds the server clears itself, or needn't.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from handler.model.manifest import at, items_at
from handler.model.names import FIELD_MANAGER
from handler.plan.managed_fields import Fields, Step, at_path, owners, union

_VERSIONS = ("apps/v1", "batch/v1")
_STRATEGIES = {"Deployment": "strategy", "StatefulSet": "updateStrategy"}
_POD_SPECS = (("spec", "template", "spec"), ("spec", "jobTemplate", "spec", "template", "spec"))
_ROLLING, _EMPTY = "rollingUpdate", "emptyDir"


def superseded(live: dict[str, Any], desired: dict[str, Any]) -> Fields:
    """Return the fields of a live object that no other manager owns and that what git declares excludes."""
    found: Fields = {}
    for path in _excluded(desired) if live.get("apiVersion") in _VERSIONS else ():
        value = at_path(live, path)
        if value is not None and all(manager == FIELD_MANAGER for manager, _ in owners(live, path)):
            found = union(found, _set(path, value))
    return found


def _excluded(desired: Mapping[str, Any]) -> Iterator[tuple[Step, ...]]:
    name = _STRATEGIES.get(str(desired.get("kind")), "")
    strategy = at(desired, "spec", name)
    if isinstance(strategy, dict) and strategy.get("type") not in (None, "RollingUpdate") and strategy.get(_ROLLING) is None:
        yield "spec", name, _ROLLING
    for above in _POD_SPECS:
        for volume in items_at(desired, *above, "volumes"):
            chosen = {key for key, value in volume.items() if value is not None} - {"name"} if isinstance(volume, dict) else set()
            if chosen and _EMPTY not in chosen:
                yield *above, "volumes", (("name", volume.get("name")),), _EMPTY


def _set(path: tuple[Step, ...], value: Any) -> Fields:
    """Return what a set of fields has of a map at a path."""
    made: Fields = {".": {}, **{f"f:{name}": {} for name in value}} if value else {}
    for step in reversed(path):
        made = {f"k:{json.dumps(dict(step), separators=(',', ':'))}" if isinstance(step, tuple) else f"f:{step}": made}
    return made
