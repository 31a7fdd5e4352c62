"""`Canary`: try a Deployment's new pods beside its old ones, a growing share of them, before the Deployment itself rolls.

    scale     for each of `steps`: the canary has its share of the replicas, and is healthy
    hold      for that step's time, under all checks; each of `success` must pass at its end
    promote   the Deployment is brought to what git declares, and is healthy
    remove    the canary goes, and is waited for until it is gone

Law: until it is promoted nothing of the stable Deployment is written. Whatever fails, the canary goes first, then the step fails. Each
phase is remembered before what makes it true: a killed run is gone on with there. A Deployment that doesn't run yet, whose pods stay as
they are, or that goes back, is written at once and waited for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handler.config.settings import Wait
from handler.config.value_formats import duration
from handler.engine.planner import canaries
from handler.engine.rollout_runner.actions.stage import Object, StepStage
from handler.engine.rollout_runner.check_runner import WatchedStep, check
from handler.engine.run.errors import ROLLOUT_FAILURES
from handler.engine.run.plan_request import is_gradual
from handler.model.errors import AnnealError, Moved, PlanRefused, RolloutFailed
from handler.model.names import Identity
from handler.model.rollout import Check, Mode, Step
from handler.plan.admission import Desired
from handler.plan.inventory import is_member
from handler.rollout import canary
from handler.rollout.canary import CanaryMark, CanaryPhase
from handler.state.record_format import seconds_of

_TRIES = 3
Checks = tuple[Check, ...]


class Canary:
    """The plan's change of a Deployment, tried on a share of its replicas first."""

    mode = Mode.APPLY
    keys: Sequence[str] = canary.KEYS

    def read(self, raw: Mapping[str, Any], field: str) -> Mapping[str, Any]:
        """Read `steps`."""
        return canary.read(raw, field)

    def judged_by(self, success: Sequence[Check]) -> Checks:
        """Give metrics a limit of failures: see `canary.judged_by`."""
        return canary.judged_by(success)

    def act(self, stage: StepStage, step: Step) -> str:
        """Try, hold, promote; or write at once what isn't to be tried."""
        item = stage.desired
        assert item is not None  # noqa: S101 - the mode makes it desired
        return _Trial(stage, step, item).go()

    def leave(self, stage: StepStage, step: Step) -> None:
        """The rollout has failed elsewhere: the canary goes with it."""
        if stage.desired is not None:
            _Trial(stage, step, stage.desired).leave()


