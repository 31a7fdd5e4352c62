"""Whether an object is a target's member: our label *and* the identity annotation naming exactly it; a copied label is not enough. Pure."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from handler.config.value_formats import FORMS
from handler.model.manifest import Manifest
from handler.model.names import IDENTITY, PART_OF, Identity


def is_member(live: Mapping[str, Any], identity: Identity, target: str, applyset: str) -> bool:
    """Whether an object carries our label and our identity, naming exactly it."""
    metadata = live.get("metadata") or {}
    labelled = (metadata.get("labels") or {}).get(PART_OF) == applyset
    return labelled and (metadata.get("annotations") or {}).get(IDENTITY) == identity.mark(target)


def marked_target(live: Mapping[str, Any], identity: Identity) -> str:
    """Return the target that an object's identity annotation names; empty: it names another object, or no valid target."""
    mark = str(((live.get("metadata") or {}).get("annotations") or {}).get(IDENTITY) or "")
    target = mark.partition(":")[0]
    return target if re.fullmatch(FORMS["name"].pattern, target) and identity.mark(target) == mark else ""


def as_ours(live: Mapping[str, Any], identity: Identity, target: str, applyset: str) -> dict[str, Any]:
    """Return a live object as it will be with our marks: what is taken over is judged by the taker's rules."""
    found = copy.deepcopy(dict(live))
    metadata = found["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), PART_OF: applyset}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), IDENTITY: identity.mark(target)}
    return found


def marks_of(manifest: Manifest) -> Manifest:
    """Return the part of an admitted object that makes it ours, and names it."""
    body = manifest.body()
    metadata = body["metadata"]
    marks = {"labels": {PART_OF: metadata["labels"][PART_OF]}, "annotations": {IDENTITY: metadata["annotations"][IDENTITY]}}
    named = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
    return Manifest.of({"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": named | marks}, manifest.place)
