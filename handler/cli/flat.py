"""What a renderer hands to a rollout, as Locutus prints it: a flat map of manifests by key, and the Rollout, as one line of JSON."""

from __future__ import annotations

import json
from typing import Any

from handler.model.masking import masked
from handler.model.render import Rendered


def flat(rendered: Rendered, *, show_secrets: bool = False) -> dict[str, Any]:
    """Return the objects by how a Rollout may call them, and the Rollout, None where there is none."""
    bodies = {manifest.identity: manifest.body() for manifest in rendered.manifests}
    objects = {key: _one([bodies[identity] for identity in found]) for key, found in sorted(rendered.keys.items())}
    shown = objects if show_secrets else {key: masked(body) for key, body in objects.items()}
    return {"objects": shown, "rollout": rendered.rollout.body() if rendered.rollout else None}


def _one(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what stands in one document: an object, or a List."""
    return items[0] if len(items) == 1 else {"apiVersion": "v1", "kind": "List", "items": items}


def line(value: dict[str, Any]) -> str:
    """Write it as one line; ASCII, for a terminal obeys some other letters."""
    return json.dumps(value, separators=(",", ":"))
