"""GitHub and GitHub Enterprise Server: commit statuses, and comments on pull requests.

https://docs.github.com/rest/commits/statuses, …/pulls, …/issues/comments, …/collaborators. A SHA has at most 1,000 statuses of one context;
contexts differ without regard to case; what creates content is to be asked for once a second (docs.github.com, "Best practices for using
the REST API").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from handler.feedback.git_hosts.githublike import GitHubLike
from handler.feedback.git_hosts.repository_url import RepositoryUrl
from handler.model.host_answer import HostRefusal

_DOTCOM = frozenset({"https://github.com", "https://www.github.com", "http://github.com", "http://www.github.com"})
_RESIDENT = ".ghe.com"  # GitHub Enterprise Cloud with data residency (docs.github.com, "Getting started with data residency")


class GitHub(GitHubLike):
    """One repository (`GitHostApi`).

    A fine-grained token and an App need `Commit statuses: write`, for pull requests also `Pull requests: write`, `Contents: read` and
    `Metadata: read`; a classic token `repo:status`, for pull requests `repo`. Its account must be able to push, or it can't ask who may.
    """

    pause: ClassVar[float] = 1.0
    headers: ClassVar[Mapping[str, str]] = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    state: ClassVar[str] = "state"
    newest_first: ClassVar[Mapping[str, str]] = {"per_page": "100"}
    place: ClassVar[str] = "issue_url"
    writing: ClassVar[frozenset[str]] = frozenset({"admin", "write"})  # `maintain` is named `write` there
    asks_rights: ClassVar[str] = "push to the repository, or an App have `Metadata: read`: others can't ask who may"

    @staticmethod
    def api_url(url: str) -> str:
        """Return api.github.com, `api.` before a host with data residency, or `/api/v3` of an Enterprise Server."""
        origin = RepositoryUrl.of(url).origin
        if origin in _DOTCOM:
            return "https://api.github.com"
        return origin.replace("://", "://api.") if origin.endswith(_RESIDENT) else f"{origin}/api/v3"

    def merge_base(self, base: str, head: str) -> str:
        """Compare two commits; the changed files, which are not asked for, are on the first page."""
        try:
            path = f"{self._repository}/compare/{base}...{head}"
            found = self._ask.get(path, {"per_page": "1", "page": "2"}, "read the contents of the repository")
        except HostRefusal as refusal:
            if refusal.status == 404 and "no common ancestor" in refusal.said.lower():
                return ""
            raise
        return found.commit("merge_base_commit", "sha")
