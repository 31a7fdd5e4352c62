"""The cluster facts that a refusal follows from: the objects, kinds and records it names, as they were; and whether they still are.

Law: reads only, and few (a metadata GET each). What the server said is missing is noted as missing. What can't be named or read is `open`:
its change can't be seen, so the commit is tried again after a while.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.live import PARTIAL
from handler.cluster.parallel import parallel
from handler.engine.planner.siblings import Siblings
from handler.model.errors import AccessDenied, AnnealError, ApiRefused, Basis, Problem
from handler.model.manifest import canonical
from handler.model.names import GroupKind, Identity, Resource
from handler.plan import missing_objects
from handler.plan.admission import Desired
from handler.plan.order import implied
from handler.state.record import Fact

MOST = 20
"""Facts of one refusal; one that names more is open, too."""
_OPEN = re.compile(r'admission webhook "|\bdenied (?:the )?request\b| is forbidden: |\b40[134]: |could not find the requested resource')
"""The server's words where admission, a right or a kind that has vanished decides: what would have to change isn't named."""
_BY_CONTENT = re.compile(
    f"{missing_objects.FIELD_ERROR.pattern}|failed to create typed patch|failed to convert new object|strict decoding error"
)
"""The server's words of what stands in git, and there alone."""
_IMMUTABLE = "an immutable field"
_QUOTA = re.compile(r"ResourceQuota/([^/\s]+)/(\S+) has no room")
_QUOTAS = Resource("", "v1", "ResourceQuota", "resourcequotas", namespaced=True)
_NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


@dataclass(frozen=True, slots=True)
class RefusalBasis:
    """What a refusal names. `open`: something decides that isn't among `facts`."""

    facts: tuple[Fact, ...] = ()
    open: bool = False

    @property
    def late(self) -> bool:
        """Whether something that is there was looked at: after the verdict, so it may have changed in between."""
        return any(fact.seen and fact.kind for fact in self.facts)


@dataclass(slots=True)
class _Told:
    there: dict[Fact, None]
    absent: dict[Fact, None]
    open: bool = False


@dataclass(frozen=True, slots=True)
class RefusalFacts:
    """Looks at what the refusals of one target name."""

    api: Api
    discovery: Discovery
    siblings: Siblings

    def named(self, problems: Iterable[Problem], desired: Mapping[str, Desired], basis: Basis) -> RefusalBasis:
        """Return what a refusal names, as it is now. `desired`: by the subject of problems; `basis`: what else it follows from."""
        told = _Told({}, {}, bool(basis.siblings))
        for problem in problems:
            self._tell(told, problem, desired.get(problem.subject))
        known = [*told.absent, *(Fact(kind=kind, api_version=version) for version, kind in basis.unserved)]
        known += [Fact(name=name, seen=version) for name, version in basis.siblings]
        looked = self._looked([*told.there][: max(MOST - len(known), 0)])
        facts = (*known[:MOST], *(fact for fact in looked if fact))
        return RefusalBasis(facts, told.open or len(facts) < len(known) + len(told.there))

    def changed(self, facts: Sequence[Fact]) -> Fact | None:
        """Return the first fact that isn't as it was, or can't be read; None: all of them hold. Raises ClusterUnavailable."""
        objects = [fact for fact in facts if fact.kind and fact.name]
        moved = [fact for fact, now in zip(objects, self._looked(objects), strict=True) if now != fact]
        kinds = [fact for fact in facts if fact.kind and not fact.name]
        served = Discovery(self.api)  # one of its own: what other targets know of the cluster needn't be asked again
        moved += [fact for fact in kinds if served.find(fact.api_version, fact.kind)]
        records = [fact for fact in facts if not fact.kind]
        versions = self.siblings.versions() if records else {}
        moved += [fact for fact in records if versions.get(fact.name, "") != fact.seen]
        return moved[0] if moved else None

    def _tell(self, told: _Told, problem: Problem, item: Desired | None) -> None:
        said = problem.message
        if quota := _QUOTA.search(said):
            told.there[_fact(_QUOTAS, *quota.groups())] = None
        elif absent := missing_objects.read(said):
            found = [self._missing(each, item) for each in absent]
            told.absent |= dict.fromkeys(fact for fact in found if fact)
            told.open |= None in found
        elif _OPEN.search(said):
            told.open = True
            if item and item.identity.namespace:  # its labels may decide
                told.there[_fact(_NAMESPACES, "", item.identity.namespace)] = None
        elif item and (said.startswith(_IMMUTABLE) or not _BY_CONTENT.search(said)):
            told.there[_fact(item.resource, item.identity.namespace, item.identity.name)] = None

    def _missing(self, found: missing_objects.MissingObject, item: Desired | None) -> Fact | None:
        needs = implied(item.identity, item.manifest.body()) if item else []
        need = next((need for need in needs if need.name == found.name), None)
        kinds = [self.discovery.preferred(need.group_kind)] if need else [each for each in self.discovery.listable() if found.is_a(each)]
        resource = next((kind for kind in kinds if kind), None)
        if resource is None:
            return None
        own = item.identity.namespace if item and resource.namespaced else ""
        return _fact(resource, need.namespace if need else own, found.name)

    # --- how things are
    def _looked(self, facts: Sequence[Fact]) -> list[Fact | None]:
        answers = parallel([partial(self._look, fact) for fact in facts])
        for answer in answers:
            if isinstance(answer, AnnealError) and not isinstance(answer, AccessDenied | ApiRefused):
                raise answer
        return [None if isinstance(answer, AnnealError) else answer for answer in answers]

    def _look(self, fact: Fact) -> Fact:
        group, _, version = fact.api_version.rpartition("/")
        resource = Resource(group, version, fact.kind, fact.plural, namespaced=bool(fact.namespace))
        subject = str(Identity(group, fact.kind, fact.namespace, fact.name))
        live = self.api.get(resource.path(fact.namespace, fact.name), accept=PARTIAL, subject=subject)
        return replace(fact, seen=_seen(resource.group_kind, live["metadata"]) if live else "")


def _fact(resource: Resource, namespace: str, name: str) -> Fact:
    return Fact(name, resource.kind, resource.api_version, resource.plural, namespace)


def _seen(kind: GroupKind, metadata: Mapping[str, Any]) -> str:
    """Return one short text for an object as its writers left it. What its status says doesn't count, but of a quota: what is used."""
    uid = str(metadata.get("uid") or "")
    if kind == _QUOTAS.group_kind:
        return f"{uid}/{metadata.get('resourceVersion')}"
    managers = [
        {key: value for key, value in entry.items() if key != "time"}
        for entry in metadata.get("managedFields") or ()
        if entry.get("subresource") != "status"
    ]
    told = {key: value for key, value in metadata.items() if key not in ("resourceVersion", "managedFields")} | {"managers": managers}
    return f"{uid}/{hashlib.sha256(canonical(told)).hexdigest()[:16]}"
