"""What git declares -> Desired objects, or every reason why not, before anything is asked of the live cluster.

Here the namespace is defaulted, the whitelist and the cluster-scoped kinds are enforced, and our marks are put on.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from handler.config.settings import Target
from handler.model.errors import PlanRefused, Problem
from handler.model.instance import template_of
from handler.model.manifest import Manifest, at, items_at
from handler.model.names import IDENTITY, PART_OF, GroupKind, Identity, Resource, identity_of
from handler.model.rollout import Mode
from handler.plan.missing_settings import joined, lacking, resembling
from handler.plan.steering import asked, skips_dry_run

CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
NAMESPACE = GroupKind("", "Namespace")
_KEPT = frozenset({("", "ConfigMap"), ("coordination.k8s.io", "Lease")})
_STATE_PREFIX = "anneal-"
_ALIKE = 0.74  # of `difflib`: one letter of four
_INSTALL = "declare its CustomResourceDefinition in the same path, or install it first"


@dataclass(frozen=True, slots=True)
class Desired:
    """A declared object, admitted: its final manifest (our marks on it) and how the server serves its kind.

    `needs`: the CRD or Namespace that this run creates first: its dry-run may have to wait. `reason`: the annotation that sets the mode.
    The resource of a kind that isn't served has no plural (`Mode.LEAVE`).
    """

    manifest: Manifest
    resource: Resource
    needs: tuple[Identity, ...] = ()
    mode: Mode = Mode.APPLY
    reason: str = ""

    @property
    def identity(self) -> Identity:
        """Its identity."""
        return self.manifest.identity


@dataclass(frozen=True, slots=True)
class Admission:
    """What admission needs to know: the target, its ApplySet id, where states live, what the server serves."""

    target: Target
    applyset: str
    state_namespace: str
    find: Callable[[str, str], Resource | None]
    kinds: Sequence[Resource] = ()

    def admit(self, manifests: Iterable[Manifest]) -> tuple[Desired, ...]:
        """Admit a rendered set. Raises PlanRefused with every problem of every document."""
        documents = [(manifest, manifest.body()) for manifest in manifests]
        asks = [asked(manifest, body) for manifest, body in documents]
        crds = [(body, ask) for (manifest, body), ask in zip(documents, asks, strict=True) if manifest.identity.kind == CRD.kind]
        declared = dict(kind for body, ask in crds if ask.mode is not Mode.LEAVE for kind in declared_kinds(body))
        defined = {found.group_kind for body, ask in crds if ask.mode is None for _, found in declared_kinds(body)}
        found: dict[Identity, Desired] = {}
        problems = [problem for ask in asks for problem in ask.problems]
        for (manifest, body), ask in zip(_emptied(documents), asks, strict=True):
            kind = manifest.api_version, manifest.identity.kind
            # A kind that git itself defines is served as its CRD there says.
            served = None if defined and manifest.identity.group_kind in defined else self.find(*kind)
            resource = declared.get(kind) or served or (_unserved(manifest) if ask.mode is Mode.LEAVE else None)
            if resource is None:
                problems.append(self._unknown_kind(manifest, body, declared.values(), defined))
                continue
            named = self._placed(manifest, body, resource)
            problems += self._refusals(named, resource) if resource.plural else []
            if named.identity in found:
                problems.append(_twice(named, found[named.identity].manifest))
            found[named.identity] = Desired(named, resource, mode=ask.mode or Mode.APPLY, reason=ask.reason)
        if problems:
            raise PlanRefused(*joined(problems))
        made = {identity for identity, item in found.items() if item.mode is not Mode.LEAVE}
        return tuple(replace(item, needs=_needs(item, made)) for item in found.values())

    def _placed(self, manifest: Manifest, body: dict[str, Any], resource: Resource) -> Manifest:
        metadata = body["metadata"]
        if not resource.namespaced:
            metadata.pop("namespace", None)
        elif not metadata.get("namespace") and self.target.namespace:
            metadata["namespace"] = self.target.namespace
        identity = identity_of(body)
        metadata["labels"] = {**(metadata.get("labels") or {}), PART_OF: self.applyset}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), IDENTITY: identity.mark(self.target.name)}
        return manifest.with_body(body)

    def _refusals(self, manifest: Manifest, resource: Resource) -> list[Problem]:
        identity = manifest.identity
        if resource.verbs and "list" not in resource.verbs:
            request = f"{resource.kind} is a request, not an object: the API server keeps none of it"
            return [Problem(str(identity), request, manifest.place, "remove it from git")]
        if resource.namespaced:
            return self._namespaced_refusals(manifest)
        lacks: dict[str, Sequence[str]] = {}
        seen: list[str] = []
        if not listed(resource.group_kind, self.target.cluster_scoped):
            lacks["clusterScoped"] = (*self.target.cluster_scoped, str(resource.group_kind))
            seen.append(f"{resource.group_kind} is cluster-scoped and not allowed here")
        if resource.group_kind == NAMESPACE and not allows(self.target, identity.name):
            lacks["namespaces"] = (*self.target.namespaces, identity.name)
            seen.append(_not_listed(identity.name))
        problem = Problem(str(identity), ", and ".join(seen), manifest.place, _confined(self.target))
        return [self._lacking(problem, lacks, identity.name if "namespaces" in lacks else "")] if lacks else []

    def _lacking(self, problem: Problem, lacks: Mapping[str, Sequence[str]], namespace: str) -> Problem:
        """Give a refusal its way out. `namespace`: the one that isn't listed; it may be one that is, with a typing error."""
        if problem.fix:
            return problem
        near = next((each for each in self.target.namespaces if _is_mistyped(namespace, each)), None)
        if near is None:
            return lacking(problem, self.target.name, lacks)
        told = replace(problem, message=f"{problem.message}, which has {near}", fix=f"correct it to {near}")
        return resembling(told, self.target.name, lacks)

    def _namespaced_refusals(self, manifest: Manifest) -> list[Problem]:
        identity, place = manifest.identity, manifest.place
        if not identity.namespace:
            fix = f"write metadata.namespace, or set namespace: {_example(self.target)} on target {self.target.name}"
            return [Problem(str(identity), "names no namespace, and the target has no default", place, fix)]
        if not allows(self.target, identity.namespace):
            problem = Problem(str(identity), _not_listed(identity.namespace), place, _confined(self.target))
            return [self._lacking(problem, {"namespaces": (*self.target.namespaces, identity.namespace)}, identity.namespace)]
        kept = (identity.group, identity.kind) in _KEPT and identity.namespace == self.state_namespace
        if kept and identity.name.startswith(_STATE_PREFIX):
            return [Problem(str(identity), "is where Anneal keeps its own state", place, "give it another name or namespace")]
        return []

    def _unknown_kind(
        self, manifest: Manifest, body: dict[str, Any], declared: Iterable[Resource], defined: Container[GroupKind]
    ) -> Problem:
        wanted = f"{manifest.api_version} {manifest.identity.kind}"
        served = (*declared, *(kind for kind in self.kinds if kind.group_kind not in defined))
        unseen = ", and SkipDryRunOnMissingResource=true applies nothing unseen" if skips_dry_run(body) else ""
        by = "git's own CustomResourceDefinition" if manifest.identity.group_kind in defined else "the API server"
        problem = Problem(str(manifest.identity), f"{by} doesn't serve {wanted}{unseen}", manifest.place)
        return lacking(problem, self.target.name, {}, (_nearest(manifest, served),))


