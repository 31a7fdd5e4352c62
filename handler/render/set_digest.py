"""The digest of a rendered set: a record decides by it whether hooks and a Rollout are due, and `compat: kubernixos` labels by it.

Law: it reveals no secret: a few unknown characters could be tried until the digest fits. What a Secret says, and what SOPS had
encrypted, is left out by the field that it stands in, and which version of it was read stands in its place. So is what each render makes
anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from handler.model.hidden_fields import without
from handler.model.manifest import Manifest, canonical, digest_of
from handler.model.names import KUBERNIXOS, Identity
from handler.model.outside_inputs import LISTED_SECRETS, VALUES
from handler.model.render import Rendered


def set_digest(rendered: Rendered, named: Mapping[Identity, Identity] = MappingProxyType({})) -> str:
    """Return the digest of a render and its Rollout. `named`: identities of its objects -> those that `unstable` knows, where others."""
    return digest_of((*_steady(rendered, named), *_versions(rendered)))


def _steady(rendered: Rendered, named: Mapping[Identity, Identity]) -> Iterator[Manifest]:
    """Yield the objects, and the Rollout, without secrets and what each render makes anew: what differs in that alone is the same set."""
    for manifest in (*rendered.manifests, *filter(None, [rendered.rollout])):
        anew = rendered.unstable.get(named.get(manifest.identity, manifest.identity))
        body = without(manifest) if anew or manifest.hidden else {}
        yield replace(manifest, raw=canonical(anew.without(body) if anew else body)) if body else manifest


def _versions(rendered: Rendered) -> Iterator[Manifest]:
    """Yield what stands in place of secrets: ids of encrypted files, versions of objects of the cluster."""
    if (rendered.rollout and rendered.rollout.hidden) or any(each.hidden for each in rendered.manifests):
        read = [each for each in rendered.reads.elsewhere.paths if each[0].startswith((LISTED_SECRETS, VALUES))]
        yield Manifest(Identity("", "", "", ""), "", canonical([*read, *rendered.encrypted]), "")


_LENGTH = 62  # hex digits of the sha256: a label's value has at most 63 characters


def labelled(rendered: Rendered) -> Rendered:
    """Return a render whose objects carry the label of `compat: kubernixos`: one checksum of all of them, which is its `checksum`.

    It is of what is declared before it is labelled: the renderer's own (Nix), else the set's. An object's own such label gives way.
    """
    checksum = rendered.checksum or set_digest(rendered)[:_LENGTH]
    return replace(rendered, checksum=checksum, manifests=tuple(_with(manifest, checksum) for manifest in rendered.manifests))


def _with(manifest: Manifest, checksum: str) -> Manifest:
    body = manifest.body()
    metadata = body["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), KUBERNIXOS: checksum}
    return replace(manifest, raw=canonical(body))
