"""Which other tool owns a live object: one table of tools, by label, annotation and field manager, and what of theirs becomes ours.

A mark proves its tool wherever it stands. A field manager proves it by deploying: by an apply, or by a write that owns more than what
controllers write on others' objects. A label that any chart may carry proves it where the tool's own manager wrote it. An ApplySet is known
by its id alone, which `adopt` may name; what kubectl wrote for it is kubectl's (`handler.plan.takeover`).
Read from the tools' code of 2026: Flux (pkg/ssa, both controllers, the CLI), Argo CD, Helm 3 and 4, kapp, kluctl, cli-utils, Fleet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from handler.config.settings import ApplySetId, Owner, Tool
from handler.config.value_formats import FORMS
from handler.model.instance import Instance
from handler.model.names import PART_OF, Identity
from handler.plan.inventory import marked_target
from handler.plan.managed_fields import Fields, difference, managed_fields, union

Entry = dict[str, Any]
_COWRITTEN = frozenset({"f:metadata", "f:status", "f:operation"})
"""What controllers write on objects that they don't deploy: finalizers, conditions, the operation of an Argo CD Application."""
_STAYS: Fields = {"f:status": {}, "f:operation": {}, "f:metadata": {"f:finalizers": {}}}  # what of an entry never becomes ours
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class OwnershipMark:
    """A label or annotation whose value names an owner. `namespace`: that which holds the owner's; `stop`: see `Marks`."""

    noun: str
    namespace: str = ""
    stop: str = ""

    def owner(self, value: str, found: Mapping[str, str]) -> tuple[str, str]:
        """Return name and namespace of what a value names."""
        return value, found.get(self.namespace, "")


@dataclass(frozen=True, slots=True)
class _Application(OwnershipMark):
    """Argo CD's: `[namespace_]application[:group/kind:namespace/name]`."""

    def owner(self, value: str, found: Mapping[str, str]) -> tuple[str, str]:
        namespace, _, name = value.partition(":")[0].rpartition("_")
        return name, namespace or found.get(self.namespace, "argocd")


@dataclass(frozen=True, slots=True)
class Manager:
    """A field manager that deploys for a tool: a pattern of its name, and the operations by which it does."""

    name: str
    operations: tuple[str, ...] = ("Apply", "Update")

    def wrote(self, entry: Entry) -> bool:
        """Whether an entry is one of its own; what was written by a subresource never is."""
        named = fnmatchcase(str(entry.get("manager") or ""), self.name)
        return named and entry.get("operation") in self.operations and not entry.get("subresource")


@dataclass(frozen=True, slots=True)
class Marks:
    """How one tool marks what it deploys. `labels`, `annotations`: those that name an owner, and (None) those that go along; patterns.

    `written`: labels that count only where one of `managers` wrote them. `stop`: what to do so that the tool neither writes its own back
    nor deletes; NAME and NAMESPACE are the owner's.
    """

    title: str
    labels: Mapping[str, OwnershipMark | None] = field(default_factory=dict)
    annotations: Mapping[str, OwnershipMark | None] = field(default_factory=dict)
    managers: tuple[Manager, ...] = ()
    written: Mapping[str, OwnershipMark | None] = field(default_factory=dict)
    stop: str = ""


