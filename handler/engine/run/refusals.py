"""A refused commit isn't tried again by the clock: a tick or a push finds the refusal in the record, and that it still holds.

Law: a person's request tries at once. A refusal of what is in git alone waits for git, settings, or a person. What admission refused is
tried again by ticks, ever more rarely; so is, late, what was looked at after the verdict. An open attempt's own commit isn't refused.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from handler import __version__
from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.live import PARTIAL
from handler.cluster.parallel import parallel
from handler.config.settings import Target
from handler.engine.planner.siblings import Siblings
from handler.engine.run.context import RunContext
from handler.model.advice import advice
from handler.model.backoff import Backoff
from handler.model.errors import (
    AccessDenied,
    AnnealError,
    ApiRefused,
    AuthorError,
    Basis,
    Problem,
    QuotaExceeded,
    RefNotFound,
    RenderFailed,
)
from handler.model.event import NAMED, Job
from handler.model.manifest import canonical
from handler.model.names import GroupKind, Identity, Resource
from handler.model.to_json import plain
from handler.model.tree import OUTSIDE, ReadSet
from handler.plan import missing_objects
from handler.plan.admission import Desired
from handler.plan.order import implied
from handler.state.record import Fact, Refusal
from handler.state.record_format import seconds_of, stamp

_LOG = logging.getLogger("anneal.run")
_OPEN = Backoff(60.0, 1800.0)  # until a tick tries again what no fact decides
_LATE = 3600.0  # seconds until a tick tries again what was looked at after the verdict: it may have changed in between
MOST_READS = 100  # paths of a read set that are kept; with more, those of git are known by the commit alone, and so many others are kept
MOST = 20  # facts of one refusal; one that names more is open, too
_UNNAMED = re.compile(r'admission webhook "|\bdenied (?:the )?request\b| is forbidden: |\b40[134]: |could not find the requested resource')
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
class _Collected:
    there: dict[Fact, None]
    absent: dict[Fact, None]
    open: bool = False


@dataclass(frozen=True, slots=True)
class RefusalFacts:
    """Looks at what the refusals of one target name, by few reads; what can't be named or read is `open`: its change can't be seen."""

    api: Api
    discovery: Discovery
    siblings: Siblings

    def named(self, problems: Iterable[Problem], desired: Mapping[str, Desired], basis: Basis) -> RefusalBasis:
        """Return what a refusal names, as it is now. `desired`: by the subject of problems; `basis`: what else it follows from."""
        collected = _Collected({}, {}, bool(basis.siblings))
        for problem in problems:
            for subject in problem.subjects():
                self._collect(collected, problem, desired.get(subject))
        known = [*collected.absent, *(Fact(kind=kind, api_version=version) for version, kind in basis.unserved)]
        known += [Fact(name=name, seen=version) for name, version in (*basis.siblings, *((name, "") for name in basis.strangers))]
        looked = self._looked([*collected.there][: max(MOST - len(known), 0)])
        facts = (*known[:MOST], *(fact for fact in looked if fact))
        return RefusalBasis(facts, collected.open or len(facts) < len(known) + len(collected.there))

    def changed(self, facts: Sequence[Fact]) -> Fact | None:
        """Return the first fact that isn't as it was, or can't be read; None: all of them hold. Raises ClusterUnavailable."""
        if len(facts) > MOST:  # we write no such refusal
            return facts[MOST]
        objects = [fact for fact in facts if fact.kind and fact.name]
        moved = [fact for fact, now in zip(objects, self._looked(objects), strict=True) if now != fact]
        kinds = [fact for fact in facts if fact.kind and not fact.name]
        served = Discovery(self.api)  # one of its own: what other targets know of the cluster needn't be asked again
        moved += [fact for fact in kinds if served.find(fact.api_version, fact.kind)]
        records = [fact for fact in facts if not fact.kind]
        versions = self.siblings.versions() if records else {}
        moved += [fact for fact in records if versions.get(fact.name, "") != fact.seen]
        return moved[0] if moved else None

    def _collect(self, collected: _Collected, problem: Problem, item: Desired | None) -> None:
        said = problem.message
        if quota := _QUOTA.search(said):
            collected.there[_fact(_QUOTAS, *quota.groups())] = None
        elif absent := missing_objects.read(said):
            found = [self._missing(each, item) for each in absent]
            collected.absent |= dict.fromkeys(fact for fact in found if fact)
            collected.open |= None in found
        elif _UNNAMED.search(said):
            collected.open = True
            if item and item.identity.namespace:  # its labels may decide
                collected.there[_fact(_NAMESPACES, "", item.identity.namespace)] = None
        elif item and (said.startswith(_IMMUTABLE) or not _BY_CONTENT.search(said)):
            collected.there[_fact(item.resource, item.identity.namespace, item.identity.name)] = None

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
    written = {key: value for key, value in metadata.items() if key not in ("resourceVersion", "managedFields")} | {"managers": managers}
    return f"{uid}/{hashlib.sha256(canonical(written)).hexdigest()[:16]}"


def of(run: RunContext, error: AnnealError) -> Refusal | None:
    """Return what keeps a failed commit from being tried again by ticks; None: nothing does."""
    attempt, goes_on = run.state.attempt, isinstance(error, RefNotFound) or not isinstance(error, AuthorError | QuotaExceeded)
    if goes_on or run.round.opened or not run.revision.commit or (attempt and attempt.commit == run.revision.commit):
        return None
    try:
        named = _named(run, error)
    except AnnealError:
        return None
    reads, elsewhere = error.basis.reads, ReadSet(error.basis.reads).elsewhere.paths
    known = () if error.basis.siblings or len(reads) > MOST_READS else reads
    kept = known or elsewhere[:MOST_READS]
    late = named.late or len(elsewhere) > MOST_READS  # what isn't kept may change unseen
    wait = _OPEN.after(run.state.status.failures + 1) if named.open else _LATE if late else 0.0
    return Refusal(
        run.revision.commit,
        inputs_of(run.deps.target),
        ReadSet(known).digest() if known else "",
        tuple(path for path, _ in kept),
        named.facts,
        stamp(run.deps.clock() + wait) if wait else "",
        ReadSet(kept).elsewhere.digest() if elsewhere else "",
    )


def stands(run: RunContext) -> bool:
    """Whether the revision is refused still, as the record says. Raises ClusterUnavailable: what that names can't be looked at."""
    refusal = run.state.status.refusal
    if refusal is None or run.force or is_asked(run.job) or refusal.inputs != inputs_of(run.deps.target):
        return False
    if refusal.again and seconds_of(refusal.again) <= run.deps.clock():
        return False
    reads_the_same = _is_elsewhere_the_same if refusal.commit == run.revision.commit else _reads_the_same
    if not reads_the_same(run, refusal):
        return False
    changed = _facts(run).changed(refusal.facts)
    if changed:
        _LOG.info("a refusal is over", extra={"fields": {"target": run.job.target, "commit": run.revision.commit, "changed": str(changed)}})
    return changed is None


