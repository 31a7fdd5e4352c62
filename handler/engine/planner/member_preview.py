"""What a merge makes of one member of a target, as all who read its pull request may see it.

    where live differs from git already   live beside what an apply of the declaration before the merge makes of it
    what the merge changes                git's two declarations beside each other (`handler.plan.visible_fields`)
    what the server refuses of that       as if it were created, for that looks at nothing that lives; then beside what lives, where each
                                          value stays that mustn't be compared
    an immutable field that changes       makes it anew or is refused, as in a run: by the server's words, without it by git alone

Law: what is returned depends on what lives only where that may be shown, and never on whether a value that the merge brings equals it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from handler.cluster.api import Api
from handler.cluster.write import DryRunner
from handler.model.errors import AccessDenied, ApiRefused, Moved, Problem, QuotaExceeded
from handler.model.manifest import at, items_at
from handler.model.names import GroupKind, Identity, uid_and_version
from handler.model.plan import Action, Change, Gone
from handler.model.rollout import APPLIED
from handler.plan import immutable_fields
from handler.plan.admission import Desired
from handler.plan.compare import Comparison
from handler.plan.ignore import Ignoring, annotated, without
from handler.plan.judge import Judge, is_immutable, moved
from handler.plan.retention import STATEFUL_SET, lost_by_write
from handler.plan.takeover import foreseen
from handler.plan.visible_fields import MergedObject

Object = dict[str, Any]
Refusal = ApiRefused | AccessDenied
Finding = Change | Problem
_SERVICE = GroupKind("", "Service")
_ALLOCATED, _HEADLESS = ("clusterIP", "clusterIPs", "healthCheckNodePort"), ("None", ["None"])


@dataclass(frozen=True, slots=True)
class MemberPreview:
    """`before`, `item`: what git declares before and after the merge; `live`: what lives of it; `after`: what is left to others then.

    `told`: writes a refusal as all may read it, with a way out; `is_unjudged`: whether one says nothing of an object. `server`: None: none
    is asked. `deployed`: what `before` declares was applied last. `unsure`: texts that stand for values which aren't in git.
    """

    judge: Judge
    comparison: Comparison
    after: Ignoring
    before: Desired
    item: Desired
    live: Object
    told: Callable[[Refusal, Desired, str], Problem]
    is_unjudged: Callable[[Refusal, Identity], bool]
    server: Api | None = None
    deployed: bool = False
    unsure: tuple[str, ...] = ()

    def by_git(self) -> Finding | None:
        """Return what git alone says is refused or made anew; None: nothing is certain."""
        now, then = self.before.manifest.body(), self.item.manifest.body()
        refusal = immutable_fields.refusal(self.item.identity.group_kind, now, then, self.unsure)
        return self.judge.refused(self.item, self.live, refusal) if refusal else None

    def finding(self) -> Finding:
        """Return what becomes of the member."""
        merged, (wanted, error) = self._merged(), self._wanted()
        is_data = immutable_fields.is_data(self.item.identity.group_kind, self.before.manifest.body())
        found = self.by_git() if self.server is None or is_data else None
        if found is None and self._is_touched and self.server:
            found = self._judged(DryRunner(self.server), merged)
        elif found is None and error:
            found = self._beside(error, merged)
        if found:
            return replace(found, fields=tuple(merged.changes())) if isinstance(found, Change) else found
        drift = merged.drift(wanted, settled=self.deployed and self.server is None) if wanted else ()
        reason, fields = moved(self.item, self.live), tuple(dict.fromkeys((*merged.changes(), *drift)))
        action = Action.UPDATE if fields or reason else Action.UNCHANGED
        change = Change(action, self.item.identity, *uid_and_version(self.live), reason, fields, self.item.manifest)
        return replace(change, takes=self._lost(merged)) if change.writes else change

    def _lost(self, merged: MergedObject) -> tuple[Gone, ...]:
        """Return what controllers delete because of the merge: by what may be seen of live, and by git alone."""
        found = lost_by_write(self.live, foreseen(self.live, merged.held(self._effective), None))
        declared = self.before.manifest.body(), self.item.manifest.body()
        return tuple(dict.fromkeys((*found, *(lost_by_write(*declared) if self.item.identity.group_kind == STATEFUL_SET else ()))))

    @property
    def _effective(self) -> Object:
        return self.after.effective(self.item.identity, self.item.manifest.body(), self.live)

    @property
    def _is_touched(self) -> bool:
        return self.before.manifest.raw != self.item.manifest.raw

    def _merged(self) -> MergedObject:
        """Return the two declarations without what is left to others: before the merge, where that is all, there is none."""
        identity, live, then = self.item.identity, self.live, self.item.manifest.body()
        later = self.after.pointers(identity, then, live)
        earlier = [*self.comparison.ignoring.pointers(identity, self.before.manifest.body(), live), *annotated(live)]

        def now() -> Object:
            return self.before.manifest.body() if self.before.mode in APPLIED else {"metadata": then["metadata"]}

        without_later = without(now(), live, [*earlier, *later])
        return MergedObject(identity.group_kind, live, without(now(), live, earlier), without(then, live, later), without_later)

    def _wanted(self) -> tuple[Object | None, Refusal | None]:
        """Return what an apply of the declaration before the merge makes of live, None: nothing; and why the server refuses it."""
        if self.item.identity in self.comparison.same or self.before.mode not in APPLIED:
            return None, None
        base = self.comparison.effective(self.before, self.live)
        body = base.manifest.body()
        taken = self.comparison.taken_over(self.item.identity, body, self.live, adopted=False)
        if self.server:
            try:
                answer = DryRunner(self.server).apply(base.resource, body)
            except (ApiRefused, AccessDenied) as error:
                return foreseen(self.live, body, taken), error
            return taken.after(answer) if taken else answer, None
        return foreseen(self.live, body, taken), None

    # --- judged by the server
    def _judged(self, runner: DryRunner, merged: MergedObject) -> Finding | None:
        """Return what the server refuses of what the merge changes, or would have made anew; None: nothing that may be seen."""
        alone = refused_alone(runner, self.item)
        if alone and self.is_unjudged(alone, self.item.identity):
            return self.by_git()
        if alone and not _is_alike(alone, refused_alone(runner, self.before)):
            return self.told(alone, self.item, "")
        try:
            runner.apply(self.item.resource, merged.held(self._effective))
        except (ApiRefused, AccessDenied) as error:
            return self._beside(error, merged)
        return None

    def _beside(self, error: Refusal, merged: MergedObject) -> Finding | None:
        """Return what a refusal beside what lives makes of the object; None: it may speak of what isn't to be seen."""
        if self.is_unjudged(error, self.item.identity):
            return self.by_git()
        if isinstance(error, ApiRefused) and is_immutable(error):
            found = self.judge.refused(self.item, self.live, error)
            return found if isinstance(found, Change) else self.told(error, self.item, found.fix)
        causes = error.causes if isinstance(error, ApiRefused) and self._is_touched else ()
        return self.told(error, self.item, "") if all(merged.shows(each.field) for each in causes) else None


def refused_alone(runner: DryRunner, item: Desired, *, lives: bool = True) -> Refusal | None:
    """Return why the server refuses to create an object, whatever lives under its name, of which not even that is said.

    Nor is an address or a port asked for: that one is taken would say what else lives. `lives`: a member does, and has its room already.
    """
    body = item.manifest.body()
    if item.identity.group_kind == _SERVICE:
        for holder, names in ((at(body, "spec"), _ALLOCATED), *((port, ("nodePort",)) for port in items_at(body, "spec", "ports"))):
            for name in names if isinstance(holder, dict) else ():
                holder.pop(name, None) if holder.get(name) not in _HEADLESS else None
    try:
        runner.create(item.resource, body)
    except Moved:
        return None
    except (ApiRefused, AccessDenied) as error:
        return None if lives and isinstance(error, QuotaExceeded) else error
    return None


def _is_alike(error: Refusal, before: Refusal | None) -> bool:
    """Whether the server says as much of the object as it was before the merge: then it can't be judged by itself."""
    return type(error) is type(before) and getattr(error, "status", 0) == getattr(before, "status", 0)