def _nearest(manifest: Manifest, served: Sequence[Resource]) -> str:
    wanted = manifest.identity
    own = difflib.get_close_matches(wanted.kind, [each.kind for each in served if each.group == wanted.group], n=1)
    if own:
        version = next(each.api_version for each in served if (each.group, each.kind) == (wanted.group, own[0]))
        return f"did you mean {version} {own[0]}?"
    same = [each.api_version for each in served if each.kind == wanted.kind]
    near = difflib.get_close_matches(manifest.api_version, same, n=1, cutoff=0)
    return f"did you mean {near[0]} {wanted.kind}? Else {_INSTALL}" if near else _INSTALL


def _confined(target: Target) -> str:
    """Return the way out of an instance that may declare objects of its own namespace alone; empty: it may declare others, too."""
    trigger = target.trigger.resource if target.instance and target.trigger else None
    if trigger is None or trigger.across_namespaces or not target.instance or not target.instance.identity.namespace:
        return ""
    seen = f"an instance of {template_of(target.name)} declares objects of its own namespace alone"
    return f"{seen}; for others write acrossNamespaces: true under its trigger.resource, and name them in namespaces or clusterScoped"


def _is_mistyped(name: str, meant: str) -> bool:
    """Whether a namespace is one that is allowed with a typing error; team-b, shop2 and shop-eu aren't team-a, shop1 and shop-us."""
    pairs = [pair for pair in itertools.zip_longest(name.split("-"), meant.split("-"), fillvalue="") if pair[0] != pair[1]]
    digits = [re.findall(r"\d+", each) for each in (name, meant)]
    alike = (difflib.SequenceMatcher(a=mistyped, b=right).ratio() >= _ALIKE for mistyped, right in pairs)
    return digits[0] == digits[1] and all(min(map(len, pair)) > 2 for pair in pairs) and all(alike)