_PATCH = "kubectl patch {} -n {} --type=merge -p '{}'"
_APPLICATION = _Application("Argo CD application")
TOOLS: Mapping[Tool, Marks] = {
    "flux": Marks(
        "Flux",
        labels={
            "kustomize.toolkit.fluxcd.io/name": OwnershipMark("Flux Kustomization", "kustomize.toolkit.fluxcd.io/namespace"),
            "kustomize.toolkit.fluxcd.io/namespace": None,
            "kustomize.toolkit.fluxcd.io/checksum": None,
            "helm.toolkit.fluxcd.io/name": OwnershipMark(
                "Flux HelmRelease", "helm.toolkit.fluxcd.io/namespace", "first stop Flux: flux suspend helmrelease NAME -n NAMESPACE"
            ),
            "helm.toolkit.fluxcd.io/namespace": None,
        },
        annotations={"kustomize.toolkit.fluxcd.io/checksum": None},
        # flux: `flux install`. Under the names of controllers, updates are finalizers and status of Flux' own kinds.
        managers=(Manager("kustomize-controller", ("Apply",)), Manager("flux", ("Apply",)), Manager("helm-controller")),
        stop="first stop Flux: flux suspend kustomization NAME -n NAMESPACE",
    ),
    "argocd": Marks(
        "Argo CD",
        labels={"argocd.argoproj.io/instance": _APPLICATION},
        annotations={"argocd.argoproj.io/tracking-id": _APPLICATION, "argocd.argoproj.io/installation-id": None},
        managers=(Manager("argocd-controller"), Manager("argocd-application-controller")),  # the second: Replace=true, and before 2.5
        written={"app.kubernetes.io/instance": _APPLICATION},
        stop="first stop Argo CD: "
        + _PATCH.format("applications.argoproj.io NAME", "NAMESPACE", '{"spec":{"syncPolicy":{"automated":null}}}'),
    ),
    "helm": Marks(
        "Helm",
        annotations={
            "meta.helm.sh/release-name": OwnershipMark("Helm release", "meta.helm.sh/release-namespace"),
            "meta.helm.sh/release-namespace": None,
        },
        managers=(Manager("helm"), Manager("terraform-provider-helm*")),
        written={"app.kubernetes.io/managed-by": None},
        stop="helm uninstall would delete it all the same: once all of the release is taken over make Helm forget it: "
        "kubectl delete secrets -n NAMESPACE -l owner=helm,name=NAME",
    ),
    "kapp": Marks(
        "kapp",
        labels={"kapp.k14s.io/app": OwnershipMark("kapp app"), "kapp.k14s.io/association": None},
        annotations={"kapp.k14s.io/identity": None, "kapp.k14s.io/original": None, "kapp.k14s.io/original-diff*": None},
        managers=(Manager("kapp"), Manager("kapp-server-side-apply")),
        stop="where kapp-controller deploys it first pause that, and let it delete nothing: "
        + _PATCH.format("apps.kappctrl.k14s.io APP", "APP_NAMESPACE", '{"spec":{"paused":true,"noopDelete":true}}'),
    ),
    "kluctl": Marks(
        "kluctl",
        labels={"kluctl.io/discriminator": OwnershipMark("kluctl discriminator"), "kluctl.io/tag-*": None},
        annotations={"kluctl.io/deployment-item-dir": None},
        managers=(Manager("kluctl", ("Apply",)),),  # its `gitops suspend` and the like update a KluctlDeployment
        stop="where kluctl-controller deploys it first stop that: kluctl gitops suspend --namespace KD_NAMESPACE --name KD_NAME",
    ),
    "kubernixos": Marks(
        "Kubernixos", labels={"kubernixos": OwnershipMark("Kubernixos checksum")}
    ),  # it writes by kubectl, and prunes by the label
    "cli-utils": Marks(  # so does this
        "cli-utils", annotations={"config.k8s.io/owning-inventory": OwnershipMark("cli-utils inventory")}
    ),
    "fleet": Marks(
        "Rancher Fleet",
        labels={"objectset.rio.cattle.io/hash": None},
        annotations={"objectset.rio.cattle.io/id": OwnershipMark("Rancher Fleet object set"), "objectset.rio.cattle.io/applied": None},
        managers=(Manager("fleetagent"),),
        stop="first let Fleet keep what it deployed ("
        + _PATCH.format("gitrepos.fleet.cattle.io GITREPO", "WORKSPACE", '{"spec":{"keepResources":true}}')
        + "), and once that is rolled out stop it, the same way: paused",
    ),
}


@dataclass(frozen=True, slots=True)
class ForeignOwner:
    """A foreign owner: `tools` are what `adopt` must name to take its object over, none where no setting does; `stop`: to do before."""

    name: str
    tools: tuple[Owner, ...] = ()
    stop: tuple[str, ...] = ()


_APPLYSET = "first take it out of what kubectl apply --applyset is given there: it would put its own label on again"
_NAMESAKE = "first see what has labelled it, for that would do so again: another installation's target of the same name, or kubectl"
_TARGET = "first let that target go of it: take it out of the git of {}, else its runs are refused from then on"


def foreign_owner(
    live: dict[str, Any],
    identity: Identity,
    applyset: str,
    adopted: Collection[str] = (),
    own: str = "",
    instance: Instance | None = None,
) -> ForeignOwner | None:
    """Return another owner of an object: tools, unless `adopted` names them, another target, another ApplySet, a controller; else None.

    `own`: the target that asks: its name under another ApplySet's label is no other target's. `instance`: what it is an instance for.
    """
    fixed = list(_fixed(live, instance))
    theirs: list[tuple[Owner | None, str, str]] = list(_sets(live, identity, applyset, adopted, own))
    theirs += [(tool, *found) for tool in TOOLS if tool not in adopted and (found := _deployer(live, tool))]
    names = [*(name for owner, name, _ in theirs if owner not in TOOLS), *fixed, *(name for owner, name, _ in theirs if owner in TOOLS)]
    if not names:
        return None
    able = not fixed and all(owner for owner, _, _ in theirs)
    tools = in_order(owner for owner, _, _ in theirs if owner) if able else ()
    return ForeignOwner(" and ".join(names), tools, tuple(stop for _, _, stop in theirs if stop and tools))


def in_order(owners: Iterable[Owner]) -> tuple[Owner, ...]:
    """Return what `adopt` names, each once: tools as the table has them, then ids."""
    found = set(owners)
    return (*(tool for tool in TOOLS if tool in found), *sorted(found - TOOLS.keys()))


