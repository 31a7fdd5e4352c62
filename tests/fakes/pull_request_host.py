"""A git host in memory that has pull requests: what it says of them, the comments on them, the statuses of their heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from handler.feedback.git_hosts.gitea import Gitea
from handler.model.commit_status import CommitStatus, StatusState
from handler.model.host_answer import HostRefusal
from handler.model.pull_request import HostComment, PullRequest


@dataclass
class PullRequestHost:
    """What `GitHostApi` asks. `parts`: returns the commit at which two part; `text`: the newest plan; `statuses`: all, in order.

    `meets`: called with the name of what is asked, before it is done; what it raises, the host answers.
    """

    parts: Callable[[str, str], str]
    pause: ClassVar[float] = 0.0
    headers: ClassVar[Mapping[str, str]] = {}
    words: ClassVar[Mapping[StatusState, str]] = Gitea.words
    user: ClassVar[str | None] = None
    longest: ClassVar[int] = 65_536
    folds: ClassVar[bool] = True
    found: dict[int, PullRequest] = field(default_factory=dict)
    comments: dict[str, HostComment] = field(default_factory=dict)
    statuses: list[CommitStatus] = field(default_factory=list)
    meets: Callable[[str], None] = lambda _: None
    asked: list[str] = field(default_factory=list)

    @staticmethod
    def api_url(url: str) -> str:
        return url

    def post(self, status: CommitStatus) -> None:
        self._ask("post")
        self.statuses.append(status)

    def shows(self, status: CommitStatus) -> bool:
        mine = [each for each in self.statuses if (each.commit, each.context) == (status.commit, status.context)]
        return bool(mine) and mine[-1] == status

    def pull_request(self, number: int) -> PullRequest:
        self._ask("pull_request")
        if number not in self.found:
            raise HostRefusal.answered("API", "404", 404, "Not Found")
        return self.found[number]

    def merge_base(self, base: str, head: str) -> str:
        return self.parts(base, head)

    def comment(self, number: int, comment: str) -> HostComment | None:
        self._ask("comment")
        assert number in self.found
        return self.comments.get(comment)

    def add_comment(self, number: int, text: str) -> HostComment:
        self._ask("add_comment")
        return self._put(f"{number}.{len(self.comments)}", text)

    def edit_comment(self, number: int, comment: str, text: str) -> HostComment | None:
        self._ask("edit_comment")
        assert number in self.found
        return self._put(comment, text) if comment in self.comments else None

    def may_write(self, author: str) -> bool:
        return author == "ada"

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        self.meets(what)

    def _put(self, comment: str, text: str) -> HostComment:
        made = self.comments[comment] = HostComment(comment, "robot", text)
        return made

    @property
    def text(self) -> str:
        return [*self.comments.values()][-1].text
