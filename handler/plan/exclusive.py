"""Exclusive namespaces: which live object without our marks is an orphan there, what is left alone, and until when it stays. Pure.

    never asked for    kinds of the system and of metrics, what can't be listed and deleted, what has an owner
    left alone         members of any ApplySet, what another tool or a controller has made, tokens, releases of Helm, what holds data
    kept               what others need: what something that stays names (`references`), what owns a member or data; what an operator
                       takes apart by a finalizer
    an orphan          everything else that git doesn't declare: shown with the time of its deletion, deleted after that

Law: only metadata is known of an object, so each rule reads no more. What is in doubt is left alone. A time that was shown never comes
earlier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from handler.config.settings import Prune
from handler.model.api_groups import is_kubernetes_own
from handler.model.names import PART_OF, GroupKind, Identity, Resource, identity_of
from handler.model.numbers import many
from handler.model.plan import Action, Change
from handler.plan.inventory import marked_target
from handler.plan.ownership import foreign_owner
from handler.plan.prune import ALLOW
from handler.plan.system_objects import ACCOUNTS_OF_OPENSHIFT, is_silent, is_system_kind, is_system_object

KEEP = "anneal.dev/prune=disabled"  # the annotation by which a person keeps an object, as kubectl writes it
SYSTEM = ""  # what is left alone as the system's own, or with its owner: no word is said of it
_PARENT = "applyset.kubernetes.io/id"
_ENDPOINTS = frozenset({GroupKind("", "Endpoints"), GroupKind("discovery.k8s.io", "EndpointSlice")})
_NAMING = frozenset(
    {
        GroupKind("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        GroupKind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        GroupKind("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        GroupKind("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        GroupKind("apiregistration.k8s.io", "APIService"),
        GroupKind("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        GroupKind("networking.k8s.io", "IngressClass"),
        GroupKind("storage.k8s.io", "StorageClass"),
        GroupKind("", "PersistentVolume"),
    }
)
"""Kinds that no namespace has and whose objects name something in one; custom resources do, too."""
_VIEWS = frozenset({"image.openshift.io", "project.openshift.io", "user.openshift.io"})  # many, or others' objects; they name nothing
_MIRRORED = frozenset({"projectcalico.org", "crd.projectcalico.org"})
"""Both serve one object, under two uids, each with labels of its own: what git declares of one is undeclared in the other."""
DATA = {
    GroupKind("", "PersistentVolumeClaim"): "PersistentVolumeClaims, which hold data",
    GroupKind("snapshot.storage.k8s.io", "VolumeSnapshot"): "VolumeSnapshots, which hold data",
    GroupKind("groupsnapshot.storage.k8s.io", "VolumeGroupSnapshot"): "VolumeGroupSnapshots, which hold data",
}
_WORKLOADS = ("apps", "batch")
_OLD_WORKLOADS = (GroupKind("", "Pod"), GroupKind("", "ReplicationController"))
_SECRET = GroupKind("", "Secret")
_TOKENS, _HELM, _LOCK = "tokens of ServiceAccounts", "records of Helm releases", "locks of leader elections"
_MARKS: tuple[tuple[str, str], ...] = (
    ("kubernetes.io/service-account.name", _TOKENS),  # the API server demands it of a Secret with a token
    ("openshift.io/internal-registry-auth-token.*", _TOKENS),
    ("openshift.io/token-secret.name", _TOKENS),
    ("control-plane.alpha.kubernetes.io/leader", _LOCK),
    ("cert-manager.io/certificate-name", "certificates of cert-manager"),
    ("cert-manager.io/allow-direct-injection", "certificates of cert-manager"),
    ("istio/multiCluster", "what Istio reads other clusters with"),
    ("listener.cattle.io/*", "certificates of Rancher"),
    ("acme.cert-manager.io/*", "certificates of cert-manager"),
    ("controller.cert-manager.io/fao", "certificates of cert-manager"),
    ("trust.cert-manager.io/bundle", "bundles of trust-manager"),
    ("generate.kyverno.io/*", "what Kyverno generates"),
    ("policies.kyverno.io/*", "what Kyverno generates"),
    ("hnc.x-k8s.io/inherited-from", "what the hierarchical namespace controller copies"),
    ("reflector.v1.k8s.emberstack.com/reflects", "what Reflector copies"),
    ("replicator.v1.mittwald.de/replicated-*", "what kubernetes-replicator copies"),
    ("kubed.appscode.com/origin*", "what the config syncer copies"),
    ("authz.cluster.cattle.io/*", "what Rancher binds"),
    ("crossplane.io/*", "what Crossplane manages"),
    ("reconcile.external-secrets.io/*", "what External Secrets writes"),
    ("kapp.k14s.io/is-app*", "records of kapp"),
    ("cli-utils.sigs.k8s.io/inventory-id", "inventories of cli-utils"),
    ("argocd.argoproj.io/secret-type", "settings of Argo CD"),
    ("sealedsecrets.bitnami.com/sealed-secrets-key", "keys of Sealed Secrets"),
    ("olm.copiedFrom", "what the Operator Lifecycle Manager copies"),
)
"""Labels and annotations of what controllers write without an owner: deleted, it would come again, or be missed. Patterns, with a noun."""


_RBAC = "rbac.authorization.k8s.io"
ROLE, ROLE_BINDING, ACCOUNT = GroupKind(_RBAC, "Role"), GroupKind(_RBAC, "RoleBinding"), GroupKind("", "ServiceAccount")
RIGHTS = frozenset({ROLE, ROLE_BINDING, ACCOUNT})
_ACCOUNTS = "system:serviceaccount:"  # how the user names of ServiceAccounts begin
_PRINTED = "anneal-"  # how the names of what `anneal rbac` prints begin


def rights_of(user: str, groups: Collection[str], bindings: Iterable[Mapping[str, Any]]) -> frozenset[Identity]:
    """Return a user's ServiceAccount, and of a namespace's RoleBindings those that name it, with their Roles."""
    found = set()
    if user.startswith(_ACCOUNTS):
        found.add(Identity("", "ServiceAccount", *user.removeprefix(_ACCOUNTS).split(":", 1)))
    for binding in bindings:
        identity, role = identity_of(dict(binding)), binding.get("roleRef") or {}
        if any(_is_named(user, groups, subject) for subject in binding.get("subjects") or ()):
            found |= {identity, Identity(_RBAC, str(role.get("kind")), identity.namespace, str(role.get("name")))}
    return frozenset(found)


def _is_named(user: str, groups: Collection[str], subject: Mapping[str, Any]) -> bool:
    kind, name = subject.get("kind"), str(subject.get("name"))
    if kind == "ServiceAccount":
        return user == f"{_ACCOUNTS}{subject.get('namespace')}:{name}"
    return name == user if kind == "User" else name in groups


def own_rights(identity: Identity, known: Collection[Identity] | None) -> str | None:
    """Return a noun for what a target's own account and rights are left alone as; None: it is none of them.

    `known`: see `rights_of`; None: who this is couldn't be asked, and no account, role and binding goes on doubt.
    """
    if identity.group_kind not in RIGHTS:
        return None
    if known is None:
        return "accounts, roles and bindings, as its own aren't known"
    printed = identity.group_kind != ACCOUNT and identity.name.startswith(_PRINTED)
    return "its own account and rights" if printed or identity in known else None


def is_looked_for(resource: Resource) -> bool:
    """Whether objects of a kind can be orphans of a namespace. `resource`: with its verbs."""
    served = resource.namespaced and {"list", "delete"} <= resource.verbs
    return served and resource.group_kind not in _ENDPOINTS and not is_system_kind(resource.group_kind)


def is_read_for_names(resource: Resource) -> bool:
    """Whether objects of a kind, which no namespace has, are read for what they name in one: webhooks, issuers, stores of secrets."""
    served = not resource.namespaced and "list" in resource.verbs and not is_silent(resource.group)
    return served and resource.group not in _VIEWS and (resource.group_kind in _NAMING or _is_operators(resource.group))


def _is_operators(group: str) -> bool:
    """Whether the kinds of an API group aren't Kubernetes' own, also where it is called as one of those: an operator works for them."""
    return not is_kubernetes_own(group)


def may_own_data(kind: GroupKind) -> bool:
    """Whether deleting an object of a kind may delete what holds data: controllers make it own that."""
    return kind.group in _WORKLOADS or kind in _OLD_WORKLOADS or _is_operators(kind.group)


def taken_apart(live: Mapping[str, Any], kind: GroupKind) -> str:
    """Return the finalizer by which an operator takes a custom resource apart; empty: none, or a person has allowed it.

    What such a one stands for, a volume, a bucket, a whole cluster, nothing here owns, and it goes with the resource.
    """
    metadata = live["metadata"]
    allowed = (metadata.get("annotations") or {}).get(ALLOW) == "allow"
    return "" if allowed or not _is_operators(kind.group) else next(iter(metadata.get("finalizers") or ()), "")


def account_of_token(metadata: Mapping[str, Any]) -> str:
    """Return the uid of the ServiceAccount with which a Secret goes that a person has made for its token; empty: it is no such one."""
    annotations = metadata.get("annotations") or {}
    by_hand = not (metadata.get("ownerReferences") or "kubernetes.io/created-by" in annotations)  # OpenShift makes one for each account
    return str(annotations.get("kubernetes.io/service-account.uid") or "") if by_hand else ""


def left_alone(live: Mapping[str, Any], identity: Identity) -> str | None:
    """Return a noun for what an undeclared object is left alone as, SYSTEM where no word is said of that; None: it is an orphan."""
    metadata = live.get("metadata") or {}
    if metadata.get("ownerReferences") or is_system_object(live, identity):
        return SYSTEM
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    if _PARENT in labels:
        return "parents of ApplySets"
    if PART_OF in labels:
        target = marked_target(live, identity)
        return f"what belongs to target {target}" if target else "members of ApplySets"
    owner = foreign_owner(dict(live), identity, "")
    if owner:
        return f"what belongs to {owner.name}"
    if identity.group in _MIRRORED:
        return "what Calico mirrors"
    return DATA.get(identity.group_kind) or _made_by(identity, labels) or _marked((*labels, *annotations))


def _made_by(identity: Identity, labels: Mapping[str, str]) -> str | None:
    """Name what Helm 3 and 2 keep in Secrets or ConfigMaps, bootstrap tokens, and what a cluster gives each namespace."""
    if identity.group_kind == ACCOUNT and identity.name in ACCOUNTS_OF_OPENSHIFT:
        return "accounts of OpenShift"
    if identity.group == _RBAC and identity.name.startswith("system:"):
        return "roles and bindings of the system"
    if identity.group_kind == ROLE_BINDING and identity.name == "admin":  # it has no mark, and people their rights by it
        return "the rights of a project's owner on OpenShift"
    if identity.group_kind == _SECRET and identity.name == "istio-ca-secret":
        return "the root key of Istio"
    if labels.get("owner") == "helm" or labels.get("OWNER") == "TILLER" or identity.name.startswith("sh.helm.release.v1."):
        return _HELM
    return _TOKENS if identity.group_kind == _SECRET and identity.name.startswith("bootstrap-token-") else None


def _marked(keys: Iterable[str]) -> str | None:
    return next(filter(None, map(_mark, keys)), None)


@lru_cache(4096)  # thousands of objects have the same labels
def _mark(key: str) -> str | None:
    return next((noun for pattern, noun in _MARKS if fnmatchcase(key, pattern)), None)


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a record knows of an orphan, in seconds since the epoch. `until`: when it may be deleted; None: that wasn't said."""

    since: float
    until: float | None


