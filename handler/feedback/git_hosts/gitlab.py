"""GitLab: commit statuses, each a job of an external pipeline.

https://docs.gitlab.com/api/commits ("Set the pipeline status of a commit"). A job that runs can't begin to run once more: GitLab answers
400 "Cannot transition status", and shows what is asked for already. One that has ended is followed by another of its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import quote

from handler.feedback.git_hosts.repository_url import RepositoryUrl
from handler.model.commit_status import CommitStatus, StatusState
from handler.model.host_answer import HostRefusal, JsonApi


class GitLab:
    """One project (`GitHostApi`). A token needs the scope `api` and the role Developer; statuses of a protected branch, Maintainer."""

    pause: ClassVar[float] = 0.0
    headers: ClassVar[Mapping[str, str]] = {}
    words: ClassVar[Mapping[StatusState, str]] = {
        StatusState.PENDING: "running",
        StatusState.SUCCESS: "success",
        StatusState.FAILURE: "failed",
        StatusState.HELD: "failed",
        StatusState.SUPERSEDED: "canceled",
        StatusState.UNTOUCHED: "success",
    }
    user: ClassVar[str | None] = None

    def __init__(self, api: JsonApi, url: str) -> None:
        self._api = api
        self._project = f"projects/{quote(RepositoryUrl.of(url).name, safe='')}"

    @staticmethod
    def api_url(url: str) -> str:
        """Return `/api/v4` of the host; a GitLab below a path names its API itself."""
        return f"{RepositoryUrl.of(url).origin}/api/v4"

    def post(self, status: CommitStatus) -> None:
        """Set a status."""
        body = {"state": self.words[status.state], "name": status.context, "description": status.text}
        body |= {"target_url": status.link} if status.link else {}
        try:
            self._api.send("POST", f"{self._project}/statuses/{status.commit}", body)
        except HostRefusal as refusal:
            if refusal.status != 400 or "annot transition" not in refusal.said:
                raise

    def shows(self, status: CommitStatus) -> bool:
        """Compare with the newest job of the name; without `all` GitLab lists the newest of each."""
        listed = self._api.get(f"{self._project}/repository/commits/{status.commit}/statuses", {"name": status.context}) or []
        newest = max(listed, key=lambda each: int(each["id"]), default=None)
        return newest is not None and (newest["status"], newest["description"]) == (self.words[status.state], status.text)
