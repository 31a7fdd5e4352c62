"""Annotations on live objects: set as people set them, and what kubectl then reads."""

from __future__ import annotations

from tests.e2e.documents import Document
from tests.e2e.one_target import Shop

FLUX = "kustomize.toolkit.fluxcd.io"


def seen(shop: Shop, document: Document) -> tuple[str, str, object]:
    """Return uid, resourceVersion and data of what lives, as kubectl reads it."""
    live = shop.live(document)
    assert live, f"{document['metadata']['name']} is gone"
    return live["metadata"]["uid"], live["metadata"]["resourceVersion"], live.get("data")


def annotate(shop: Shop, kind: str, name: str, *marks: str) -> None:
    shop.kubectl.run("annotate", "--overwrite", kind, name, "-n", shop.name, *marks)
