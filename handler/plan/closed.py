"""Objects of which no word of the cluster is repeated: they hold what isn't shown, which a controller, or the server, may quote. Pure.

    Secret/shop/db        a Secret
    Deployment/shop/api   a field with what isn't in git, or what each render makes anew
    Login/shop/ann        a field whose name says that it holds a secret: `spec.token`
    Deployment/shop/web   `$(NAME)` beside a variable from a Secret: the kubelet writes it out in what it says of a command
    Release/shop/db       a custom resource that names a Secret, which its controller reads

Law: by place, never by a value. What only a pod template's annotation holds (a checksum, as a rule) closes no object: nothing repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from handler.model.field_masking import may_be_sensitive, sensitive
from handler.model.manifest import Manifest
from handler.model.names import GroupKind, Identity
from handler.model.pod_secrets import mounted_secrets, names_secrets
from handler.model.render import UnstableFields
from handler.plan.admission import CRD

_SECRET = GroupKind("", "Secret")
_EXPANDED = b"$("
_OF_PODS = re.compile(r".*/template/metadata/annotations(?:/[^/]*)?")


def closed(declared: Iterable[Manifest], unstable: Mapping[Identity, UnstableFields]) -> frozenset[Identity]:
    """Return those of a declared set. `unstable`: see `Rendered`."""
    return frozenset(each.identity for each in declared if _is_closed(each, unstable.get(each.identity)))


def _is_closed(manifest: Manifest, unstable: UnstableFields | None) -> bool:
    hidden = (*manifest.hidden, *(unstable.paths if unstable else ()))
    if manifest.identity.group_kind == _SECRET or any(not _OF_PODS.fullmatch(each) for each in hidden):
        return True
    body = manifest.body() if may_be_sensitive(manifest.raw) else {}
    return holds_secrets(manifest.identity.group_kind, body) or _is_given_secrets(manifest, body)


def _is_given_secrets(manifest: Manifest, body: Mapping[str, Any]) -> bool:
    """Whether what speaks of an object has read a Secret for it, and may quote that."""
    if _EXPANDED in manifest.raw and mounted_secrets(body):
        return True
    group = manifest.identity.group
    return "." in group and not group.endswith(".k8s.io") and names_secrets(body)


def holds_secrets(kind: GroupKind, body: Mapping[str, Any]) -> bool:
    """Whether an object is a Secret, or has a field whose name says that it holds a secret; a definition's schema only names such."""
    return kind == _SECRET or (kind != CRD and any(not isinstance(value, bool) for _, value in sensitive(kind, body)))
