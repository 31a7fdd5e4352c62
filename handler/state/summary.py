"""What overviews and ticks read of a state from metadata alone. A version that doesn't know a field of it reads the state itself."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from handler.config.git_settings import DIRECTORY
from handler.model.manifest import canonical
from handler.model.result import IN_SYNC, Outcome
from handler.state.record import FORMAT, State, Suspend
from handler.state.record_format import Line, Sha, Time, Word
from handler.state.soak import GLIMPSED, glimpse

LONGEST = 2048  # characters of a summary's JSON
RECENT = 10  # runs whose ends it lists
_SUBJECT, _AUTHOR, _WHY = 72, 40, 140
_ROOM = 230  # characters that the JSON of one text may take: others than ASCII take six each


@dataclass(frozen=True, slots=True)
class RunGlimpse:
    """How a run of the history ended, and how many seconds it took."""

    outcome: Word
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """What overviews and ticks read from metadata alone, at most 2 KB. `attempt`, `pin`: commits; `unhealthy`: how many.

    `home`: the `home_of` the state; `asked`: a run was asked for that hasn't begun; `orphans`, `drifted`: how many objects.
    `health`, `health_since`, `judged`: see `TargetHealth`. `subject`: of the applied commit, cut; `applied`: since when it is applied;
    `since`: of the phase; `suspended_until`: empty without an end. `author`: of the applied commit, cut; `why`: what stands in the way, the
    first line of it, cut; `recent`: the last runs, newest first; `soaks`: the newest, each as `soak.glimpse`.
    `former`: it takes over still; `renamed_to`: the target that has taken over; `awaits`: the commit that waits for other targets.
    `directory`: it is no repository's. `owes`: its git host doesn't show yet how a commit ended.
    """

    commit: Sha = ""
    settings: Sha = ""
    phase: Word = ""
    unhealthy: int = 0
    attempt: Sha = ""
    pin: Sha = ""
    next_try: Time = ""
    drift_due: Time = ""
    held: bool = False
    suspended: bool = False
    home: Sha = ""
    asked: bool = False
    orphans: int = 0
    drifted: int = 0
    health: Word = ""
    health_since: Time = ""
    judged: Time = ""
    subject: Line = ""
    applied: Time = ""
    since: Time = ""
    suspended_until: Time = ""
    author: Line = ""
    why: Line = ""
    recent: tuple[RunGlimpse, ...] = ()
    former: bool = False
    renamed_to: Line = ""
    awaits: Sha = ""
    soaks: tuple[Line, ...] = ()
    directory: bool = False
    owes: bool = False

    @classmethod
    def of(cls, state: State) -> Summary:
        """Sum up a state."""
        runs = [run for run in state.history if state.commit and run.commit == state.commit]
        return cls(
            commit=state.commit,
            settings=state.settings,
            phase=state.status.phase,
            unhealthy=len(state.status.unhealthy),
            attempt=state.attempt.commit if state.attempt else "",
            pin=state.pin.commit if state.pin else "",
            next_try=state.status.next_try,
            drift_due=state.drift_due,
            held=state.held is not None,
            suspended=state.suspend is not None,
            home=home_of(state.repository, state.installation, state.cluster_uid, state.format),
            asked=state.requested is not None,
            orphans=len(state.orphans),
            drifted=drifted(state),
            health=state.health.state,
            health_since=state.health.since,
            judged=state.health.judged,
            subject=next((_cut(run.subject, _SUBJECT) for run in runs if run.subject), ""),
            applied=_applied(state),
            since=state.status.since,
            suspended_until=state.suspend.until if state.suspend else "",
            author=next((_cut(run.author.partition(" <")[0], _AUTHOR) for run in runs if run.author), ""),
            why=_cut(_why(state), _WHY),
            former=state.former is not None,
            renamed_to=state.renamed_to.name if state.renamed_to else "",
            directory=state.repository.startswith(DIRECTORY),
            recent=tuple(RunGlimpse(run.outcome, round(run.duration, 1)) for run in state.history[:RECENT]),
            awaits=state.awaits.commit if state.awaits else "",
            owes=any(each.is_owed for each in state.commit_statuses),
            soaks=tuple(glimpse(soak) for soak in state.soaks[:GLIMPSED] if soak.commits),
        )

    def suspension(self, now: float) -> Suspend | None:
        """Return the pause that holds at `now`, as far as a summary knows it: not by whom, nor why."""
        pause = Suspend("", until=self.suspended_until)
        return pause if self.suspended and pause.holds(now) else None


def _applied(state: State) -> str:
    """Return since when the commit is deployed without another one between, as far as the history says."""
    since = ""
    for run in state.history:
        if run.digest or run.outcome in IN_SYNC:
            if run.commit != state.commit:
                break
            since = run.started
            if run.outcome == Outcome.ROLLED_BACK:
                break
    return since


def _why(state: State) -> str:
    """Return the first line of what stands in the way: what is held, what failed or is waited for, what does worst."""
    status = () if state.status.phase == "applied" else (state.status.message, *state.status.unhealthy)
    said = (*(state.held.reasons if state.held else ()), *status, *state.health.worst)
    return next((text.partition("\n")[0] for text in said if text), "")


def _cut(text: str, most: int) -> str:
    """Cut a text to so many characters, and to what has room in a summary."""
    if len(text) <= most and len(json.dumps(text)) <= _ROOM:
        return text
    while len(text) >= most or len(json.dumps(text)) > _ROOM - 6:
        text = text[:-1]
    return f"{text}…"


def home_of(repository: str, installation: str, cluster_uid: str, written: int = FORMAT) -> str:
    """Return the digest of where a state belongs, and of its format: a reader that expects another one reads the state itself."""
    return hashlib.sha256(canonical([written, repository, installation, cluster_uid])).hexdigest()


def drifted(state: State) -> int:
    """Return how many objects a drift run reported, and didn't repair."""
    return len({drift.identity for drift in state.drift})
