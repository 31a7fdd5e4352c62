"""Annotations on live objects: set as people set them, and what kubectl then reads."""

from __future__ import annotations

import json

from tests.e2e.documents import Document
from tests.e2e.one_target import Shop

FLUX = "kustomize.toolkit.fluxcd.io"


def seen(shop: Shop, document: Document) -> tuple[str, str, object]:
    """Return uid, resourceVersion and data of what lives, as kubectl reads it."""
    live = shop.live(document)
    assert live, f"{document['metadata']['name']} is gone"
    return live["metadata"]["uid"], live["metadata"]["resourceVersion"], live.get("data")


def by_hand(shop: Shop, *documents: Document) -> None:
    """Create objects as an operator of the cluster does, so that Anneal doesn't know them."""
    shop.kubectl.run("create", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))


def annotate(shop: Shop, kind: str, name: str, *marks: str) -> None:
    shop.kubectl.run("annotate", "--overwrite", kind, name, "-n", shop.name, *marks)
