"""What arrives at the door and what it asks for: Event, Decision, Job. Pure values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RefChange:
    """One ref of a push. `ref`: its full name; `after`: the commit it is at now, empty when that isn't known or it was `deleted`."""

    ref: str
    after: str = ""
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """A verified delivery. `kind`: push | ping | other; `urls`: every spelling of the repository the payload names.

    `changes`: the refs of a push, as far as they are listed; `more`: there were others, too many to list.
    Everything here is a hint: the git host decides what is deployed, the configuration decides from where.
    """

    provider: str
    kind: str
    delivery: str
    urls: tuple[str, ...] = ()
    changes: tuple[RefChange, ...] = ()
    more: bool = False
    actor: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """Why one target runs, or doesn't, for one event. `reason` is a sentence for the answer's body; `change`: what matched."""

    target: str
    matched: bool
    reason: str
    change: RefChange = RefChange("")


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery that matched, as the state keeps it. `received`: RFC 3339."""

    id: str
    provider: str
    ref: str
    hint: str
    actor: str
    received: str


@dataclass(frozen=True, slots=True)
class Job:
    """One request to run a target.

    `trigger`: push | replay | tick | drift | oneoff. `hint`: the commit a webhook named. `commit`: an explicit one, which pins.
    `force`: run although nothing changed; it never passes a guard. `approve`: a held id. `unpin`: end the pin first.
    `run`: the id that the door told; empty: the run makes its own. `looks`: how often the hint was looked for in vain.
    `asked`: when the newest of what was asked came, in this machine's monotonic seconds, the same for all targets of a delivery;
    0: unknown, and nobody else's look at the host will do.
    """

    target: str
    trigger: str
    hint: str = ""
    commit: str = ""
    force: bool = False
    dry_run: bool = False
    prune: bool = True
    approve: str = ""
    unpin: bool = False
    actor: str = ""
    deliveries: tuple[Delivery, ...] = field(default=())
    run: str = ""
    looks: int = 0
    asked: float = 0.0

    @property
    def drift(self) -> bool:
        """A drift run always LISTs, so it sees what changed behind git's back."""
        return self.trigger == "drift"

    @property
    def by_name(self) -> bool:
        """Whether a person or a pipeline asked for this run, and not only for a plan."""
        asked = self.trigger in ("replay", "oneoff") or self.commit or self.force or self.approve or self.unpin
        return bool(asked) and not self.dry_run

    def since(self, slack: float) -> float:
        """Return from when on an answer of the git host serves this job; infinity: from now on.

        What was asked because something was pushed needs one that was asked for later; a look at the clock's pace may be `slack` older.
        """
        if not self.asked:
            return math.inf
        return self.asked - slack if self.trigger in ("tick", "drift") and not (self.hint or self.deliveries) else self.asked

    def merged(self, newer: Job) -> Job:
        """Coalesce with a newer request for the same target: nothing asked is lost, the newest hint wins.

        What somebody asked by name stays theirs, whoever pushes meanwhile: an approval or a pin must name who gave it.
        """
        named = max((self, newer), key=lambda job: (job.by_name, job.trigger != "tick", job is newer))
        trigger = "drift" if "drift" in (self.trigger, newer.trigger) else named.trigger
        return Job(
            target=newer.target,
            trigger=trigger,
            hint=newer.hint or self.hint,
            commit=newer.commit or self.commit,
            force=newer.force or self.force,
            dry_run=newer.dry_run and self.dry_run,
            prune=newer.prune and self.prune,
            approve=newer.approve or self.approve,
            unpin=newer.unpin or self.unpin,
            actor=named.actor or newer.actor or self.actor,
            deliveries=(*self.deliveries, *newer.deliveries)[-20:],
            looks=newer.looks if newer.hint else self.looks,
            asked=max(self.asked, newer.asked) if self.asked and newer.asked else 0.0,
        )
