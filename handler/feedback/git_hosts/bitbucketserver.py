"""Bitbucket Data Center: build statuses, and comments on pull requests.

https://developer.atlassian.com/server/bitbucket/rest ("Builds and Deployments", "Pull Requests", "Repository", "System Maintenance"). A
status goes by a key, which a repetition overwrites, and must lead somewhere. What is cancelled came with version 8.0: an older server shows
it as failed. A comment is changed by its version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from handler.feedback.git_hosts.answers import Answered, Asking, about_commit, is_number
from handler.feedback.git_hosts.bitbucket import build_status
from handler.feedback.git_hosts.repository_url import RepositoryUrl
from handler.model.commit_status import CommitStatus, StatusState
from handler.model.host_answer import HostRefusal, JsonApi
from handler.model.pull_request import HostComment, PullRequest

PAGES = 20
"""Pages of a hundred accounts whose names hold one's name that are looked through."""
_FAILED, _CANCELLED = "FAILED", "CANCELLED"
_BRANCH = "refs/heads/"
_READS = "read the repository"


class BitbucketServer:
    """One repository (`GitHostApi`). An HTTP access token needs `Repository read`: who may push, each account may ask."""

    pause: ClassVar[float] = 0.0
    headers: ClassVar[Mapping[str, str]] = {}
    words: ClassVar[Mapping[StatusState, str]] = {
        StatusState.PENDING: "INPROGRESS",
        StatusState.SUCCESS: "SUCCESSFUL",
        StatusState.FAILURE: _FAILED,
        StatusState.HELD: _FAILED,
        StatusState.SUPERSEDED: _CANCELLED,
        StatusState.UNTOUCHED: "SUCCESSFUL",
    }
    user: ClassVar[str | None] = None
    longest: ClassVar[int] = 32_767
    folds: ClassVar[bool] = False

    def __init__(self, api: JsonApi, url: str) -> None:
        self._ask = Asking(api)
        found = RepositoryUrl.of(url)
        self._project, self._slug = found.last_two()
        self._page = f"{found.below(*_above(found))}/projects/{self._project}/repos/{self._slug}"
        self._repository = f"projects/{self._project}/repos/{self._slug}"

    @staticmethod
    def api_url(url: str) -> str:
        """Return `/rest/api/latest` of the server, below a path where it has one (`<path>/scm/<project>/<repository>`)."""
        found = RepositoryUrl.of(url)
        return found.below(*_above(found), "rest/api/latest")

    def post(self, status: CommitStatus) -> None:
        """Set a status."""
        body = build_status(status, self.words, status.context, status.link or f"{self._page}/commits/{status.commit}")
        with about_commit(status.commit):
            try:
                self._ask.send("POST", self._builds(status), body, needs=_READS)
            except HostRefusal as refusal:
                if refusal.status != 400 or body["state"] != _CANCELLED:
                    raise
                self._ask.send("POST", self._builds(status), {**body, "state": _FAILED}, needs=_READS)

    def shows(self, status: CommitStatus) -> bool:
        """Compare with the status of the key."""
        found = self._ask.find(self._builds(status), {"key": status.context}, _READS)
        mine = self.words[status.state]
        return found is not None and found.words("description") == status.text and found.text("state") in (mine, _as_before(mine))

    def _builds(self, status: CommitStatus) -> str:
        return f"{self._repository}/commits/{status.commit}/builds"

    def pull_request(self, number: int) -> PullRequest:
        """Ask for a pull request."""
        found = self._ask.get(f"{self._repository}/pull-requests/{number}", needs=_READS)
        fork = found.part("fromRef", "repository")
        return PullRequest(
            number=found.number("id"),
            head=found.commit("fromRef", "latestCommit"),
            base=found.text("toRef", "id").removeprefix(_BRANCH),
            author=found.words("author", "user", "name"),
            is_open=found.text("state") == "OPEN",
            is_draft=found.flag("draft"),
            is_fork=fork.value is None or fork.key("id") != found.key("toRef", "repository", "id"),
        )

    def merge_base(self, base: str, head: str) -> str:
        """Ask for the common ancestor of two commits; an answer without content: there is none."""
        found = self._ask.get(f"{self._repository}/commits/{base}/merge-base", {"otherCommitId": head}, _READS)
        return "" if found.value is None else found.commit("id")

    def comment(self, number: int, comment: str) -> HostComment | None:
        """Ask for a comment."""
        found = self._ask.find(self._comment(number, comment), needs=_READS) if is_number(comment) else None
        return _comment(found) if found else None

    def add_comment(self, number: int, text: str) -> HostComment:
        """Create a comment."""
        path = f"{self._repository}/pull-requests/{number}/comments"
        return _comment(self._ask.send("POST", path, {"text": text}, needs=_READS))

    def edit_comment(self, number: int, comment: str, text: str) -> HostComment | None:
        """Change a comment's text; one that was changed meanwhile is asked for once more."""
        try:
            return self._changed(number, comment, text)
        except HostRefusal as refusal:
            if refusal.status != 409:
                raise
            return self._changed(number, comment, text)

    def _changed(self, number: int, comment: str, text: str) -> HostComment | None:
        path = self._comment(number, comment)
        before = self._ask.find(path, needs=_READS) if is_number(comment) else None
        found = before and self._ask.change("PUT", path, {"text": text, "version": before.number("version")}, needs=_READS)
        return _comment(found) if found else None

    def may_write(self, author: str) -> bool:
        """Look for an account among those that may push and whose names hold its name."""
        start = 0
        for _ in range(PAGES if author else 0):
            found = self._ask.get("users", {"filter": author, "start": str(start), "limit": "100", **self._pushing}, _READS)
            if any(each.words("name") == author for each in found.rows("values")):
                return True
            if found.part("isLastPage").value is not False:
                break
            start = found.number("nextPageStart")
        return False

    @property
    def _pushing(self) -> dict[str, str]:
        """The parameters of those that may push here; the keys of projects are in capitals, but for a person's."""
        project = self._project if self._project.startswith("~") else self._project.upper()
        of = "permission.1"
        return {of: "REPO_WRITE", f"{of}.projectKey": project, f"{of}.repositorySlug": self._slug}

    def _comment(self, number: int, comment: str) -> str:
        return f"{self._repository}/pull-requests/{number}/comments/{comment}"


def _as_before(state: str) -> str:
    """Return what a server before version 8.0 has of a state."""
    return _FAILED if state == _CANCELLED else state


def _above(url: RepositoryUrl) -> tuple[str, ...]:
    """Return the path below which the server is."""
    return url.parts[: url.parts.index("scm")] if "scm" in url.parts[:-2] else ()


def _comment(found: Answered) -> HostComment:
    return HostComment(found.key("id"), found.words("author", "name"), found.words("text"))
