"""All resources of an input -> targets with names of their own; what became of each field is noted on its resource. Pure.

One row a kind in `KINDS`: what converts it, or why no target stands for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from handler.cli.importing.argocd import application
from handler.cli.importing.custom_resource import LOST, CustomResource, Lost, Rows, SourceField
from handler.cli.importing.flux_helm import helm_release
from handler.cli.importing.flux_kustomization import kustomization
from handler.cli.importing.flux_order import put_order
from handler.cli.importing.references import KUSTOMIZE, SOURCES, References
from handler.cli.importing.target_draft import NotATarget, TargetDraft
from handler.config.load import API_VERSION, KIND, parse
from handler.model.errors import ConfigInvalid, Problem
from handler.model.names import GroupKind, group_of
from handler.model.tree import printable

Convert = Callable[[CustomResource, References], list[TargetDraft]]
HELM, ARGOCD, IMAGES, NOTIFICATIONS = "helm.toolkit.fluxcd.io", "argoproj.io", "image.toolkit.fluxcd.io", "notification.toolkit.fluxcd.io"
_UNUSED = "no resource of the input takes anything from it"
_RESULTS = "results stand in the log, in metrics and in what `anneal status` prints; alert on the metrics (docs/operations.md)"
_IMAGES = "no image is looked up and no tag is written to git; let CI commit the tag, or Renovate"

KINDS: dict[GroupKind, Convert | str] = {
    GroupKind(KUSTOMIZE, "Kustomization"): kustomization,
    GroupKind(HELM, "HelmRelease"): helm_release,
    GroupKind(ARGOCD, "Application"): application,
    GroupKind(SOURCES, "GitRepository"): _UNUSED,
    GroupKind(SOURCES, "HelmRepository"): _UNUSED,
    GroupKind(SOURCES, "HelmChart"): _UNUSED,
    GroupKind(SOURCES, "OCIRepository"): _UNUSED,
    GroupKind(SOURCES, "Bucket"): "a target renders from git; push what the bucket holds",
    GroupKind(SOURCES, "ExternalArtifact"): "a target renders from git; push what the artifact is made of",
    GroupKind(
        ARGOCD, "ApplicationSet"
    ): "isn't converted yet: give the Applications that it makes, kubectl get applications -n argocd -o yaml",
    GroupKind(ARGOCD, "AppProject"): "what a project allows is said by each target: namespaces, clusterScoped, impersonate",
    GroupKind(IMAGES, "ImageRepository"): _IMAGES,
    GroupKind(IMAGES, "ImagePolicy"): _IMAGES,
    GroupKind(IMAGES, "ImageUpdateAutomation"): _IMAGES,
    GroupKind(NOTIFICATIONS, "Receiver"): "webhooks are set up once for all targets: docs/webhooks.md",
    GroupKind(NOTIFICATIONS, "Provider"): _RESULTS,
    GroupKind(NOTIFICATIONS, "Alert"): _RESULTS,
}
"""Kind -> what makes its targets, or why it has none."""

COMMON: Rows = {
    "status": "is what its controller writes",
    **{
        f"metadata.{key}": "is what the API server writes"
        for key in ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields", "selfLink")
    },
    "metadata.deletionGracePeriodSeconds": "is what the API server writes",
    "metadata.generateName": "is what the API server makes a name of",
    "metadata.ownerReferences": "is of the resource, which goes",
    "metadata.labels": "is of the resource, which goes",
    "metadata.finalizers": "is of the resource; delete it as docs/migrate.md says, else its controller deletes what it deployed",
}
ANNOTATIONS: dict[str, Lost] = {
    "argocd.argoproj.io/sync-wave": Lost(
        "write dependsOn into the targets of later waves; or put all into one target, where sync waves order objects"
    ),
    "argocd.argoproj.io/skip-reconcile": Lost("write suspend: true", halts=True),
    "notifications.argoproj.io/": Lost(_RESULTS),
    "argocd-image-updater.argoproj.io/": Lost(_IMAGES),
    "argocd.argoproj.io/compare-options": Lost("what is compared is said by `ignore` and by annotations of the objects"),
}
"""Annotations, or what they begin with, that have no counterpart; all others are the resource's own."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """What came of an input. `targets`: settings of each, with what they were read from; `problems`: what the input lacks."""

    targets: tuple[tuple[dict[str, Any], tuple[CustomResource, ...]], ...]
    resources: tuple[CustomResource, ...]
    problems: tuple[Problem, ...]


def is_known(body: dict[str, Any]) -> bool:
    """Whether an object is of a kind that has a row."""
    version, kind = body.get("apiVersion"), body.get("kind")
    return isinstance(version, str) and isinstance(kind, str) and GroupKind(group_of(version), kind) in KINDS


