"""How objects are named: one identity, one way to write it. `Deployment/shop/api` in every log, error and page."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from handler.model.advice import Advice, advice

PART_OF = "applyset.kubernetes.io/part-of"  # label on a member; its value is the ApplySet id (KEP-3659, as kubectl's code spells it)
IDENTITY = "anneal.dev/identity"  # annotation on a member naming exactly that object: a copied label can't fake it
MANAGED_BY = {"app.kubernetes.io/managed-by": "anneal"}  # label of our own records and Leases, of no member
KUBERNIXOS = "kubernixos"  # label of what Kubernixos deploys: a checksum of all that one deployment declares
HEARTBEAT = "heartbeat"  # before the dot in the name of the servers' Lease, where an instance's has its template
STATE_NAMESPACE = "anneal-system"  # the default namespace of records and locks
DEFAULT_INSTALLATION = "default"  # the installation where none is named: several configurations of one cluster may have it
FIELD_MANAGER = "anneal"  # our field manager, constant for life: changing it would orphan every field we own


@dataclass(frozen=True, slots=True, order=True)
class GroupKind:
    """A kind and its API group; the core group is empty."""

    group: str
    kind: str

    def __str__(self) -> str:
        """`Deployment.apps`, `ConfigMap`: KEP-3659's spelling."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @classmethod
    def parse(cls, text: str) -> GroupKind:
        """Read `Deployment.apps` or `ConfigMap`."""
        kind, _, group = text.partition(".")
        return cls(group, kind)


LASTING = frozenset(
    {
        GroupKind("", "Namespace"),
        GroupKind("", "PersistentVolume"),
        GroupKind("", "PersistentVolumeClaim"),
        GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"),
        GroupKind("apps", "StatefulSet"),
    }
)
"""Deleting one of these loses data that git can't restore: no message advises it."""
ACTS = frozenset({GroupKind("batch", "Job"), GroupKind("", "Pod"), GroupKind("argoproj.io", "Workflow")})
"""These run to an end, and run again only as another object."""


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """What an object is, whatever version it is written in. `namespace` is empty for cluster-scoped ones."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """`Deployment/shop/api`, `Namespace/shop`."""
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)

    @property
    def group_kind(self) -> GroupKind:
        """Its kind."""
        return GroupKind(self.group, self.kind)

    def mark(self, target: str) -> str:
        """The value of the identity annotation: `<target>:<group>/<kind>:<ns>/<name>`."""
        return f"{target}:{self.group}/{self.kind}:{self.namespace}/{self.name}"


def identity_of(body: dict[str, Any]) -> Identity:
    """Read an object's identity from its body; missing parts are empty."""
    metadata = body.get("metadata") or {}
    group = group_of(str(body.get("apiVersion") or ""))
    return Identity(group, str(body.get("kind") or ""), str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))


def uid_and_version(live: dict[str, Any]) -> tuple[str, str]:
    """Return a live object's uid and resourceVersion: the preconditions of a write."""
    return str(live["metadata"]["uid"]), str(live["metadata"]["resourceVersion"])


def kubectl(verb: str, identity: Identity, *more: str) -> str:
    """Return the kubectl command on exactly one object, quoted for a shell; `kind.group/name` is neither another group's nor an option."""
    where = ("-n", identity.namespace) if identity.namespace else ()
    return advice("kubectl {text} {}{words}", Advice(verb), f"{identity.group_kind}/{identity.name}", [*where, *more])


def group_of(api_version: str) -> str:
    """`apps/v1` -> `apps`, `v1` -> the empty core group."""
    return api_version.rpartition("/")[0]


@lru_cache(4096)  # asked for by each look at each record
def applyset_id(name: str, namespace: str, kind: str = "ConfigMap", group: str = "") -> str:
    """Return the ApplySet id of a parent (KEP-3659): base64url(sha256(name.namespace.kind.group)) between prefix and suffix."""
    digest = hashlib.sha256(f"{name}.{namespace}.{kind}.{group}".encode()).digest()
    return f"applyset-{base64.urlsafe_b64encode(digest).decode().rstrip('=')}-v1"


def state_name(target: str) -> str:
    """Return the name of a target's ConfigMap, and of its Lease."""
    return f"anneal-{target}"


def run_id(target: str) -> str:
    """Make the id of a new run. It names its target, so that the id alone finds the record."""
    return f"{target}.{secrets.token_hex(6)}"


def target_of(run: str) -> str:
    """Return the target that a run's id names; what follows the last dot is its own."""
    return run.rpartition(".")[0]


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """One row of discovery. `plural` is the path segment, `verbs` what the server offers; `status`: it has that subresource."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()
    status: bool = field(default=False, compare=False)

    @property
    def group_kind(self) -> GroupKind:
        """Its kind, whatever the version."""
        return GroupKind(self.group, self.kind)

    @property
    def api_version(self) -> str:
        """`apps/v1`, `v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the URL path of the collection (all namespaces when `namespace` is empty) or of one object."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{scope}/{self.plural}" + (f"/{name}" if name else "")
