"""Pull requests of a shop's repository, as a host in memory says of them (`tests.fakes.pull_request_host`); git itself is real."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from handler.config.feedback_settings import FeedbackSettings
from handler.config.git_settings import SecretRef
from handler.model.event import Job
from handler.model.pull_request import PullRequest, pull_request_name
from handler.model.result import Outcome, Result
from tests.e2e.one_target import Shop, told
from tests.fakes.pull_request_host import PullRequestHost


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
        made = cls(shop, PullRequestHost(lambda base, head: shop.work.git("merge-base", base, head).strip()))
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
