"""The label of `compat: kubernixos`: on every object one checksum of all of them, as Kubernixos puts it.

Law: the checksum is of what is declared before it is labelled: the renderer's own where it makes one (Nix), else the set's
own digest, which reveals no secret and is the same for each render of the same inputs. A label that an object declares itself gives way.
"""

from __future__ import annotations

from dataclasses import replace

from handler.model.manifest import Manifest, canonical
from handler.model.names import KUBERNIXOS
from handler.model.render import Rendered
from handler.render.set_digest import set_digest

_LENGTH = 62  # hex digits of the sha256: a label's value has at most 63 characters


def labelled(rendered: Rendered) -> Rendered:
    """Return a render whose objects carry the label; its `checksum` is the label's value."""
    checksum = rendered.checksum or set_digest(rendered)[:_LENGTH]
    return replace(rendered, checksum=checksum, manifests=tuple(_with(manifest, checksum) for manifest in rendered.manifests))


def _with(manifest: Manifest, checksum: str) -> Manifest:
    body = manifest.body()
    metadata = body["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), KUBERNIXOS: checksum}
    return replace(manifest, raw=canonical(body))
