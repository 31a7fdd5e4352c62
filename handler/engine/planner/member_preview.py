"""What a merge makes of one member of a target, as all who read its pull request may see it.

    where live differs from git already      live beside what an apply of the declaration before the merge makes of it
    what the merge changes                   git's two declarations beside each other (`handler.plan.visible_fields`)
    what the server refuses of that          as if the object were created, for that looks at nothing that lives; then beside what lives, with
                                             each value left as it is there that mustn't be compared
    an immutable field that changes          makes the object anew or is refused, as in a run: by the server's words, without it by git alone

Law: what is returned depends on what lives only where that may be shown, and never on whether a value that the merge brings equals it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from handler.cluster.api import Api
from handler.cluster.write import DryRunner
from handler.model.errors import AccessDenied, ApiRefused, Moved, Problem, QuotaExceeded
from handler.model.manifest import items_at
from handler.model.names import GroupKind, Identity, uid_and_version
from handler.model.plan import Action, Change, FieldChange
from handler.plan import immutable_fields
from handler.plan.admission import Desired
from handler.plan.compare import Comparison
from handler.plan.ignore import Ignoring, annotated, without
from handler.plan.judge import Judge, is_immutable, moved
from handler.plan.takeover import foreseen
from handler.plan.visible_fields import MergedObject

Object = dict[str, Any]
Refusal = ApiRefused | AccessDenied
Finding = Change | Problem
_SERVICE = GroupKind("", "Service")
_ALLOCATED = ("clusterIP", "clusterIPs", "healthCheckNodePort")


@dataclass(frozen=True, slots=True)
class RefusalReader:
    """How refusals are told. `is_unjudged`: whether one says nothing of an object; `told`: as all may read it, with a way out."""

    is_unjudged: Callable[[Refusal, Identity], bool]
    told: Callable[[Refusal, Desired, str], Problem]


@dataclass(frozen=True, slots=True)
class MemberPreview:
    """`before`, `item`: what git declares before and after the merge; `live`: what lives of it. `server`: None: nobody is asked.

    `deployed`: what `before` declares was applied last. `unsure`: texts that stand for values which aren't in git.
    """

    judge: Judge
    comparison: Comparison
    before: Desired
    item: Desired
    live: Object
    merged: MergedObject
    body: Object
    reader: RefusalReader
    server: Api | None = None
    deployed: bool = False
    unsure: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, judge: Judge, comparison: Comparison, ignoring: Ignoring, pair: tuple[Desired, Desired], live: Object, **more: Any
    ) -> MemberPreview:
        """Return the preview of one member. `ignoring`: what is left to others after the merge; `pair`: `before` and `item`."""
        before, item = pair
        identity = item.identity
        now, then = before.manifest.body(), item.manifest.body()
        earlier = [*comparison.ignoring.pointers(identity, now, live), *annotated(live)]
        later = ignoring.pointers(identity, then, live)
        merged = MergedObject(
            identity.group_kind,
            live,
            without(now, live, earlier),
            without(then, live, later),
            without(before.manifest.body(), live, [*earlier, *later]),
        )
        body = ignoring.effective(identity, item.manifest.body(), live)
        return cls(judge, comparison, before, item, live, merged, body, **more)

    def by_git(self) -> Finding | None:
        """Return what git alone says is refused or made anew; None: nothing is certain."""
        refusal = self._immutable()
        return self.judge.refused(self.item, self.live, refusal) if refusal else None

    def finding(self) -> Finding:
        """Return what becomes of the member."""
        is_certain = self.server is None or immutable_fields.is_data(self.item.identity.group_kind, self.before.manifest.body())
        if is_certain and (found := self.by_git()):
            return self._with_fields(found)
        drift = self._drift()
        if isinstance(drift, Change | Problem):
            return drift
        if self._is_touched and self.server and (found := self._judged(DryRunner(self.server))):
            return self._with_fields(found)
        reason, fields = moved(self.item, self.live), tuple(dict.fromkeys((*self.merged.changes(), *drift)))
        action = Action.UPDATE if fields or reason else Action.UNCHANGED
        return Change(action, self.item.identity, *uid_and_version(self.live), reason, fields, self.item.manifest)

    @property
    def _is_touched(self) -> bool:
        return self.before.manifest.raw != self.item.manifest.raw

    def _immutable(self) -> ApiRefused | None:
        kind, now, then = self.item.identity.group_kind, self.before.manifest.body(), self.item.manifest.body()
        return immutable_fields.refusal(kind, now, then, self.unsure)

    def _with_fields(self, found: Finding) -> Finding:
        return replace(found, fields=tuple(self.merged.changes())) if isinstance(found, Change) else found

    def _drift(self) -> tuple[FieldChange, ...] | Finding:
        """Return where live differs from git already, or what the server says of an object that the merge leaves as it is."""
        if self.item.identity in self.comparison.same:
            return ()
        base = self.comparison.effective(self.before, self.live)
        body = base.manifest.body()
        taken = self.comparison.taken_over(self.item.identity, body, self.live, adopted=False)
        wanted = foreseen(self.live, body, taken)
        if self.server:
            try:
                answer = DryRunner(self.server).apply(base.resource, body)
                wanted = taken.after(answer) if taken else answer
            except (ApiRefused, AccessDenied) as error:
                found = None if self._is_touched else self._beside(error)
                if found:
                    return found
        return tuple(self.merged.drift(wanted, settled=self.deployed and self.server is None))

    # --- judged by the server
    def _judged(self, runner: DryRunner) -> Finding | None:
        """Return what the server refuses of what the merge changes, or would have made anew; None: nothing that may be seen."""
        alone = self.alone(runner)
        if alone is not None:
            return self.by_git() if self.reader.is_unjudged(alone, self.item.identity) else self.reader.told(alone, self.item, "")
        try:
            runner.apply(self.item.resource, self.merged.held(self.body))
        except (ApiRefused, AccessDenied) as error:
            return self._beside(error)
        return None

    def alone(self, runner: DryRunner) -> Refusal | None:
        """Return why the server refuses the object by itself, and wouldn't refuse it alike as it was before the merge."""
        error = refused_alone(runner, self.item)
        if error is None or isinstance(error, QuotaExceeded) or self.reader.is_unjudged(error, self.item.identity):
            return None if isinstance(error, QuotaExceeded) else error
        before = refused_alone(runner, self.before)
        return None if before is not None and _is_alike(error, before) else error

    def _beside(self, error: Refusal) -> Finding | None:
        """Return what a refusal beside what lives makes of the object; None: it may speak of what isn't to be seen."""
        if self.reader.is_unjudged(error, self.item.identity):
            return self.by_git()
        if isinstance(error, ApiRefused) and is_immutable(error):
            found = self.judge.refused(self.item, self.live, error)
            return found if isinstance(found, Change) else self.reader.told(error, self.item, found.fix)
        is_hidden = isinstance(error, ApiRefused) and error.status == 422 and self._is_touched and not self._is_own(error)
        return None if is_hidden else self.reader.told(error, self.item, "")

    def _is_own(self, error: ApiRefused) -> bool:
        return all(self.merged.shows(each.field) for each in error.causes)


def refused_alone(runner: DryRunner, item: Desired) -> Refusal | None:
    """Return why the server refuses to create an object, whatever lives under its name; None: it doesn't."""
    try:
        runner.create(item.resource, _unallocated(item.manifest.body()) if item.identity.group_kind == _SERVICE else item.manifest.body())
    except Moved:
        return None
    except (ApiRefused, AccessDenied) as error:
        return error
    return None


def _unallocated(body: Object) -> Object:
    """Return a Service without what the cluster allocates: its own live one has it, which a refusal would tell."""
    spec = body.get("spec")
    if isinstance(spec, dict):
        for name in _ALLOCATED:
            if spec.get(name) not in ("None", ["None"]):
                spec.pop(name, None)
    for port in items_at(body, "spec", "ports"):
        if isinstance(port, dict):
            port.pop("nodePort", None)
    return body


def _is_alike(error: Refusal, before: Refusal) -> bool:
    """Whether a refusal says nothing that the one before doesn't."""
    if not isinstance(error, ApiRefused) or not isinstance(before, ApiRefused):
        return type(error) is type(before)
    known = {(each.field, each.reason) for each in before.causes}
    return error.status == before.status and {(each.field, each.reason) for each in error.causes} <= known