def until(known: Sighting | None, grace: float, now: float) -> float:
    """Return when an orphan that is seen `now` may be deleted: `grace` seconds after it was first seen, never before a time said earlier.

    One that something has kept begins anew once that is lifted.
    """
    if known is None or known.until is None:
        return now + grace
    return max(known.until, known.since + grace)


def unread(known: Sighting, grace: float, now: float) -> float | None:
    """Return when an orphan that couldn't be looked for may be deleted: its grace begins again; None: it had none."""
    return None if known.until is None else max(known.until, now + grace)


def said(identity: Identity, text: str) -> str:
    """Return a change's reason: where the object lives undeclared, and `text`."""
    return f"isn't declared in exclusive namespace {identity.namespace}{text}"


def held_strangers(changes: Iterable[Change], members: Iterable[Identity], prune: Prune) -> dict[tuple[str, str, str], str]:
    """Return why the deletion of unmarked objects must be approved: of a namespace too many, beside the `members` that live in it."""
    going: dict[str, list[Change]] = {}
    for change in changes:
        if change.unmarked and change.action is Action.PRUNE:
            going.setdefault(change.identity.namespace, []).append(change)
    if not going:
        return {}
    living, limit = Counter(member.namespace for member in members), prune.hold_above
    return {
        found[0].key(): f"{many(len(found), 'object')} that git doesn't declare would be deleted in exclusive namespace {space}, "
        f"beside {many(living[space], 'member')}: above holdAbove {limit.count} and {limit.fraction:.0%}"
        for space, found in sorted(going.items())
        if len(found) > limit.count and len(found) > limit.fraction * living[space]
    }