def is_asked(job: Job) -> bool:
    """Whether a person or a pipeline asked for a run by name."""
    return bool(job.acts or job.named) or job.trigger in NAMED


def inputs_of(target: Target) -> str:
    """Return the digest of all that is configured of a target, and of our version: whatever of it changes may lift a refusal."""
    return hashlib.sha256(canonical([__version__, plain(target)])).hexdigest()


def awaits(refusal: Refusal, target: str) -> str:
    """Say what a refused commit waits for."""
    named = ", ".join(dict.fromkeys(str(fact) for fact in refusal.facts))
    elsewhere = ", a change of what it was rendered from elsewhere than in git" if refusal.elsewhere else ""
    until = f"{elsewhere}, a change of {named}" if named else elsewhere
    again = f", or {refusal.again}" if refusal.again else ""
    return advice("it waits for a new commit, other settings{text}{text}; at once: anneal apply {}", until, again, target)


def _named(run: RunContext, error: AnnealError) -> RefusalBasis:
    """Return what a failure names: problems of a plan by the objects that they are about, what can't be prepared by its kinds alone."""
    declared = _declared(run)
    named = _facts(run).named(error.problems if declared else (), declared, error.basis)
    return RefusalBasis(named.facts, named.open or isinstance(error, RenderFailed))


def _declared(run: RunContext) -> dict[str, Desired]:
    prepared = run.deps.preparer.last
    if prepared is None or prepared.commit.sha != run.revision.commit:
        return {}
    items = [*(item for stage in prepared.stages for item in stage), *prepared.planned_hooks.items.values()]
    return {str(item.identity): item for item in items}


def _is_elsewhere_the_same(run: RunContext, refusal: Refusal) -> bool:
    """Whether all that isn't git is as it was; the commit's tree isn't fetched for that."""
    if not refusal.elsewhere:
        return True
    ask, names = run.outside(run.revision.commit).ask, [path for path in refusal.paths if path.startswith(OUTSIDE)]
    return ReadSet.of({name: ask(name) for name in names}).digest() == refusal.elsewhere


def _reads_the_same(run: RunContext, refusal: Refusal) -> bool:
    if not refusal.reads:
        return False
    tree = run.deps.preparer.tree(run.revision.commit)
    run.round.commit = run.titled(tree.commit)
    return run.reads_on(tree, refusal.paths, run.revision.commit).digest() == refusal.reads


def _facts(run: RunContext) -> RefusalFacts:
    planner = run.deps.planner
    return RefusalFacts(planner.api, planner.discovery, run.deps.siblings)
