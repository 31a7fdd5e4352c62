"""Parses the API server's refusal of an object for the objects that it lacks. Pure.

Law: only the server's own words make a mistake a matter of order. They name a kind and a name, as admission and RBAC do:

    pods "p" is forbidden: error looking up service account shop/web: serviceaccount "web" not found     ServiceAccount plugin
    pods "p" is forbidden: no PriorityClass with name high was found                                     Priority plugin
    pods "p" is forbidden: pod rejected: RuntimeClass "gvisor" not found                                 RuntimeClass plugin
    rolebindings.rbac.authorization.k8s.io "reader" not found                                            a binding's role, by its own kind
    admission webhook "…" denied the request: secrets "db" not found                                     and what webhooks say like that

A field error that names no object (`volumeMounts[0].name: Not found: "data"`) is a mistake, and so is all that stands beside one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from handler.config.settings import Target
from handler.model.advice import advice
from handler.model.errors import Problem
from handler.model.hidden_fields import without as shown
from handler.model.names import Identity, Resource
from handler.plan.admission import NAMESPACE, Desired, listed
from handler.plan.missing_settings import MissingSetting, block, lacking
from handler.plan.order import DEPENDS_ON, NAMING, implied

_MISSING = re.compile(
    r'\b([A-Za-z][A-Za-z0-9]*)(?:\.([a-z0-9][a-z0-9.-]*))? "([^"\s]+)" not found|\bno ([A-Z][A-Za-z0-9]*) with name (\S+) was found'
)
FIELD_ERROR = re.compile(r"(?:Invalid value|Forbidden|Duplicate value|Unsupported value|Not found):|Required value|Too (?:long|many)")
"""How apimachinery begins each field error."""


@dataclass(frozen=True, slots=True)
class MissingObject:
    """One object that isn't there. `kind`: as it was called (`serviceaccount`, `roles`, `PriorityClass`); `group`: if that was said."""

    kind: str
    group: str
    name: str

    def __str__(self) -> str:
        """`serviceaccount "web"`."""
        return f'{self.kind}{"." if self.group else ""}{self.group} "{self.name}"'

    @property
    def is_namespace(self) -> bool:
        """Whether it is a Namespace."""
        return not self.group and self.kind.lower() in ("namespace", "namespaces")

    def is_a(self, resource: Resource) -> bool:
        """Whether it is of this kind."""
        return self.kind.lower() in (resource.kind.lower(), resource.plural.lower()) and self.group in ("", resource.group)


def read(text: str) -> tuple[MissingObject, ...]:
    """Return what a refusal says is missing; nothing where it says anything else, too."""
    _, *mistakes = FIELD_ERROR.split(text)
    if not all(_MISSING.search(part) for part in mistakes or [text]):
        return ()
    return tuple(
        dict.fromkeys(
            MissingObject(kind or other, group or "", name or called) for kind, group, name, other, called in _MISSING.findall(text)
        )
    )


def among(found: MissingObject, item: Desired, declared: Iterable[Desired]) -> Identity | None:
    """Return the declared object that is meant: one that the refused object names, in its namespace or in none."""
    places, needs = ("", item.identity.namespace), _implied(item, found)
    texts = set(_texts({key: value for key, value in item.manifest.body().items() if key != "metadata"}))
    for one in declared:
        identity = one.identity
        meant = found.is_a(one.resource) and found.name == identity.name and identity.namespace in places and identity.name in texts
        if meant or identity in needs:
            return identity
    return None


def _implied(item: Desired, found: MissingObject) -> list[Identity]:
    needs = implied(item.identity, item.manifest.body())
    return [
        need
        for need in needs
        if need.name == found.name and (found.kind.lower().startswith(need.kind.lower()) or found.is_a(item.resource))
    ]


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    for below in node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ():
        yield from _texts(below)


def is_told(found: MissingObject, item: Desired) -> bool:
    """Whether what an object lacks may be named: not where the name may be a value that isn't in git."""
    return not item.manifest.hidden or found.name in set(_texts(shown(item.manifest)))


def without(item: Desired) -> dict[str, Any] | None:
    """Return an object without references to objects that may be missing, for a dry-run of the rest; None: they can't be left out.

    A binding then references a role that every cluster has and that grants nothing more (`system:public-info-viewer`).
    """
    body, needs = item.manifest.body(), implied(item.identity, item.manifest.body())
    if not needs:
        return None
    if "roleRef" in body:
        body["roleRef"] = {"apiGroup": item.identity.group, "kind": "ClusterRole", "name": "system:public-info-viewer"}
    for field in NAMING if isinstance(body.get("spec"), dict) else ():
        body["spec"].pop(field, None)
    return body


def declare(found: MissingObject, item: Desired) -> str:
    """Return the way out where nothing that is missing is declared."""
    namespace, needs = item.identity.namespace, _implied(item, found)
    if found.kind.lower() in ("serviceaccount", "serviceaccounts"):
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": found.name, "namespace": namespace}}
        return advice("declare it in the same path: {yaml}; or correct the name", body)
    return f"declare {needs[0] if needs else 'it'} in the same path, or correct the name"


def without_namespace(found: MissingObject, target: Target, refusal: Problem) -> MissingSetting:
    """Return the refusal of an object whose Namespace isn't there, with the two ways to one."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": found.name}}
    kinds = target.cluster_scoped
    allowed = listed(NAMESPACE, kinds)
    setting = "" if allowed else advice(", and {text}", block(target.name, {"clusterScoped": (*kinds, NAMESPACE.kind)}))
    ways = "create it: kubectl create namespace {}; or declare it in the same path: {yaml}{text}"
    return lacking(refusal, target.name, {}, (advice(ways, found.name, body, setting),))


def put_before(need: Identity, item: Identity) -> str:
    """Return the way out where what is missing is declared, but doesn't come before what names it."""
    place = f"{need.group}/namespaces/{need.namespace}" if need.namespace else need.group
    reference = f"{place}/{need.kind}/{need.name}"
    return advice("let it come first: write under {text}'s metadata: annotations: {yaml}", item, {DEPENDS_ON: reference})
