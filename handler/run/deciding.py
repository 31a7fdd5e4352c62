"""What the server says of the objects that the LISTs couldn't decide: dry-runs in parallel, all mistakes at once.

Deferred are only objects whose Namespace or CRD this run creates: they are checked by git's own schema or in a stand-in
namespace now, and dry-run when their stage comes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from handler.cluster.api import Api
from handler.cluster.live import probe
from handler.cluster.parallel import parallel
from handler.cluster.write import DryRunner
from handler.config.settings import Target
from handler.model.errors import AccessDenied, AnnealError, ApiRefused, Problem
from handler.model.names import Identity
from handler.model.plan import Action, Change
from handler.model.resource import Resource
from handler.model.rollout import Mode
from handler.plan import schema
from handler.plan.admit import CRD, NAMESPACE, Desired
from handler.plan.adopt import is_member
from handler.plan.compare import Comparison
from handler.plan.judge import Judge

NO_DRY_RUN = "does not support dry run"
_NEEDS_OTHERS = frozenset({"Pod", "RoleBinding", "ClusterRoleBinding"})
"""Kinds whose dry-run fails while what they name (an account, a role) is only being created."""
_NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)

Finding = Change | Problem | AccessDenied
"""What comes of one object: a change, a mistake of its author's, or a right that the operator must give."""


@dataclass
class Decision:
    """One round of questions to the server."""

    target: Target
    applyset: str
    api: Api
    is_served: Callable[[Resource], bool]
    stages: Sequence[Sequence[Desired]]
    comparison: Comparison
    notes: list[str]
    absent: frozenset[Identity] = field(default=frozenset())
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _known_stand_in: str | None = None

    def decide(self) -> list[Finding]:
        """Dry-run, in parallel, everything that isn't known to be the same."""
        missing = self.comparison.absent()
        if self.target.validate == "none" or self.target.adopt == "never":
            self._probe(missing)
            missing = self.comparison.absent()
        self.absent = frozenset(item.identity for item in missing)
        known = {**self.comparison.undecided, **self.comparison.unowned}
        tasks = [partial(self._absent, item) for item in missing]
        tasks += [partial(self.present, self.comparison.desired[identity], live) for identity, live in known.items()]
        found: list[Finding] = []
        for answer in parallel(tasks):
            if isinstance(answer, AnnealError):
                raise answer
            found += answer
        return found

    def _probe(self, missing: Sequence[Desired]) -> None:
        """Look for declared objects that exist without our label."""
        wanted = [(i.resource, i.identity.namespace, i.identity.name) for i in missing if self.is_served(i.resource)]
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
        text = str(error)
        if NO_DRY_RUN in text:
            self.notes.append(f"{item.identity}: an admission webhook does not support dry run; checked when it is applied")
            return [self.judge.absent(item)]
        if item.identity.kind in _NEEDS_OTHERS and item not in self.stages[0]:
            return [self.judge.absent(item, deferred=True)]
        changing = self._changing_crd(item)
        if changing and isinstance(error, ApiRefused):
            return [*schema.check(item, self.comparison.desired[changing].manifest), self.judge.absent(item, deferred=True)]
        return self._there_already(item, error) or _placed(error, item)

    def _there_already(self, item: Desired, error: ApiRefused | AccessDenied) -> list[Finding]:
        """Judge what lives under a declared name without our label, where it may be why the dry-run was invalid; else nothing."""
        if not isinstance(error, ApiRefused) or error.status != 422:
            return []
        found = probe(self.api, [(item.resource, item.identity.namespace, item.identity.name)])
        return [outcome for live in found.values() for outcome in self.present(item, live)]

    def _changing_crd(self, item: Desired) -> Identity | None:
        """Return the CRD of an object when this run changes it: the server judges by the old one until then."""
        changing = self.comparison.undecided.keys() | self.comparison.unowned.keys()
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
        stand_in = self._stand_in
        if not stand_in:
            self.notes.append(f"{item.identity}: checked by the server once {need} exists")
            return []
        body = item.manifest.body()
        body["metadata"]["namespace"] = stand_in
        try:
            DryRunner(self.api).check(item.resource, body)
        except (ApiRefused, AccessDenied) as error:
            if isinstance(error, ApiRefused) and error.status == 422:
                return [Problem(str(item.identity), p.message, item.manifest.place, p.fix) for p in error.problems]
            self.notes.append(f"{item.identity}: checked by the server once {need} exists")
        return []

    @property
    def _stand_in(self) -> str:
        """Return an existing whitelisted namespace in which to dry-run, or nothing. Looked for once.

        The lock is this round's own: that of a `cached_property` is everybody's (Python 3.11), and a slow cluster would hold up the others.
        """
        with self._lock:
            if self._known_stand_in is None:
                self._known_stand_in = self._look_for_stand_in()
            return self._known_stand_in

    def _look_for_stand_in(self) -> str:
        if "*" in self.target.namespaces:
            return "default"
        names = [name for name in self.target.namespaces if Identity("", NAMESPACE.kind, "", name) not in self.absent]
        try:
            found = probe(self.api, [(_NAMESPACES, "", name) for name in names])
        except AccessDenied:
            return ""
        return next((identity.name for identity in sorted(found)), "")

    def present(self, item: Desired, live: dict[str, Any]) -> list[Finding]:
        """Judge an object that is there: whose it is, then what an apply would make of it; one that is only created is left alone."""
        if item.mode is Mode.KEEP:
            return [self.judge.kept(item, live)]
        ours = is_member(live, item.identity, self.target.name, self.applyset)
        refusal = None if ours else self.judge.refusal_to_adopt(item, live)
        if refusal:
            return [refusal]
        applied = self.comparison.effective(item, live)
        try:
            wanted = DryRunner(self.api).apply(applied.resource, applied.manifest.body())
        except (ApiRefused, AccessDenied) as error:
            return self._present_refused(applied, live, error)
        return [self.judge.present(applied, live, wanted)]

    def _present_refused(self, item: Desired, live: dict[str, Any], error: ApiRefused | AccessDenied) -> list[Finding]:
        """Take a refused dry-run of a live object: recreate where allowed, else a mistake."""
        if NO_DRY_RUN in str(error):
            self.notes.append(f"{item.identity}: an admission webhook does not support dry run; it is applied as declared")
            return [self.judge.present(item, live, item.manifest.body())]
        if isinstance(error, AccessDenied):
            return _placed(error, item)
        changing = self._changing_crd(item)
        if changing:
            change = self.judge.present(item, live, item.manifest.body())
            later = replace(change, action=Action.UPDATE, fields=(), reason="its CRD changes first", deferred=True)
            return [*schema.check(item, self.comparison.desired[changing].manifest), later]
        return [self.judge.refused(item, live, error)]


def _placed(error: ApiRefused | AccessDenied, item: Desired) -> list[Finding]:
    """Return a refusal with the place of its object; who must act stays what it was."""
    problems = [Problem(p.subject, p.message, item.manifest.place, p.fix) for p in error.problems]
    return [type(error)(*problems)] if isinstance(error, AccessDenied) else [*problems]
