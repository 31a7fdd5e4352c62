"""Prunes a target and applies nothing: what it deployed and doesn't declare any more, and what the original Kubernixos has left.

    look         read the record, render, plan, search           nothing is written
    carry_out    take the Lease, look again, delete              only what was shown, and is still to go

Law: it is looked again under the Lease, and nothing goes that wasn't shown, by itself or with another. An attempt that is open, a pause,
another cluster, a closure that can't be rendered or applied, or of which nothing lives: each ends it before the first deletion.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

from handler.engine.apply.prune import Pruner
from handler.engine.apply.wait_deleted import unreported
from handler.engine.planner.kubernixos_leftovers import lives, with_leftovers
from handler.engine.planner.planner import Planned
from handler.engine.run import plan_request, revision
from handler.engine.run.context import Round, RunContext
from handler.engine.run.dependencies import Dependencies
from handler.engine.run.errors import RequestRefused, masked_error
from handler.model.errors import AnnealError, StillDeleting
from handler.model.event import Job
from handler.model.names import run_id
from handler.model.plan import Action, Change, within
from handler.state.record import State


@dataclass(frozen=True, slots=True)
class PruneAlone:
    """One such run. `stop`: ends it at the next deletion."""

    deps: Dependencies
    job: Job
    stop: threading.Event

    def look(self) -> Planned:
        """Return the plan; its stages are only compared, its prunes are what goes and what is kept. Raises AnnealError."""
        run = self._run()
        try:
            return self._planned(run)
        except AnnealError as error:
            raise masked_error(error, run.closed) from None

    def carry_out(self, shown: Planned) -> Sequence[Change]:
        """Delete what was shown and is still to go; return what came of each. Raises AnnealError: the rest stays."""
        run = self._run()
        run.lease = self.deps.lock.acquire(wait=self.deps.lease_duration * 1.2, stop=self.stop)
        try:
            return self._deleted(run, shown)
        except AnnealError as error:
            raise masked_error(error, run.closed) from None
        finally:
            run.lease.hand_over()

    def _run(self) -> RunContext:
        return RunContext(self.deps, self.job, self.stop, run_id(self.job.target), Round(self.deps.clock()))

    def _planned(self, run: RunContext) -> Planned:
        run.read(certain=True)
        run.raise_if_suspended()
        if run.state.attempt is not None:
            seen = f"its apply of {run.state.attempt.commit[:12]} hasn't ended, so nothing is pruned"
            raise RequestRefused.of(f"target {self.job.target}", seen, fix="apply it first, and prune then")
        revision.choose(run)
        revision.prove(run)
        inputs = run.inputs()
        planned = plan_request.plan(run, inputs)
        rendered = inputs.prepared.rendered
        return with_leftovers(self.deps.planner, planned, rendered) if rendered.checksum else planned

    def _deleted(self, run: RunContext, shown: Planned) -> Sequence[Change]:
        planned = self._planned(run)
        if not lives(planned):
            seen = "nothing that it declares lives here, so this may be another cluster than the one that it is for; nothing is pruned"
            raise RequestRefused.of(f"target {self.job.target}", seen, fix="apply it first, and prune then")
        agreed = within((change for change in planned.plan.prunes if change.writes), shown.plan.prunes)
        planned = replace(planned, plan=replace(planned.plan, prunes=agreed))
        between = run.between if run.stored.uid else run.fence
        pruner = Pruner(self.deps.planner, planned, run.fence, between, (), unreported, run.wrote)
        left: set[str] = set()
        try:
            pruner.prune()
        except StillDeleting as error:
            left = {each.subject for each in error.problems}
            raise
        finally:
            gone = (change for change in pruner.outcomes if change.action is Action.PRUNE and str(change.identity) not in left)
            self._record(run, {change.uid for change in gone})
        return pruner.outcomes

    def _record(self, run: RunContext, gone: set[str]) -> None:
        """Take what is gone off the record's list of orphans."""

        def without(state: State) -> State:
            return replace(state, orphans=tuple(each for each in state.orphans if each.uid not in gone))

        if run.stored.uid and without(run.state) != run.state:
            with contextlib.suppress(AnnealError):  # the next run sees for itself
                run.record(without)
