"""What arrives at the door and what it asks for: Event, Decision, Job. Pure values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

NAMED = ("replay", "oneoff")  # triggers of named requests, by a person or a pipeline, which wait for an id's end
RESOURCE = "resource"
"""The trigger of what an instance's object, or one that its trigger lists, asks for."""
MOST_COMMENTS = 10
"""Comments on one pull request whose authors are asked for: one of many that may not ask displaces no other."""
PULL_REQUEST = "pull-request"
"""The trigger of a plan on a pull request, and the kind of an event that asks for one."""
ASKED = (*NAMED, "approval", "rollback", "unpin", "promotion")  # what reports call those (`Job.cause`)


@dataclass(frozen=True, slots=True)
class RefChange:
    """One ref of a push. `ref`: its full name; `after`: the commit it is at now, empty when that isn't known or it was `deleted`."""

    ref: str
    after: str = ""
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """A verified delivery: a hint only, for the git host decides what is deployed. `kind`: push | pull-request | ping | other.

    `urls`: every spelling of the repository; `changes`: the listed refs of a push; `more`: there were others, too many to list.
    `pull_request`: the number of the one that was opened, changed or closed, or that was commented on; `comment`: the id of that comment,
    empty: it was no comment.
    """

    provider: str
    kind: str
    delivery: str
    urls: tuple[str, ...] = ()
    changes: tuple[RefChange, ...] = ()
    more: bool = False
    actor: str = ""
    note: str = ""
    pull_request: int = 0
    comment: str = ""


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

    `trigger`: push | replay | tick | drift | resource | oneoff | pull-request. `hint`: the commit a webhook named. `commit`: an explicit
    one, which pins. `comments`: the ids of comments that ask for a pull request's plan (`target`: `pull_request_name`); empty: none does.
    `changed`: beside those, the pull request itself has changed, so it is planned whatever they are worth.
    `rollback`: go back to the commit that was deployed before, and pin it. `promote`: a person brings what another target has, pinned to
    nothing; it is asked for in this process alone.
    `force`: run although nothing changed; it never passes a guard. `approve`: a held id. `unpin`: end the pin first.
    `run`: the id that the door returned; empty: the run makes its own. `looks`: how often the hint was looked for in vain.
    `asked`: arrival of the newest request in monotonic seconds, the same for all targets of a delivery; 0: unknown, no shared look will do.
    `named`: the named requests that this run answers, each with its actor; empty: its own alone. `joined`: ids of all beside `run`.
    `moment`: when the schedule asked for it, or from when on a plan is tried again, in seconds since the epoch; 0: unknown.
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
    rollback: bool = False
    actor: str = ""
    deliveries: tuple[Delivery, ...] = field(default=())
    run: str = ""
    looks: int = 0
    asked: float = 0.0
    named: tuple[tuple[str, str], ...] = ()
    joined: tuple[str, ...] = ()
    moment: float = 0.0
    promote: bool = False
    comments: tuple[str, ...] = ()
    changed: bool = False

    @property
    def drift(self) -> bool:
        """A drift run always LISTs, so it sees what changed behind git's back; so does one that a live object asked for."""
        return self.trigger in ("drift", RESOURCE)

    @property
    def is_plan(self) -> bool:
        """Whether it asks for the plan of a pull request, and deploys nothing: its `target` is a `pull_request_name`."""
        return self.trigger == PULL_REQUEST

    @property
    def cause(self) -> str:
        """What reports call the request: the act that was asked for by name, else the trigger."""
        acts = {"promotion": self.promote, "rollback": self.rollback, "approval": bool(self.approve), "unpin": self.unpin}
        return next((act for act, asked in acts.items() if asked), self.trigger)

    @property
    def requests(self) -> tuple[tuple[str, str], ...]:
        """The named requests whose end is waited for: the id of each, and its actor."""
        return self.named or (((self.run, self.actor),) if self.run and self.trigger in NAMED else ())

    @property
    def acts(self) -> tuple[str, ...]:
        """What is asked by name, beside a run: it is done as it was asked, in a run of its own. A job without any is plain."""
        asked = {
            "commit": self.commit,
            "force": self.force,
            "approve": self.approve,
            "unpin": self.unpin,
            "rollback": self.rollback,
            "promotion": self.promote,
            "dry run": self.dry_run,
            "no prune": not self.prune,
        }
        return tuple(act for act, value in asked.items() if value)

    def since(self, slack: float) -> float:
        """Return from when on an answer of the git host serves this job; infinity: from now on. A tick's may be `slack` seconds older."""
        if not self.asked:
            return math.inf
        return self.asked - slack if self.trigger in ("tick", "drift") and not (self.hint or self.deliveries) else self.asked

    def merged(self, newer: Job) -> Job:
        """Coalesce two plain jobs of one target: nothing asked is lost, the newest hint wins, a named request keeps its actor.

        Never one with `acts`: a dry run would become the act itself, and an approval another's. A plan on a pull request only with another.
        """
        alike = not (self.acts or newer.acts) and self.is_plan == newer.is_plan
        assert alike, "only plain jobs are merged"  # noqa: S101 - the queue's law, and a wrong pin where it is broken
        comments = tuple(dict.fromkeys((*self.comments, *newer.comments)))
        if len(comments) > MOST_COMMENTS:  # the oldest stay, too: many newer ones of others displace none of them
            comments = (*comments[: MOST_COMMENTS // 2], *comments[-(MOST_COMMENTS // 2) :])
        named = max((self, newer), key=lambda job: (job.trigger in ("replay", "oneoff"), job.trigger != "tick", job is newer))
        return Job(
            target=newer.target,
            trigger=next((each for each in ("drift", RESOURCE) if each in (self.trigger, newer.trigger)), named.trigger),
            hint=newer.hint or self.hint,
            actor=named.actor or newer.actor or self.actor,
            deliveries=(*self.deliveries, *newer.deliveries)[-20:],
            looks=newer.looks if newer.hint else self.looks,
            asked=max(self.asked, newer.asked) if self.asked and newer.asked else 0.0,
            comments=comments,
            changed=bool(comments) and any(each.changed or not each.comments for each in (self, newer)),
        )
