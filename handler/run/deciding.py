"""What the server says of the objects that the LISTs couldn't decide: dry-runs in parallel, all mistakes at once.

Deferred are only objects whose Namespace or CRD this run creates, which are checked by git's own schema or in a stand-in namespace now; and
those of which the server says that something they name is missing, where this run creates that before them. They are dry-run when their
stage comes. Whatever else the server says is final.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from handler.cluster.api import Api
from handler.cluster.live import probe
from handler.cluster.parallel import parallel
from handler.cluster.write import DryRunner
from handler.config.settings import Target
from handler.model.errors import AccessDenied, AnnealError, ApiRefused, Problem
from handler.model.manifest import at, canonical, items_at
from handler.model.names import Identity
from handler.model.plan import Action, Change
from handler.model.resource import Resource
from handler.model.rollout import Mode
from handler.plan import missing, schema, versions
from handler.plan.admit import CRD, Desired
from handler.plan.adopt import is_member
from handler.plan.compare import Comparison
from handler.plan.judge import Judge
from handler.plan.owned import managed_fields
from handler.run.coming import Coming
from handler.run.expiring import REASON, Known, has_run
from handler.run.stand_in import StandIn, is_by_schema, mistakes_of

NO_DRY_RUN = "does not support dry run"
_BY_SCHEMA = (400, 404, 422)
_ROLE = ApiRefused(Problem("", "cannot change roleRef"), status=422, reason="Invalid")
"""The server's words (rbac/validation) for a binding that names another role."""

Finding = Change | Problem | AccessDenied
"""What comes of one object: a change, a mistake of its author's, or a right that the operator must give."""


