"""Whether an object is ours: only with our label *and* our identity annotation naming exactly it; a copied label is not enough."""

from __future__ import annotations

from typing import Any

from handler.model.names import IDENTITY, PART_OF, Identity


def is_member(live: dict[str, Any], identity: Identity, target: str, applyset: str) -> bool:
    """Whether an object carries our label and our identity, naming exactly it."""
    metadata = live.get("metadata") or {}
    labelled = (metadata.get("labels") or {}).get(PART_OF) == applyset
    return labelled and (metadata.get("annotations") or {}).get(IDENTITY) == identity.mark(target)