def convert(resources: Sequence[CustomResource], repository: str = "", around: str = "") -> Conversion:
    """Convert all resources of an input, each of a kind that has a row. `repository`, `around`: see `References`."""
    references = References(resources, repository, around)
    problems: list[Problem] = []
    drafts: list[TargetDraft] = []
    seen: dict[tuple[str, str, str, str], CustomResource] = {}
    for each in resources:
        first = seen.setdefault((each.group, each.kind, each.namespace, each.name), each)
        drafts += _twice(each, first, problems) if first is not each else _drafts(each, references, problems)
    for each in resources:
        if isinstance(KINDS[GroupKind(each.group, each.kind)], str) and id(each) not in references.used and not each.notes:
            each.note(LOST, (), _why(each))
        _note_common(each)
        each.note_unknown()
    made = _sound(_named(drafts), problems)
    put_order(made)
    return Conversion(tuple((draft.ordered(), tuple(draft.sources)) for draft in made), tuple(resources), tuple(problems))


def _drafts(each: CustomResource, references: References, problems: list[Problem]) -> list[TargetDraft]:
    row = KINDS[GroupKind(each.group, each.kind)]
    if isinstance(row, str):
        return []
    try:
        if not each.name:
            raise NotATarget("has no metadata.name")
        return row(each, references)
    except NotATarget as refused:
        each.note(LOST, (), refused.why)
        problems += [refused.problem] if refused.problem else []
        return []


def _twice(each: CustomResource, first: CustomResource, problems: list[Problem]) -> list[TargetDraft]:
    seen = f"is in the input twice, first at {first.place()}, which counts"
    each.note(LOST, (), seen)
    way = "give one cluster's objects at a time; of bases and overlays what they build: kustomize build DIR | anneal import -f -"
    problems.append(Problem(str(each), seen, each.place(), way))
    return []


def _why(each: CustomResource) -> str:
    row = KINDS[GroupKind(each.group, each.kind)]
    generators = each.fields.below("spec.generators")
    names = sorted({key for item in generators.value for key in item}) if _is_list_of_mappings(generators.value) else []
    return f"{row}" + (f" (its generators: {', '.join(printable(name, 40) for name in names[:10])})" if names else "")


def _is_list_of_mappings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _note_common(each: CustomResource) -> None:
    each.fields.rows(COMMON)
    annotations = each.fields.below("metadata.annotations")
    for key in annotations.value if isinstance(annotations.value, dict) else ():
        row = next((row for start, row in ANNOTATIONS.items() if key.startswith(start)), None)
        if row:
            annotations.at(key).lost(row.why, halts=row.halts)
        else:
            annotations.at(key).itself("is of the resource, which goes")


def _named(drafts: Sequence[TargetDraft]) -> list[TargetDraft]:
    """Name targets after their resources: with the namespace where two have one name, with a number where that isn't enough."""
    plain = [_label(draft.name) for draft in drafts]
    often = Counter(plain)
    taken: set[str] = set()
    for draft, name in zip(drafts, plain, strict=True):
        wanted = name if often[name] == 1 else _label(f"{draft.sources[0].namespace}-{draft.name}")
        free, number = wanted, 1
        while free in taken:
            number += 1
            free = f"{wanted[: 55 - len(str(number))]}-{number}"
        taken.add(free)
        draft.put("name", free)
        _named_field(draft.sources[0].fields, free)
    return list(drafts)


def _named_field(fields: SourceField, name: str) -> None:
    fields.below("metadata.name").set("name", "" if fields.of.name == name else name)


def _label(text: str) -> str:
    """Return a text as a target's name: a DNS label of at most 56 characters."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:56].strip("-") or "imported"


def _sound(drafts: Sequence[TargetDraft], problems: list[Problem]) -> list[TargetDraft]:
    """Suspend what would do something else than there, and leave out what a configuration wouldn't take."""
    good: list[TargetDraft] = []
    for draft in drafts:
        if any(each.halts for each in draft.sources):
            draft.put("suspend", True)
        try:
            parse(text_of([draft.ordered()]), "anneal.yaml")
        except ConfigInvalid as refused:
            seen = f"its settings aren't ones that a configuration takes: {refused.problems[0].subject}: {refused.problems[0].message}"
            draft.sources[0].note(LOST, (), seen)
            problems.append(Problem(str(draft.sources[0]), seen, draft.sources[0].place()))
        else:
            good.append(draft)
    return good


def text_of(targets: Sequence[dict[str, Any]]) -> str:
    """Return a configuration of these targets as YAML."""
    from handler.cli.render import as_yaml  # noqa: PLC0415 - loads what renders, which few tests of this module need

    return as_yaml({"apiVersion": API_VERSION, "kind": KIND, "targets": list(targets)})
