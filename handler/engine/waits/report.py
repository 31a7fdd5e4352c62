"""The unhealthy objects of a wait, for the record and for its error: what each lacks, the worst with their evidence.

Law: a look that finds what an earlier run of the same commit reported uses the same words, so that the history has one entry of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from handler.engine.run.context import RunContext
from handler.engine.waits.tracker import Tracker
from handler.health.diagnosis import STILL, Live, Subject
from handler.health.kinds.pods import WITH_PODS, pods_of
from handler.model.errors import Problem, RolloutFailed
from handler.model.health import Health, Status
from handler.model.names import Identity
from handler.model.result import Outcome
from handler.model.tree import printable
from handler.plan.admission import Desired

Left = Sequence[tuple[Desired, Health]]
SHOWN = 10
"""Objects that an error names."""
RECORDED = 200
"""Objects that the record names."""
MESSAGE = 300
"""Characters of a verdict."""
_FAILED = "failed"
UNHEALTHY = "isn't healthy"
"""How what a wait says of what hasn't failed begins."""


@dataclass(slots=True)
class UnhealthyReport:
    """Reports one run's unhealthy objects. `known`: the lines of an earlier run of the same commit, by object."""

    run: RunContext
    known: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        state = self.run.state
        last = state.history[0] if state.history else None
        same = last is not None and (last.outcome, last.commit, last.code) == (Outcome.FAILED, self.run.revision.commit, RolloutFailed.code)
        lines = [line.partition(": ") for line in state.status.unhealthy] if same and not self.run.force else []
        self.known = {subject: said for subject, _, said in lines}

    def lines(self, left: Left, evidence: Mapping[Identity, str]) -> tuple[str, ...]:
        """Return a line for each object, as it stands now, with what is known to explain it."""
        found = [(item.identity, self._missing(health)) for item, health in left[:RECORDED]]
        return tuple(f"{identity}: {'; '.join(filter(None, (missing, evidence.get(identity))))}" for identity, missing in found)

    def subjects(self, tracker: Tracker, stood: float = 0.0) -> list[Subject]:
        """Return what isn't healthy, for a look at what explains it; `stood`: seconds for which other runs saw all of it as it is."""
        return [
            Subject(
                item.identity,
                tracker.live.get(item.identity, Live()),
                self._missing(health),
                max(tracker.stands(item.identity), stood) >= STILL,
                pods_of(item.identity, item.manifest.body()),
            )
            for item, health in tracker.unhealthy()[:RECORDED]
        ]

    def failure(self, tracker: Tracker, why: str, explain: Callable[[Sequence[Subject]], Mapping[Identity, str]]) -> RolloutFailed:
        """Return a wait's error, its lines left to the record. `why`: words for what hasn't failed; empty: only what has is reported."""
        left = tracker.unhealthy()
        texts = {item.identity: self._text(item, health, why) for item, health in left[:RECORDED]}
        blamed = [(item, health) for item, health in left if why or health.status is Status.FAILED]
        news = {item.identity for item, _ in blamed[:SHOWN] if texts[item.identity] != self.known.get(str(item.identity))}
        subjects = [each for each in self.subjects(tracker) if each.identity in news]
        found = explain(sorted(subjects, key=lambda each: each.identity.group_kind not in WITH_PODS)[:SHOWN])
        texts |= {identity: f"{texts[identity]}; {text}" for identity, text in found.items() if text}
        self.leave(f"{identity}: {text}" for identity, text in texts.items())
        return RolloutFailed(*self._problems(blamed, texts))

    def leave(self, lines: Iterable[str]) -> None:
        """Leave lines to the record, beside those of other steps that end at the same time."""
        with self.run.writing:
            self.run.round.unhealthy = tuple(dict.fromkeys((*(self.run.round.unhealthy or ()), *lines)))[:RECORDED]

    def _problems(self, left: Left, texts: Mapping[Identity, str]) -> list[Problem]:
        shown = [Problem(str(item.identity), texts[item.identity], item.manifest.place) for item, _ in left[:SHOWN]]
        if len(left) > SHOWN:
            name, more = self.run.job.target, len(left) - SHOWN
            seen = f"{more} more object{' is' if more == 1 else 's are'} not healthy"
            shown.append(Problem(f"target {name}", seen, fix=f"see them all: anneal status {name} -o json"))
        return shown

    def _text(self, item: Desired, health: Health, why: str) -> str:
        """Return the line of one object: the words of an earlier run, if what happened is the same."""
        failed, known = health.status is Status.FAILED, self.known.get(str(item.identity), "")
        if (failed or why) and known.startswith(_FAILED if failed else UNHEALTHY):
            return known
        return ": ".join(filter(None, (_FAILED if failed else why, self._missing(health))))

    def _missing(self, health: Health) -> str:
        return printable(self.run.mask(health.message or str(health.status)), MESSAGE)