@dataclass(frozen=True, slots=True)
class _Trial:
    stage: StepStage
    step: Step
    item: Desired

    @property
    def _identity(self) -> Identity:
        return canary.identity_of_canary(self.step.identity)

    @property
    def _steps(self) -> Sequence[tuple[int, float]]:
        return canary.weights(self.step.options)

    def go(self) -> str:
        mark = self._known()
        if mark is None and not self._is_needed():
            self._remove()
            self.stage.apply()
            return self._watch(self.item, self.stage.since, "written at once")
        if mark and mark.phase is CanaryPhase.REMOVE and mark.reason:
            self._refuse(mark.reason)
            raise RolloutFailed.of(str(self._identity), mark.reason, place=self.item.manifest.place)
        try:
            seen = self._tried(mark or self._at(CanaryPhase.SCALE, 0))
        except ROLLOUT_FAILURES as error:
            self._refuse(self._at(CanaryPhase.REMOVE, 0, self._reason(error)).reason)
            raise
        return seen

    def leave(self) -> None:
        self._remove(waits=False)

    def _known(self) -> CanaryMark | None:
        """Return where an earlier run left it; where the canary it held is gone, it comes to its share anew."""
        mark = CanaryMark.of(self.stage.mark)
        if mark is None or mark.index >= len(self._steps):
            return None
        return self._at(CanaryPhase.SCALE, mark.index) if mark.phase is CanaryPhase.HOLD and self._live() is None else mark

    def _at(self, phase: CanaryPhase, index: int, reason: str = "") -> CanaryMark:
        mark = CanaryMark(phase, index, canary.moment(self.stage.now), reason)
        self.stage.remember(mark.text(), mark.share(self.step.options))
        return mark

    def _is_needed(self) -> bool:
        if not is_gradual(self.stage.waits.run, self.stage.journal.inputs.prepared.digest):
            return False
        live = self._stable()
        return live is not None and canary.is_needed(live, self._wanted(live))

    def _tried(self, mark: CanaryMark) -> str:
        last = len(self._steps) - 1
        if mark.phase in (CanaryPhase.SCALE, CanaryPhase.HOLD):
            for index in range(mark.index, last + 1):
                self._hold(mark if index == mark.index else self._at(CanaryPhase.SCALE, index))
            mark = self._at(CanaryPhase.PROMOTE, last)
        seen = ""
        if mark.phase is CanaryPhase.PROMOTE:
            self.stage.apply()
            seen = self._watch(self.item, seconds_of(mark.since), "promoted", failure=self.step.failure)
            self._at(CanaryPhase.REMOVE, last)
        self._remove()
        return seen

    # --- up
    def _hold(self, mark: CanaryMark) -> None:
        weight, seconds = self._steps[mark.index]
        made = self._scale(weight)
        if mark.phase is CanaryPhase.SCALE:
            self._watch(made, seconds_of(mark.since), f"canary at {weight} %", failure=self.step.failure)
            mark = self._at(CanaryPhase.HOLD, mark.index)
        what = f"canary at {weight} % for {duration(seconds)}"
        self._watch(made, seconds_of(mark.since), what, self.step.success, self.step.failure, seconds)

    def _scale(self, weight: int) -> Desired:
        for tries in range(_TRIES, 0, -1):
            stable = self._stable()
            if stable is None:
                raise RolloutFailed.of(str(self.step.identity), "was deleted while its canary was tried", place=self.item.manifest.place)
            count = canary.replicas(canary.replicas_of(stable), weight)
            made = canaries.composed(self.item, self._wanted(stable), self.stage.target.name, count)
            try:
                self.stage.write(made, self._vacant(made))
            except Moved:
                if tries == 1:
                    raise
                self.stage.beat()
            else:
                return made
        raise AssertionError  # pragma: no cover - the last try raises

    def _vacant(self, made: Desired) -> Object | None:
        """Return the canary that is there, ours, once one that is being deleted is gone. Raises PlanRefused where the name is another's."""
        live = self._live()
        if live is not None and not self._is_ours(live):
            raise PlanRefused(canaries.taken(made.identity, made))
        if live is not None and live["metadata"].get("deletionTimestamp"):
            self.stage.gone(made.resource, made.identity, str(live["metadata"]["uid"]))
            return None
        return live

    def _watch(self, item: Desired, since: float, what: str, success: Checks = (), failure: Checks = (), hold: float = 0.0) -> str:
        limits = self.stage.target.wait or Wait()
        timeouts = {"timeout": hold + limits.timeout, "progressTimeout": limits.progress_timeout, "pollInterval": 5.0}
        watched = WatchedStep(
            self.stage.kept(f"{self.stage.title}: {what}", since),
            item.resource,
            item.identity,
            (Check("healthy", "healthy", timeouts), *success),
            failure,
            generation=self.stage.applier.stored.generation(item.identity),
            place=item.manifest.place,
            hold=hold,
        )
        return check(self.stage.waits, watched, self.stage.beat, lambda seen: self.stage.report(f"{what}: {seen}"))

    # --- away
    def _refuse(self, reason: str) -> None:
        self.stage.report(f"the canary is removed: {reason}")
        self._remove()

    def _remove(self, *, waits: bool = True) -> None:
        live = self._live()
        if live is None or not self._is_ours(live):
            return
        uid = str(live["metadata"]["uid"])
        if waits:
            self.stage.remove(self.item.resource, self._identity, uid)
        else:
            self.stage.writer.delete(self.item.resource, self._identity, uid, propagation="Foreground")

    def _reason(self, error: AnnealError) -> str:
        own = str(self._identity)
        texts = [each.message if each.subject == own else f"{each.subject}: {each.message}" for each in error.problems]
        return " ".join("; ".join(texts).split()) or "failed"

    # --- what lives
    def _wanted(self, live: Object) -> Object:
        return canaries.wanted_of(self.stage.applier.planned.decision.comparison, self.item, live, self.stage.dry_runner)

    def _stable(self) -> Object | None:
        return self.stage.live(self.item.resource, self.step.identity)

    def _live(self) -> Object | None:
        return self.stage.live(self.item.resource, self._identity)

    def _is_ours(self, live: Object) -> bool:
        return canaries.is_canary(live) and is_member(live, self._identity, self.stage.ours)
