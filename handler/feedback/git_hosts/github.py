"""GitHub and GitHub Enterprise Server: commit statuses.

https://docs.github.com/rest/commits/statuses. A SHA has at most 1,000 statuses of one context; contexts differ without regard to case;
what creates content is to be asked for once a second (docs.github.com, "Best practices for using the REST API").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from handler.feedback.git_hosts.repository_url import RepositoryUrl
from handler.model.commit_status import CommitStatus, StatusState
from handler.model.host_answer import JsonApi


class GitHub:
    """One repository (`GitHostApi`). A classic token needs `repo:status`, a fine-grained one and an App `Commit statuses: write`."""

    pause: ClassVar[float] = 1.0
    headers: ClassVar[Mapping[str, str]] = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
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
        self._repository = f"repos/{RepositoryUrl.of(url).name}"

    @staticmethod
    def api_url(url: str) -> str:
        """Return api.github.com, or `/api/v3` of an Enterprise Server."""
        origin = RepositoryUrl.of(url).origin
        return "https://api.github.com" if origin.endswith("://github.com") else f"{origin}/api/v3"

    def post(self, status: CommitStatus) -> None:
        """Create a status."""
        self._api.send("POST", f"{self._repository}/statuses/{status.commit}", body_of(status, self.words))

    def shows(self, status: CommitStatus) -> bool:
        """Compare with the newest status of the context; they are listed newest first."""
        listed = self._api.get(f"{self._repository}/commits/{status.commit}/statuses", {"per_page": "100"}) or []
        newest = next((each for each in listed if each["context"].lower() == status.context.lower()), None)
        return newest is not None and (newest["state"], newest["description"]) == (self.words[status.state], status.text)


def body_of(status: CommitStatus, words: Mapping[StatusState, str]) -> dict[str, str]:
    """Return what creates a status, on GitHub and on what speaks its API."""
    body = {"state": words[status.state], "context": status.context, "description": status.text}
    return {**body, "target_url": status.link} if status.link else body
