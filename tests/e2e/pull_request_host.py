"""Pull requests of a shop's repository, as a host in memory says of them; git itself is real."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from handler.config.feedback_settings import FeedbackSettings
from handler.config.git_settings import SecretRef
from handler.feedback.git_hosts.gitea import Gitea
from handler.model.commit_status import CommitStatus, StatusState
from handler.model.event import Job
from handler.model.pull_request import HostComment, PullRequest, pull_request_name
from handler.model.result import Outcome, Result
from tests.e2e.one_target import Shop, told


@dataclass
class PullRequestHost:
    """What `GitHostApi` asks. `text`: the newest plan; `statuses`: all, in order."""

    shop: Shop
    pause: ClassVar[float] = 0.0
    headers: ClassVar[Mapping[str, str]] = {}
    words: ClassVar[Mapping[StatusState, str]] = Gitea.words
    user: ClassVar[str | None] = None
    longest: ClassVar[int] = 65_536
    folds: ClassVar[bool] = True
    found: dict[int, PullRequest] = field(default_factory=dict)
    comments: dict[str, HostComment] = field(default_factory=dict)
    statuses: list[CommitStatus] = field(default_factory=list)

    @staticmethod
    def api_url(url: str) -> str:
        return url

    def post(self, status: CommitStatus) -> None:
        self.statuses.append(status)

    def shows(self, status: CommitStatus) -> bool:
        return status in self.statuses

    def pull_request(self, number: int) -> PullRequest:
        return self.found[number]

    def merge_base(self, base: str, head: str) -> str:
        return self.shop.work.git("merge-base", base, head).strip()

    def comment(self, number: int, comment: str) -> HostComment | None:
        assert number in self.found
        return self.comments.get(comment)

    def add_comment(self, number: int, text: str) -> HostComment:
        return self._put(f"{number}.{len(self.comments)}", text)

    def edit_comment(self, number: int, comment: str, text: str) -> HostComment | None:
        assert number in self.found
        return self._put(comment, text) if comment in self.comments else None

    def may_write(self, author: str) -> bool:
        return author == "ada"

    def _put(self, comment: str, text: str) -> HostComment:
        made = self.comments[comment] = HostComment(comment, "robot", text)
        return made

    @property
    def text(self) -> str:
        return [*self.comments.values()][-1].text


@dataclass
class PullRequests:
    """A shop whose pull requests are planned in this process."""

    shop: Shop
    host: PullRequestHost

    @classmethod
    def of(cls, shop: Shop, **settings: Any) -> PullRequests:
        """Configure a shop so that its pull requests are planned."""
        feedback = FeedbackSettings(status=False, pull_requests=True, host="gitea", token=SecretRef(env="PATH"))
        repository = replace(shop.target.repository, feedback=feedback)
        shop.configure(repository=repository, **settings)
        made = cls(shop, PullRequestHost(shop))
        made.reconnect()
        return made

    def reconnect(self) -> None:
        """Let the shop's handler ask this host."""
        self.shop.handler.git_api = lambda target: self.host  # type: ignore[method-assign]  # the host is in memory

    def branch(self, files: Mapping[str, str | None]) -> str:
        """Commit these files of the path on a branch of main, None: without one, and push it; return the commit."""
        work = self.shop.work
        work.git("checkout", "-q", "-B", "change", "main")
        for name, text in files.items():
            path = f"deploy/{name}"
            if text is None:
                work.git("rm", "-q", path)
            else:
                work.write(path, text)
        sha = work.commit("A change")
        work.git("push", "-q", "-f", "origin", "change")
        work.git("checkout", "-q", "main")
        return sha

    def plan(self, head: str, number: int = 12, **facts: Any) -> Result:
        """Plan a pull request of this head into main."""
        self.host.found[number] = replace(PullRequest(number, head, "main", "bob"), **facts)
        result = self.shop.handler.run(Job(pull_request_name(self.shop.name, number), "pull-request"))
        assert result.outcome is Outcome.PLANNED, told(result)
        return result