@dataclass
class Decision:
    """One round of questions to the server. `absent`: declared objects that don't live; `written`: what this run has written since.

    `ran`: Jobs that may be done where they aren't there.
    """

    target: Target
    applyset: str
    api: Api
    is_served: Callable[[Resource], bool]
    coming: Coming
    comparison: Comparison
    notes: list[str]
    ran: Known = frozenset()
    absent: frozenset[Identity] = field(default=frozenset())
    written: Collection[Identity] = frozenset()
    _stand_in: StandIn = field(init=False)

    def __post_init__(self) -> None:
        """Know where what can't be tried in its own Namespace is tried."""
        self._stand_in = StandIn(self.target, self.api)

    def decide(self) -> list[Finding]:
        """Dry-run, in parallel, everything that isn't known to be the same."""
        absent = self.comparison.absent()
        if self.target.validate == "none" or self.target.adopt == "never":
            self._probe(absent)
            absent = self.comparison.absent()
        done = [item for item in absent if has_run(item, self.ran)]
        absent = tuple(item for item in absent if item not in done)
        self.absent = self._stand_in.absent = frozenset(item.identity for item in absent)
        known = {**self.comparison.undecided, **self.comparison.unowned}
        tasks = [partial(self._absent, item) for item in absent]
        tasks += [partial(self.present, self.comparison.desired[identity], live) for identity, live in known.items()]
        found: list[Finding] = [Change(Action.UNCHANGED, item.identity, reason=REASON, manifest=item.manifest) for item in done]
        for answer in parallel(tasks):
            if isinstance(answer, AnnealError):
                raise answer
            found += answer
        return found

    def _probe(self, absent: Sequence[Desired]) -> None:
        """Look for declared objects that exist without our label."""
        wanted = [(i.resource, i.identity.namespace, i.identity.name) for i in absent if self.is_served(i.resource)]
        self.comparison.probe(probe(self.api, wanted).values())

    @property
    def judge(self) -> Judge:
        """Who judges one object."""
        return Judge(self.target, self.applyset)

    def _absent(self, item: Desired) -> list[Finding]:
        """Judge an object that no LIST showed: new, deferred, or there without being ours."""
        waits_for = next((need for need in item.needs if need in self.absent), None)
        if waits_for is not None:
            return [*self._deferred_problems(item, waits_for), self.judge.absent(item, deferred=True)]
        if self.target.validate == "none":
            return [self.judge.absent(item)]
        try:
            answer = DryRunner(self.api).check(item.resource, item.manifest.body())
        except (ApiRefused, AccessDenied) as error:
            return self._absent_refused(item, error)
        if not answer["metadata"].get("resourceVersion"):
            return [self.judge.absent(item)]
        found = probe(self.api, [(item.resource, item.identity.namespace, item.identity.name)])
        return [outcome for live in found.values() for outcome in self.present(item, live)] or [self.judge.absent(item)]

    def _absent_refused(self, item: Desired, error: ApiRefused | AccessDenied) -> list[Finding]:
        """Take a refused dry-run of a new object: not possible here, to be tried in its stage, or a mistake."""
        if NO_DRY_RUN in str(error):
            self.notes.append(f"{item.identity}: an admission webhook does not support dry run; checked when it is applied")
            return [self.judge.absent(item)]
        if self.named_first(item, error):
            return [*mistakes_of(self.api, item, missing.without(item)), self.judge.absent(item, deferred=True)]
        changing = self._changing_crd(item)
        if changing and is_by_schema(error, *_BY_SCHEMA):
            return [*schema.check(item, self.comparison.desired[changing].manifest), self.judge.absent(item, deferred=True)]
        return self._there_already(item, error) or self.mistakes(item, error)

    # --- what an object names
    def named_first(self, item: Desired, error: ApiRefused | AccessDenied) -> Identity | None:
        """Return what the server misses of what an object names, where this run creates it before that object; note it."""
        found = self._named(item, error)
        if not found or not all(need and self.coming.is_before(need, item.identity) for _, need in found):
            return None
        self.notes.append(f"{item.identity}: checked by the server once {found[0][1]} exists")
        return found[0][1]

    def _named(self, item: Desired, error: ApiRefused | AccessDenied) -> list[tuple[missing.Missing, Identity | None]]:
        """Return what the server misses, and which of the objects that this run creates that is."""
        if isinstance(error, AccessDenied):
            return []
        created = [one for identity, one in self.comparison.desired.items() if identity in self.absent or identity in self._new_hooks]
        said = "; ".join(problem.message for problem in error.problems)
        return [(each, missing.among(each, item, created)) for each in missing.read(said)]

    @property
    def _new_hooks(self) -> set[Identity]:
        """The hooks that this run creates: they have a place in it, and nothing lives under their names."""
        hooks = {identity for identity, item in self.comparison.desired.items() if item.mode is Mode.HOOK}
        return (hooks & self.coming.places.keys()) - self.comparison.hooks.keys()

    def mistakes(self, item: Desired, error: ApiRefused | AccessDenied) -> list[Finding]:
        """Return a refusal as its author's mistakes, or as rights that are missing; with the way out where something named is."""
        found = _placed(error, item)
        for each, need in self._named(item, error):
            fix = missing.put_before(need, item.identity) if need else missing.declare(each, item)
            found = [replace(one, fix=one.fix or fix) if isinstance(one, Problem) else one for one in found]
        return found

    def _there_already(self, item: Desired, error: ApiRefused | AccessDenied) -> list[Finding]:
        """Judge what lives under a declared name without our label, where it may be why the dry-run was invalid; else nothing."""
        if not isinstance(error, ApiRefused) or error.status != 422:
            return []
        found = probe(self.api, [(item.resource, item.identity.namespace, item.identity.name)])
        return [outcome for live in found.values() for outcome in self.present(item, live)]

    def _changing_crd(self, item: Desired) -> Identity | None:
        """Return the CRD of an object when this run still changes it: the server judges by the old one until then."""
        changing = (self.comparison.undecided.keys() | self.comparison.unowned.keys()) - set(self.written)
        return next((need for need in item.needs if need.group_kind == CRD and need in changing), None)

    def postponed(self, item: Desired) -> list[Finding]:
        """Check what can be checked now of a hook's object that can't be dry-run before its CRD or Namespace is there."""
        need = next((need for need in item.needs if need in self.absent), None)
        return self._deferred_problems(item, need) if need else []

    def _deferred_problems(self, item: Desired, need: Identity) -> list[Finding]:
        """Check what can be checked now of an object whose CRD or Namespace this run creates."""
        if self.target.validate == "none":
            return []
        if need.group_kind == CRD:
            return list(schema.check(item, self.comparison.desired[need].manifest))
        stand_in = self._stand_in.name
        if not stand_in:
            self.notes.append(f"{item.identity}: checked by the server once {need} exists")
            return []
        body = item.manifest.body()
        body["metadata"]["namespace"] = stand_in
        try:
            DryRunner(self.api).check(item.resource, body)
        except (ApiRefused, AccessDenied) as error:
            return self._refused_in_stand_in(item, need, error)
        return []

    def _refused_in_stand_in(self, item: Desired, need: Identity, error: ApiRefused | AccessDenied) -> list[Finding]:
        """Take a refusal in another namespace than the object's own, which is only being created: what holds there, too, is a mistake."""
        found = self._named(item, error)
        if found and not all(one and self.coming.is_before(one, item.identity) for _, one in found):
            return [
                replace(each, message=_elsewhere(need, found)) if isinstance(each, Problem) else each for each in self.mistakes(item, error)
            ]
        if not found and is_by_schema(error, 422):
            return [Problem(str(item.identity), p.message, item.manifest.place, p.fix) for p in error.problems]
        self.notes.append(f"{item.identity}: checked by the server once {need} exists")
        return [*mistakes_of(self.api, item, missing.without(item), self._stand_in.name)] if found else []

    def present(self, item: Desired, live: dict[str, Any]) -> list[Finding]:
        """Judge an object that is there: whose it is, then what an apply would make of it; one that is only created is left alone."""
        if item.mode is Mode.KEEP:
            return [self.judge.kept(item, live)]
        ours = is_member(live, item.identity, self.target.name, self.applyset)
        refusal = None if ours else self.judge.refusal_to_adopt(item, live)
        if refusal:
            return [refusal]
        applied = self.comparison.effective(item, live)
        if self._is_forgotten(applied, live):
            return self._moved(applied, live)
        try:
            wanted = DryRunner(self.api).apply(applied.resource, applied.manifest.body())
        except (ApiRefused, AccessDenied) as error:
            return self._present_refused(applied, live, error)
        return [self.judge.present(applied, live, wanted)]

    def _present_refused(self, item: Desired, live: dict[str, Any], error: ApiRefused | AccessDenied) -> list[Finding]:
        """Take a refused dry-run of a live object: recreate where allowed, try it in its stage, else a mistake."""
        if NO_DRY_RUN in str(error):
            self.notes.append(f"{item.identity}: an admission webhook does not support dry run; it is applied as declared")
            return [self.judge.present(item, live, item.manifest.body())]
        if isinstance(error, AccessDenied):
            return _placed(error, item)
        if error.reason == ApiRefused.UNCONVERTED and versions.migrated(live, item.resource.api_version) != managed_fields(live):
            return self._moved(item, live)
        need = self.named_first(item, error)
        if need:
            return [self.judge.refused(item, live, _ROLE) if _is_rebound(item, live) else self._later(item, live, f"{need} comes first")]
        changing = self._changing_crd(item)
        if changing and is_by_schema(error, *_BY_SCHEMA):
            later = self._later(item, live, "its CRD changes first")
            return [*schema.check(item, self.comparison.desired[changing].manifest), later]
        return self.mistakes(item, error) if self._named(item, error) else [self.judge.refused(item, live, error)]

    def _later(self, item: Desired, live: dict[str, Any], reason: str) -> Change:
        """Return the change of a live object that the server can't judge yet."""
        change = self.judge.present(item, live, item.manifest.body())
        return replace(change, action=Action.UPDATE, fields=(), reason=reason, deferred=True)

    # --- other API versions
    def _is_forgotten(self, item: Desired, live: dict[str, Any]) -> bool:
        """Whether our fields are recorded in a version that the kind hasn't any more, or not once this run has changed its CRD."""
        recorded = versions.recorded_in(live)
        if recorded in ("", item.resource.api_version):
            return False
        version = recorded.rpartition("/")[2]
        crd = next((self.comparison.desired[need] for need in item.needs if need.group_kind == CRD), None)
        if crd is None:
            return not self.is_served(replace(item.resource, version=version))
        return version not in [at(each, "name") for each in items_at(crd.manifest.body(), "spec", "versions")]

    def _moved(self, item: Desired, live: dict[str, Any]) -> list[Finding]:
        """Judge an object whose managedFields must be moved to git's version before it can be applied: see `handler.plan.versions`."""
        entries = versions.migrated(live, item.resource.api_version)
        try:
            found = DryRunner(self.api).become(item.resource, live, versions.foreseen(live, item.manifest.body()))
        except (ApiRefused, AccessDenied) as error:
            return _placed(error, item) if isinstance(error, AccessDenied) else [self.judge.refused(item, live, error)]
        change = self.judge.present(item, {**live, "metadata": {**live["metadata"], "managedFields": entries}}, found)
        reason, merged = change.reason or f"was applied in {versions.recorded_in(live)}", change.managed_fields or canonical(entries)
        return [replace(change, action=Action.UPDATE, reason=reason, managed_fields=merged)]


def _is_rebound(item: Desired, live: dict[str, Any]) -> bool:
    """Whether a binding names another role than it does live: the server says that this can't be once it finds that role."""
    body = item.manifest.body()
    return any(at(body, "roleRef", key) != at(live, "roleRef", key) for key in ("kind", "name"))


def _elsewhere(need: Identity, found: Sequence[tuple[missing.Missing, Identity | None]]) -> str:
    """Say what an object names that can't be there when it is written."""
    absent = ", ".join(str(each) for each, _ in found)
    return f"names {absent}, which isn't there when it is created: {need} is only being made"


def _placed(error: ApiRefused | AccessDenied, item: Desired) -> list[Finding]:
    """Return a refusal with the place of its object; who must act stays what it was."""
    problems = [Problem(str(item.identity), p.message, item.manifest.place, p.fix) for p in error.problems]
    return [type(error)(*problems)] if isinstance(error, AccessDenied) else [*problems]