def set_of(live: Mapping[str, Any]) -> ApplySetId | None:
    """Return the id of the ApplySet that an object's label names; None: it has none, or one of no such form, which no setting names."""
    label = str(((live.get("metadata") or {}).get("labels") or {}).get(PART_OF) or "")
    return None if FORMS["applySet"].complaint(label) else ApplySetId(label)


def _sets(
    live: dict[str, Any], identity: Identity, applyset: str, adopted: Collection[str], own: str
) -> Iterator[tuple[ApplySetId | None, str, str]]:
    label = ((live.get("metadata") or {}).get("labels") or {}).get(PART_OF, applyset)
    if label != applyset and label not in adopted:
        target = marked_target(live, identity)
        name = f"target {target}" if target and target != own else f"ApplySet {_shown(str(label))}"
        stop = _NAMESAKE if target == own else _TARGET.format(target)
        yield set_of(live), name, stop if target else _APPLYSET


def _fixed(live: dict[str, Any], instance: Instance | None) -> Iterator[str]:
    references = (live.get("metadata") or {}).get("ownerReferences") or []
    if instance is None or not instance.owns(references):
        yield from (f"{owner.get('kind')} {owner.get('name')}" for owner in references if owner.get("controller"))
    if controller := _set_owner(live):
        yield controller


def _set_owner(live: dict[str, Any]) -> str:
    """Name the controller of an object by Rancher's library, such as a K3s AddOn; Fleet's objects name none."""
    annotations = (live.get("metadata") or {}).get("annotations") or {}
    kind = str(annotations.get("objectset.rio.cattle.io/owner-gvk", "")).rpartition("Kind=")[2]
    return f"{_shown(kind)} {_shown(str(annotations.get('objectset.rio.cattle.io/owner-name', '')))}" if kind else ""


def _deployer(live: dict[str, Any], tool: Tool) -> tuple[str, str] | None:
    marks, metadata = TOOLS[tool], live.get("metadata") or {}
    if tool == "fleet" and _set_owner(live):
        return None
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    entries = [entry for entry in managed_fields(live) if any(manager.wrote(entry) for manager in marks.managers)]
    written = {key: value for key, value in labels.items() if key in marks.written and any(owns_label(entry, key) for entry in entries)}
    for found, table in ((labels, marks.labels), (annotations, marks.annotations), (written, marks.written)):
        for key, mark in table.items():
            if mark and key in found:
                name, namespace = mark.owner(str(found[key]), found)
                return f"{mark.noun} {_shown(name)}", _stop(mark.stop or marks.stop, name, namespace)
    proof = next((entry for entry in entries if written or _deploys(entry)), None)
    return (f"{marks.title} (field manager {proof['manager']})", marks.stop) if proof else None


def _deploys(entry: Entry) -> bool:
    return entry.get("operation") == "Apply" or bool((entry.get("fieldsV1") or {}).keys() - _COWRITTEN)


def owns_label(entry: Entry, key: str) -> bool:
    """Whether an entry of managedFields is of who wrote a label."""
    labels = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:labels") or {}
    return f"f:{key}" in labels


def _stop(text: str, name: str, namespace: str) -> str:
    known = {word: value for word, value in (("NAME", name), ("NAMESPACE", namespace)) if _NAME.fullmatch(value)}
    return re.sub(r"\b(NAME|NAMESPACE)\b", lambda word: known.get(word[0], word[0]), text)


def _shown(value: str) -> str:
    return value if len(value) <= 100 and value.isprintable() else json.dumps(value[:100])


def managers_of(tools: Collection[str]) -> tuple[Manager, ...]:
    """Return the field managers that deploy for these tools."""
    return tuple(manager for tool in TOOLS if tool in tools for manager in TOOLS[tool].managers)


def deployers(live: dict[str, Any], tools: Collection[str]) -> tuple[Tool, ...]:
    """Return which of these tools have deployed an object; what the others' controllers co-write on it is left to them."""
    return tuple(tool for tool in TOOLS if tool in tools and _deployer(live, tool))


def deployed(entry: Entry, tools: Collection[str]) -> Fields:
    """Return what of an entry becomes ours when an object of these tools is taken over: never finalizers, status, or a subresource's."""
    its = any(manager.wrote(entry) for manager in managers_of(tools))
    return difference(entry.get("fieldsV1") or {}, _STAYS) if its else {}


def tool_marks(live: dict[str, Any], tools: Collection[str]) -> Fields:
    """Return the paths of these tools' marks on an object, as `fieldsV1` spells them; they go where git doesn't declare them."""
    found: Fields = {}
    for tool in (tool for tool in TOOLS if tool in tools):
        for part, table in (("labels", TOOLS[tool].labels), ("annotations", TOOLS[tool].annotations)):
            keys = [key for key in (live.get("metadata") or {}).get(part) or {} if any(fnmatchcase(key, each) for each in table)]
            found = union(found, {"f:metadata": {f"f:{part}": {f"f:{key}": {} for key in keys}}} if keys else {})
    return found
