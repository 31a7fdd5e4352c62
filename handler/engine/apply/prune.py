"""Deleting, the most dangerous thing we do: in stages, each object under its uid and resourceVersion, each stage gone before the next.

Law: only after every apply of the run succeeded, and only what the plan showed; a moved object is judged again, and so is every Namespace
and CRD, and each undeclared object that may own data, right before its stage goes; a sibling's record is read again where it may declare an
object. What isn't gone in time stops the rest: an operator must live to clear its finalizers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from handler.cluster.live import probe
from handler.cluster.parallel import parallel
from handler.cluster.write import Writer
from handler.engine.apply.let_claims_go import let_claims_go
from handler.engine.apply.wait_deleted import Report, unreported, wait_until_gone
from handler.engine.planner.exclusive_look import is_owner, left_for
from handler.engine.planner.exclusive_needs import Needs
from handler.engine.planner.join_errors import raise_together
from handler.engine.planner.planner import Planned, Planner
from handler.model.errors import Moved, StillDeleting
from handler.model.names import Identity, Resource
from handler.model.plan import Action, Change, Plan
from handler.plan.admission import CRD, NAMESPACE
from handler.plan.prune import prune_stages

_TRIES = 3
_GONE = "is gone already"
_DOUBT = "so nothing is pruned"


@dataclass(slots=True)
class Pruner:
    """Carries out the deletions of one plan. `keep`: uids just applied; `lingering`: gets what lingers; `wrote`: what went."""

    planner: Planner
    planned: Planned
    fence: Callable[[], None]
    between: Callable[[], None]
    keep: Collection[str]
    lingering: Report = unreported
    wrote: Callable[[Sequence[Change]], None] = lambda _: None
    outcomes: list[Change] = field(default_factory=list)

    def prune(self) -> None:
        """Delete the plan's candidates in stages, each gone before the next. Raises StillDeleting: some aren't gone."""
        exclusive = self.planner.exclusive
        over = {change.identity for change in self.outcomes}
        going = [each for each in self.planned.plan.prunes if each.writes and each.uid not in self.keep and each.identity not in over]
        needs = exclusive.needed_again(going)
        going = self._without_needed(going, needs)
        for number, stage in enumerate(prune_stages(going, self.planned.bodies)):
            self.between()
            self._prune_stage(stage, exclusive.looked_again(stage) if number else needs)

    def first(self, going: Sequence[Change]) -> None:
        """Delete these before all else. Raises as `prune`."""
        self.between()
        self._prune_stage(going, self.planner.exclusive.needed_again(going))

    def _prune_stage(self, stage: Sequence[Change], needs: Needs) -> None:
        answers = parallel([partial(self._prune_one, change, needs) for change in stage])
        done = [replace(answer, terminating="") for answer in answers if isinstance(answer, Change)]
        self.outcomes += done
        raise_together(answers, stage)
        self._see_off([change for change in done if change.writes])

    def _see_off(self, going: Sequence[Change]) -> None:
        """Wait until what was deleted is gone, and tell what is, also where the run ends while it waits."""
        left: set[str] = set()
        try:
            wanted = [(self._resource(change), change.identity, change.uid) for change in going]
            wait_until_gone(self.planner.api, wanted, self.fence, self.lingering)
        except StillDeleting as error:
            left = {each.subject for each in error.problems}
            raise
        finally:
            self.wrote([change for change in going if str(change.identity) not in left])

    def _without_needed(self, going: Sequence[Change], needs: Needs) -> list[Change]:
        """Leave orphans that something needs since the plan has looked."""
        kept = {each.uid: why for each in going if each.unmarked and (why := needs.why(each.identity, each.uid))}
        self.outcomes += [replace(each, action=Action.SKIP, reason=left_for(kept[each.uid])) for each in going if each.uid in kept]
        return [each for each in going if each.uid not in kept]

    def keep_all(self, unwritten: Sequence[Identity]) -> None:
        """Leave every candidate, for what was to be written and wasn't may be what replaces it; the next run that writes it prunes."""
        more = f" and {len(unwritten) - 1} more" if len(unwritten) > 1 else ""
        reason = f"{unwritten[0]}{more} wasn't written by its step, {_DOUBT}"
        over = {change.identity for change in self.outcomes}
        left = (each for each in self.planned.plan.prunes if each.writes and each.identity not in over)
        self.outcomes += [replace(each, action=Action.SKIP, reason=reason) for each in left]

    def _prune_one(self, change: Change, needs: Needs, tries: int = _TRIES) -> Change:
        resource = self._resource(change)
        if change.identity.group_kind in (CRD, NAMESPACE) or is_owner(change):
            again = self._looked_at_again(change, resource, needs)
            if again is None:
                return replace(change, reason=_GONE)
            change = again
        if not change.writes or change.terminating:
            return change
        sibling, reason = self.planned.decision.handover.doubt(change.identity)
        if sibling:
            return replace(change, action=Action.SKIP, reason=reason, sibling=sibling)
        try:
            self._delete(change, resource)
        except Moved:
            self.fence()
            if tries == 1:
                raise
            needs = self.planner.exclusive.looked_again([change])
            again = self._looked_at_again(change, resource, needs)
            if again is None:
                return replace(change, reason=_GONE)
            return self._prune_one(again, needs, tries - 1) if again.writes else again
        return change

    def _delete(self, change: Change, resource: Resource) -> None:
        api, one = self.planner.api, change.identity
        named = {gone.identity for gone in change.takes}
        version = let_claims_go(api, self.fence, resource, one, change.uid, change.resource_version, named)
        Writer(api, self.fence).delete(resource, one, change.uid, version, "Background")

    def _looked_at_again(self, change: Change, resource: Resource, needs: Needs) -> Change | None:
        """Judge a candidate by what lives now; None: it is gone already."""
        found = probe(self.planner.api, [(resource, change.identity.namespace, change.identity.name)])
        live = next(iter(found.values()), None)
        if live is None or live["metadata"]["uid"] != change.uid:
            return None
        if change.unmarked:
            again = self.planner.exclusive.judged_again(change, live, self.planned.desired, needs)
        else:
            again = self.planner.prune_judge.judged_again(live, self.planned.desired, self.planned.leftovers, self._went)
        return replace(again, takes=change.takes)

    @property
    def _went(self) -> frozenset[str]:
        """The uids of what was deleted, and may be there still."""
        return frozenset(gone.uid for each in self.outcomes for gone in each.gone)

    def _resource(self, change: Change) -> Resource:
        found = self.planner.discovery.preferred(change.identity.group_kind)
        if found is None:
            raise Moved.of(str(change.identity), "its kind is no longer served")
        return found


def doubted(plan: Plan) -> str:
    """Return why a run has pruned nothing although it might, from the plan as it came out; empty: it has."""
    return next((change.reason for change in plan.prunes if change.reason.endswith(_DOUBT)), "")
