"""Gitea and Forgejo: commit statuses.

https://docs.gitea.com/api ("repository"). Statuses aren't bounded in number; the newest of a context has the highest id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from handler.feedback.git_hosts.github import body_of
from handler.feedback.git_hosts.repository_url import RepositoryUrl
from handler.model.commit_status import CommitStatus, StatusState
from handler.model.host_answer import JsonApi


class Gitea:
    """One repository (`GitHostApi`). A token needs `write:repository`."""

    pause: ClassVar[float] = 0.0
    headers: ClassVar[Mapping[str, str]] = {}
    words: ClassVar[Mapping[StatusState, str]] = {
        StatusState.PENDING: "pending",
        StatusState.SUCCESS: "success",
        StatusState.FAILURE: "failure",
        StatusState.HELD: "failure",
        StatusState.SUPERSEDED: "error",
        StatusState.UNTOUCHED: "success",
    }
    user: ClassVar[str | None] = None

    def __init__(self, api: JsonApi, url: str) -> None:
        self._api = api
        self._repository = f"repos/{'/'.join(RepositoryUrl.of(url).parts[-2:])}"

    @staticmethod
    def api_url(url: str) -> str:
        """Return `/api/v1` beside the repository, below a path where Gitea has one."""
        found = RepositoryUrl.of(url)
        return "/".join((found.origin, *found.parts[:-2], "api/v1"))

    def post(self, status: CommitStatus) -> None:
        """Create a status."""
        self._api.send("POST", f"{self._repository}/statuses/{status.commit}", body_of(status, self.words))

    def shows(self, status: CommitStatus) -> bool:
        """Compare with the newest status of the context."""
        listed = self._api.get(f"{self._repository}/commits/{status.commit}/statuses", {"sort": "recentupdate", "limit": "50"}) or []
        mine = [each for each in listed if each["context"] == status.context]
        newest = max(mine, key=lambda each: int(each["id"]), default=None)
        return newest is not None and (newest["status"], newest["description"]) == (self.words[status.state], status.text)
