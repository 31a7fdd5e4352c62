"""What a renderer hands to a rollout, as Locutus prints it: a flat map of manifests by key, and the Rollout, as one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from handler.config.secret_mask import Mask
from handler.engine.run.commit_mask import values
from handler.model.field_masking import masked
from handler.model.render import Rendered

_COMPARE = ("success", "failure")
"""What of a Rollout may repeat what a Secret holds: its checks look into Secrets, too."""


def flat(rendered: Rendered, *, show_secrets: bool = False) -> dict[str, Any]:
    """Return the objects by how a Rollout may call them, and the Rollout, None where there is none."""
    bodies = {manifest.identity: manifest.body() for manifest in rendered.manifests}
    objects = {key: _one([bodies[identity] for identity in found]) for key, found in sorted(rendered.keys.items())}
    shown = objects if show_secrets else {key: masked(body) for key, body in objects.items()}
    rollout = rendered.rollout.body() if rendered.rollout else None
    return {"objects": shown, "rollout": rollout if show_secrets else _checks_hidden(rollout, Mask.of(values(rendered.manifests)))}


def _checks_hidden(value: Any, hide: Callable[[str], str], *, within: bool = False) -> Any:
    """Return a Rollout with the Secrets' values hidden in its checks (`within`: this is of one)."""
    if isinstance(value, dict):
        return {key: _checks_hidden(each, hide, within=within or key in _COMPARE) for key, each in value.items()}
    if isinstance(value, list):
        return [_checks_hidden(each, hide, within=within) for each in value]
    return hide(value) if within and isinstance(value, str) else value


def _one(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what stands in one document: an object, or a List."""
    return items[0] if len(items) == 1 else {"apiVersion": "v1", "kind": "List", "items": items}


def line(value: dict[str, Any]) -> str:
    """Write it as one line; ASCII, for a terminal obeys some other letters."""
    return json.dumps(value, separators=(",", ":"))
