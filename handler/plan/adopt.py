"""Whose an object is: ours, nobody's, another tool's.

An object is ours only with our label *and* our identity annotation naming exactly it; a copied label is not enough.
"""

from __future__ import annotations

from typing import Any

from handler.model.names import IDENTITY, PART_OF, Identity

_FOREIGN_LABELS = {
    "kustomize.toolkit.fluxcd.io/name": "Flux Kustomization",
    "helm.toolkit.fluxcd.io/name": "Flux HelmRelease",
    "argocd.argoproj.io/instance": "Argo CD application",
    "kapp.k14s.io/app": "kapp app",
    "kluctl.io/discriminator": "kluctl discriminator",
    "kubernixos": "Kubernixos checksum",
}
_FOREIGN_ANNOTATIONS = {
    "argocd.argoproj.io/tracking-id": "Argo CD application",
    "meta.helm.sh/release-name": "Helm release",
    "config.k8s.io/owning-inventory": "cli-utils inventory",
}


def is_member(live: dict[str, Any], identity: Identity, target: str, applyset: str) -> bool:
    """Whether an object carries our label and our identity, naming exactly it."""
    metadata = live.get("metadata") or {}
    labelled = (metadata.get("labels") or {}).get(PART_OF) == applyset
    return labelled and (metadata.get("annotations") or {}).get(IDENTITY) == identity.mark(target)


def foreign_owner(live: dict[str, Any], identity: Identity, applyset: str) -> str:
    """Name the tool or owner an object belongs to, or return the empty string."""
    metadata = live.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    marks = [f"{tool} {labels[key]}" for key, tool in _FOREIGN_LABELS.items() if key in labels]
    marks += [f"{tool} {annotations[key]}" for key, tool in _FOREIGN_ANNOTATIONS.items() if key in annotations]
    sibling = _sibling(annotations.get(IDENTITY), identity)
    if labels.get(PART_OF, applyset) != applyset:
        marks.insert(0, f"target {sibling}" if sibling else f"ApplySet {labels[PART_OF]}")
    controllers = [owner for owner in metadata.get("ownerReferences") or [] if owner.get("controller")]
    marks += [f"{owner.get('kind')} {owner.get('name')}" for owner in controllers]
    return marks[0] if marks else ""


def _sibling(mark: Any, identity: Identity) -> str:
    """Return the target that an identity annotation names, if it names exactly this object."""
    target, _, rest = str(mark or "").partition(":")
    return target if rest and identity.mark(target) == mark else ""
