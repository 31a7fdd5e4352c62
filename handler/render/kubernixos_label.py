"""The label of `compat: kubernixos`: on every object one checksum of all of them, as Kubernixos puts it.

Law: the checksum is of what is declared before it is labelled: the renderer's own where it makes one (Nix), else of the canonical JSON
without what each render makes anew. A label that an object declares itself gives way, as there.
"""

from __future__ import annotations

from dataclasses import replace

from handler.model.manifest import Manifest, canonical, digest_of
from handler.model.names import KUBERNIXOS
from handler.model.render import Rendered

_LENGTH = 62  # hex digits of the sha256: a label's value has at most 63 characters


def labelled(rendered: Rendered) -> Rendered:
    """Return a render whose objects carry the label; its `checksum` is the label's value."""
    checksum = rendered.checksum or checksum_of(rendered)
    return replace(rendered, checksum=checksum, manifests=tuple(_with(manifest, checksum) for manifest in rendered.manifests))


def checksum_of(rendered: Rendered) -> str:
    """Return the checksum of a rendered set: the same for the same objects, whatever the order of their files."""
    unstable = rendered.unstable
    steady = (
        replace(each, raw=canonical(unstable[each.identity].without(each.body()))) if each.identity in unstable else each
        for each in rendered.manifests
    )
    return digest_of(steady)[:_LENGTH]


def _with(manifest: Manifest, checksum: str) -> Manifest:
    body = manifest.body()
    metadata = body["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), KUBERNIXOS: checksum}
    return replace(manifest, raw=canonical(body))
