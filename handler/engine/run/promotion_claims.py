"""What other targets' records say for a commit: which each of them has kept healthy for long enough, and what is missing of the rest. Pure.

    recorded, its reads healthy for `soak` without a break, also if replaced since     proven
    not for long enough yet, not healthy, replaced too early, a run is open            waits
    rolled back from                                                                   never

Law: a record is a claim: it says for how long something was healthy, and not which commit may be deployed
here (`promotion` judges that). The newest soak of a commit counts; what isn't known for certain proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from handler.config.value_formats import duration
from handler.engine.run.other_records import OtherRecord
from handler.model.advice import Advice, advice
from handler.model.health import HealthState
from handler.model.target_matching import repository_key
from handler.state.record import State
from handler.state.record_format import seconds_of, stamp
from handler.state.record_values import Obstacle
from handler.state.soak import COMMITS, MOST, ROLLED_BACK, Soak

ReadsOf = Callable[[State], str]
"""What a commit's tree has, as a digest, under the names that a target's recorded commit has read; empty: that isn't known."""


@dataclass(frozen=True, slots=True)
class Awaited(Obstacle):
    """What a commit waits for at one target. `due`: when that ends by itself, in seconds since the epoch; 0: not by itself.

    `final`: it never ends; `unsure`: the target hasn't recorded the commit, and may have proven what reads the same; `by_hand`: its way out
    is to promote the commit by hand, without force.
    """

    due: float = 0.0
    final: bool = False
    unsure: bool = False
    by_hand: bool = False

    def facts(self) -> dict[str, str]:
        """Return it as JSON."""
        return {"target": self.target, "why": self.why, "fix": self.fix, "due": stamp(self.due) if self.due else ""}