def _not_listed(namespace: str) -> str:
    return f"namespace {namespace} is not in the target's whitelist"


def allows(target: Target, namespace: str) -> bool:
    """Whether a namespace is in a target's whitelist."""
    return namespace in target.namespaces or "*" in target.namespaces


def listed(kind: GroupKind, names: Sequence[str]) -> bool:
    """Whether a list names a kind, as `Kind.group` or by the bare kind; `*`, which no configuration can say, is every kind."""
    return str(kind) in names or kind.kind in names or "*" in names


def declared_kinds(body: dict[str, Any]) -> Iterable[tuple[tuple[str, str], Resource]]:
    """Yield ((apiVersion, kind), Resource) of every version that a CustomResourceDefinition serves."""
    if identity_of(body).group_kind != CRD:
        return
    group, kind, plural = (str(at(body, "spec", *steps) or "") for steps in (("group",), ("names", "kind"), ("names", "plural")))
    namespaced = at(body, "spec", "scope") == "Namespaced"
    for version in items_at(body, "spec", "versions"):
        resource = Resource(group, str(at(version, "name") or ""), kind, plural, namespaced)
        if at(version, "served") is not False:
            yield (resource.api_version, resource.kind), resource


def _emptied(documents: list[tuple[Manifest, dict[str, Any]]]) -> Iterator[tuple[Manifest, dict[str, Any]]]:
    """Yield each document and let go of it: thousands of bodies needn't live beside what they become."""
    documents.reverse()
    while documents:
        yield documents.pop()


def _unserved(manifest: Manifest) -> Resource:
    group, _, version = manifest.api_version.rpartition("/")
    return Resource(group, version, manifest.identity.kind, "", namespaced=bool(manifest.identity.namespace))


def _needs(item: Desired, declared: Container[Identity]) -> tuple[Identity, ...]:
    resource = item.resource
    crd = Identity(CRD.group, CRD.kind, "", f"{resource.plural}.{resource.group}")
    namespace = Identity("", NAMESPACE.kind, "", item.identity.namespace)
    return tuple(need for need in (crd, namespace) if need in declared)


def _twice(second: Manifest, first: Manifest) -> Problem:
    return Problem(str(second.identity), f"is declared twice, also at {first.place}", second.place, "keep one of them")


def _example(target: Target) -> str:
    return next((name for name in target.namespaces if name != "*"), "default")
