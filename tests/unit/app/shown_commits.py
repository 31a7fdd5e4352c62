"""A target's record in memory and a git host in memory, for tests of what posts commit statuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from handler.config.feedback_settings import FeedbackSettings
from handler.config.git_settings import Repository, SecretRef
from handler.config.settings import Settings, Target
from handler.feedback.git_hosts.gitea import Gitea
from handler.model.commit_status import CommitStatus, StatusState
from handler.state.record import State
from handler.state.record_values import RecordedCommitStatus
from handler.state.store import StateStore
from tests.fakes.objects import FakeObjects
from tests.unit.state.samples import NAMESPACE, TOOLING

A, B, C = (digit * 40 for digit in "abc")
URL = "https://gitea.example.com/acme/shop.git"


def shop(name: str = "shop", url: str = URL, **feedback: Any) -> Target:
    settings = replace(FeedbackSettings(token=SecretRef(env="T"), page_url="https://anneal.example.com"), **feedback)
    return Target(name, Repository(url, feedback=settings), ("shop",))


def owed(commit: str, state: StatusState = StatusState.SUCCESS, text: str = "3 created", **parts: Any) -> RecordedCommitStatus:
    return replace(RecordedCommitStatus(commit, state, text, run=f"run-{commit[:1]}"), **parts)


@dataclass
class HostInMemory:
    """A git host: what it shows, in the order in which it came. `meets`: called before each post; an exception refuses it."""

    pause: ClassVar[float] = 0.0
    headers: ClassVar[Mapping[str, str]] = {}
    words: ClassVar[Mapping[StatusState, str]] = Gitea.words
    user: ClassVar[str | None] = None
    posted: list[CommitStatus] = field(default_factory=list)
    asked: int = 0
    meets: Callable[[CommitStatus], None] = lambda _: None

    @staticmethod
    def api_url(url: str) -> str:
        return url

    def post(self, status: CommitStatus) -> None:
        self.meets(status)
        self.posted.append(status)

    def shows(self, status: CommitStatus) -> bool:
        self.asked += 1
        mine = [each for each in self.posted if (each.commit, each.context) == (status.commit, status.context)]
        return bool(mine) and (mine[-1].state, mine[-1].text) == (status.state, status.text)

    @property
    def said(self) -> list[tuple[str, str]]:
        return [(each.commit, str(each.state)) for each in self.posted]


class Records:
    """The records of some targets, and the host of their repositories (`commit_statuses.posting.RecordsAndHosts`)."""

    def __init__(self, *targets: Target) -> None:
        self.targets = targets
        self.objects, self.host, self.overtaken = FakeObjects(), HostInMemory(), True
        self.branch = {A, B, C}
        self.settings = Settings(targets, installation="blue")

    def git_api(self, target: Target) -> HostInMemory:
        return self.host

    def is_overtaken(self, target: Target, state: State, status: RecordedCommitStatus) -> bool:
        return self.overtaken

    def proves(self, target: Target, commit: str) -> bool:
        return commit in self.branch

    def store(self, target: Target) -> StateStore:
        return StateStore(self.objects, NAMESPACE, target.name, "default", TOOLING)

    brief_store = store

    def put(self, *statuses: RecordedCommitStatus, target: int = 0) -> None:
        """Write a target's record, with these statuses."""
        blank = State(self.targets[target].name, "default", "u-1", commit=A, repository=URL)
        self.store(self.targets[target]).update(lambda state: replace(state, commit_statuses=statuses), blank)

    def statuses(self, target: int = 0) -> tuple[RecordedCommitStatus, ...]:
        state = self.store(self.targets[target]).read().state
        return state.commit_statuses if state else ()