@dataclass(frozen=True, slots=True)
class Claims:
    """The records of all targets that promote to one, as read at `now`. `repositories`: keys of the follower's; `soak`: seconds.

    `elsewhere`: those targets are another installation's.
    """

    records: Sequence[OtherRecord]
    repositories: frozenset[str]
    soak: float
    now: float
    follower: str = ""
    elsewhere: bool = False

    def candidates(self) -> list[str]:
        """Return the commits that were recorded whole, by the first target's order, the newest first; then those of the others."""
        found = (commit for record in self.records if record.state for soak in _soaks(record.state) for commit in soak.commits[:COMMITS])
        return list(dict.fromkeys(found))

    def awaited(self, commit: str, reads_of: ReadsOf) -> tuple[Awaited, ...]:
        """Return what a commit waits for; nothing: every target has proven it.

        That it may be promoted by hand is said only where no other target would have that refused.
        """
        found = tuple(each for record in self.records if (each := self._awaited(record, record.state, commit, reads_of)))
        if all(each.by_hand for each in found):
            return found
        return tuple(replace(each, fix=self.look(each.target), by_hand=False) if each.by_hand else each for each in found)

    @property
    def in_order(self) -> bool:
        """Whether the candidates follow each other by age: of several targets, one's come after another's."""
        return len(self.records) < 2

    def newer(self, commit: str) -> list[str]:
        """Return the candidates that aren't certainly older than a commit, without that."""
        found = self.candidates()
        return found[: found.index(commit)] if self.in_order and commit in found else [each for each in found if each != commit]

    def holding(self, commit: str) -> tuple[Awaited, ...] | None:
        """Return what the newest other commit waits for while a target certainly stays on this one; None: it may have to move.

        For records as summaries show them, without reads and older soaks.
        """
        first: tuple[Awaited, ...] = ()
        for candidate in self.newer(commit):
            found = self.awaited(candidate, lambda _: "")
            if all(each.unsure for each in found):
                return None
            first = first or found
        return first if commit in self.candidates() else None

    def objection(self, commit: str, reads_of: ReadsOf) -> tuple[Awaited, ...]:
        """Return why a commit shouldn't be promoted by hand, however long it has soaked."""
        found = (self._objection(record, record.state, commit, reads_of) for record in self.records)
        return tuple(each for each in found if each)

    def went_back(self, commit: str, since: float = 0.0) -> tuple[Awaited, ...]:
        """Return the targets that have gone back from what the follower has, or is brought to, at this second since the epoch or later."""
        soaks = ((record.target, _newest(record.state, commit)) for record in self.records if record.state)
        gone = (name for name, soak in soaks if soak and soak.ended == ROLLED_BACK and soak.until and seconds_of(soak.until) >= since)
        return tuple(
            Awaited(name, f"was rolled back from {commit[:12]}", advice("to go back, too: anneal rollback {}", self.follower), final=True)
            for name in gone
        )

    def unproven(self) -> tuple[Awaited, ...]:
        """Return why there is no commit at all to promote."""
        return tuple(
            self._unready(each, f"has proven nothing yet{_under_way(each.state)}") if each.state else self._unknown(each)
            for each in self.records
        )

    def _awaited(self, record: OtherRecord, state: State | None, commit: str, reads_of: ReadsOf) -> Awaited | None:
        if state is None or self._is_foreign(state):
            return self._unknown(record)
        soak = _newest(state, commit) or _reading_the_same(state, reads_of)
        if soak is None:
            return replace(self._unrecorded(record, state, commit), unsure=True)
        since, until = self._healthy(record, state, soak)
        lasted = until - since
        if soak.ended == ROLLED_BACK:
            return self._gone_back(record, commit)
        if since and lasted >= self.soak:
            return None
        found = self._unready(record, self._missing(record, soak, commit, since, lasted))
        due = since + self.soak if since and not soak.ended and state.attempt is None else 0.0
        if not (due or soak.ended):
            return found
        now = advice("without waiting for that: {text}", self._by_hand(commit, force=not since))
        return replace(found, fix=now, due=due, by_hand=bool(since))

    def _missing(self, record: OtherRecord, soak: Soak, commit: str, since: float, lasted: float) -> str:
        wanted = duration(self.soak)
        if soak.ended:
            kept = f"kept it healthy for {duration(float(int(lasted)))} of {wanted}" if since else "wasn't healthy"
            return f"has left {commit[:12]}, and {kept}"
        if record.state and record.state.attempt:
            return f"has a run for {record.state.attempt.commit[:12]} under way"
        if record.state and (leads := _asked(record.state)):
            return f"is asked to go to {leads[:12]}"
        if not since:
            health = record.health
            began = f" since {health.since}" if health.since else ""
            return f"{health.state or HealthState.UNKNOWN}{began} with {commit[:12]}"
        return f"has kept {commit[:12]} healthy for {duration(float(int(max(lasted, 0.0))))} of {wanted}"

    def _healthy(self, record: OtherRecord, state: State, soak: Soak) -> tuple[float, float]:
        """Return since when and until when a soak is healthy without a break; 0 and 0: it isn't."""
        if not soak.healthy_since:
            return 0.0, 0.0
        since = seconds_of(soak.healthy_since)
        if soak.until:
            return since, min(seconds_of(soak.until), self.now)
        if record.health.state != HealthState.HEALTHY or _asked(state):
            return 0.0, 0.0
        since = max(since, seconds_of(record.health.since) if record.health.since else 0.0)
        return since, min(seconds_of(state.attempt.since), self.now) if state.attempt else self.now

    def _objection(self, record: OtherRecord, state: State | None, commit: str, reads_of: ReadsOf) -> Awaited | None:
        if state is None or self._is_foreign(state):
            return self._unknown(record)
        soak = _newest(state, commit) or _reading_the_same(state, reads_of)
        if soak is None:
            return self._unrecorded(record, state, commit)
        if soak.ended == ROLLED_BACK:
            return self._gone_back(record, commit)
        since, _ = self._healthy(record, state, soak)
        return None if since else self._unready(record, self._missing(record, soak, commit, since, 0.0))

    def _is_foreign(self, state: State) -> bool:
        return bool(state.repository) and repository_key(state.repository) not in self.repositories

    def _unknown(self, record: OtherRecord) -> Awaited:
        if record.state is None:
            return self._unready(record, "has no record: it never ran")
        url = record.state.repository
        fix = f"if that is the same one, add {url} to `repository.aliases` of {self.follower}"
        return Awaited(record.target, f"its record is of another repository, {url}", fix, final=True)

    def _unrecorded(self, record: OtherRecord, state: State, commit: str) -> Awaited:
        return self._unready(record, f"hasn't recorded {commit[:12]}" + _under_way(state))

    def _gone_back(self, record: OtherRecord, commit: str) -> Awaited:
        fix = advice("push what mends it; all the same: {text}", self._by_hand(commit, force=True))
        return Awaited(record.target, f"was rolled back from {commit[:12]}", fix, final=True)

    def _unready(self, record: OtherRecord, why: str) -> Awaited:
        return Awaited(record.target, why, self.look(record.target))

    def look(self, target: str, verb: str = "status") -> str:
        """Return the command that shows a target that is followed; `-c` keeps another installation's from being completed as ours."""
        template = "in its installation: anneal -c THEIR_FILE {text} {}" if self.elsewhere else "anneal {text} {}"
        return advice(template, Advice(verb), target)

    def _by_hand(self, commit: str, *, force: bool) -> str:
        return advice("anneal promote {} --commit {}{words}", self.follower, commit, ["--force"] if force else [])


def _soaks(state: State) -> Sequence[Soak]:
    """Return as many soaks as are ever written: a record may hold anything."""
    return state.soaks[:MOST]


def _newest(state: State, commit: str) -> Soak | None:
    return next((soak for soak in _soaks(state) if commit in soak.commits[:COMMITS]), None)


def _reading_the_same(state: State, reads_of: ReadsOf) -> Soak | None:
    """Return the soak of the recorded commit, where another one, which wasn't recorded there, reads the same."""
    current = next(iter(state.soaks), None)
    if current is None or current.ended or not state.reads or current.reads != state.reads:
        return None
    return current if reads_of(state) == state.reads else None


def _asked(state: State) -> str:
    """Return the commit that a person, or a failure, lets a target go to; empty: none, or a run does that already."""
    return state.pin.commit if state.pin and state.attempt is None and state.pin.commit != state.commit else ""


def _under_way(state: State) -> str:
    if state.attempt:
        return f"; a run for {state.attempt.commit[:12]} is open since {state.attempt.since}"
    return f"; it has {state.commit[:12]}" if state.commit else "; it has recorded nothing"


def soonest(awaited: Sequence[Awaited]) -> float:
    """Return when all that a commit waits for may be over; 0: something of it doesn't end by itself."""
    return max((each.due for each in awaited), default=0.0) if all(each.due for each in awaited) else 0.0
