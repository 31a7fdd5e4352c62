"""Values that a record is made of: what people asked for, other records, and what was said to hosts, of pull requests and to dependants.

Of a takeover from another name or state namespace the new record says `former` until no member carries the old marks; the old one says
`renamed_to` from the moment on in which the new one may write: no run of the old name writes an object after that. Once that is deleted,
`renamed_from` of the new one says the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from handler.model.advice import advice
from handler.model.commit_status import StatusState
from handler.model.instance import is_target_name
from handler.model.quotation import quoted
from handler.state.record_format import Line, Message, Segment, Sha, Time, Tool, Word

MOST_COMMITS = 20
"""Commits of which a record keeps the status."""
MOST_CHANGES = 50
"""How often the status of one commit changes, but for its last ends: GitHub takes 1,000 of a commit and context."""
MOST_PULL_REQUESTS = 200
"""Pull requests of which a record keeps the comment; of more the one that was planned or closed longest ago gets another one."""


@dataclass(frozen=True, slots=True)
class RunOnce:
    """What one command does that the settings of its target don't say, so that it alone goes on with it.

    `adopt`: the owners that `anneal adopt` takes over from; `prune`: it is `anneal prune`.
    """

    adopt: tuple[Tool, ...] = ()
    prune: bool = False


AS_CONFIGURED = RunOnce()
"""A run that does what its target's settings say."""


@dataclass(frozen=True, slots=True)
class RecordName:
    """Where another record of the same target is, and since when this one says so."""

    name: Line
    namespace: Segment
    at: Time = ""

    def is_same(self, name: str, namespace: str) -> bool:
        """Whether it is this target's record in this namespace."""
        return (self.name, self.namespace) == (name, namespace)

    def __str__(self) -> str:
        return f"ConfigMap/{self.namespace}/anneal-{self.name}"


@dataclass(frozen=True, slots=True)
class RecordedCommitStatus:
    """The status of one commit. `state`: a `StatusState`; `run`: which run ended so; `posted`: the host has it.

    `changes`: how often it has changed. `unless`: a commit that no run has aimed at, of which only a webhook spoke: its status counts where
    the host has it on the way to what came after it, and it doesn't read as what was recorded before, which this is the digest of.
    """

    commit: Sha
    state: Word
    text: Line
    run: Line = ""
    posted: bool = False
    unless: Sha = ""
    hinted: bool = False
    changes: int = 0

    @property
    def is_end(self) -> bool:
        """Whether it is to stay: what was begun goes on."""
        return self.state != StatusState.PENDING

    @property
    def is_owed(self) -> bool:
        """Whether it is an end that the host doesn't have."""
        return self.is_end and not self.posted


@dataclass(frozen=True, slots=True)
class RecordedPullRequest:
    """Our comment on one pull request. `comment`, `account`: ids of its host; `digest`: of the text as the host has it (sha256).

    `comment` is empty until there is one. `writer`: what writes the comment just now, since `since`; empty: nothing does. `next`: the
    digest of what it writes, which the host may have though no answer came.
    """

    number: int
    comment: Line = ""
    account: Line = ""
    digest: Sha = ""
    writer: Line = ""
    since: Time = ""
    next: Sha = ""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One target that isn't ready for another. `why`: as it reads after its name; `fix`: a complete command, or what else helps."""

    target: Line
    why: Message
    fix: Line = ""

    def __str__(self) -> str:
        return f"{self.target}: {self.why}" if self.target else self.why

    @property
    def advised(self) -> str:
        """The same with what helps."""
        return advice("{text}; {text}", self, self.fix) if self.fix else str(self)

    @property
    def testimony(self) -> Obstacle:
        """The same as a record has it: quoted, and with no command of the record, but the one that looks."""
        looks = advice("anneal status {}", self.target) if is_target_name(self.target) else ""
        return Obstacle(quoted(self.target), quoted(self.why), looks)


@dataclass(frozen=True, slots=True)
class DependencyWait:
    """`commit`, to be made by `settings`, waits since `since` for the targets of `on`."""

    commit: Sha
    settings: Sha
    since: Time = ""
    on: tuple[Obstacle, ...] = ()

    def is_for(self, commit: str, settings: str) -> bool:
        """Whether it is these inputs that wait."""
        return (self.commit, self.settings) == (commit, settings)
