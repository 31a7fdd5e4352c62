"""GitLab: commit statuses, each a job of an external pipeline, and notes of merge requests.

https://docs.gitlab.com/api/commits ("Set the pipeline status of a commit"), …/merge_requests, …/notes, …/members. A job that runs can't
begin to run once more: GitLab answers 400 "Cannot transition status", and shows the text that it began with. One that has ended is followed
by another of its name. A commit on no branch, as a fork's, needs a name in place of one: it has its own id.

A line that begins with a slash is a quick action (`/merge`), and which blocks of code are exempt differs by version: before each stands a
space without width.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import quote, urlsplit

from handler.feedback.git_hosts.answers import Answered, Asking, about_commit, is_number
from handler.feedback.git_hosts.repository_url import RepositoryUrl
from handler.model.commit_status import CommitStatus, StatusState
from handler.model.host_answer import HostRefusal, JsonApi
from handler.model.pull_request import HostComment, PullRequest

DEVELOPER = 30
"""The least access level that may push."""
_STATUSES = "have the scope `api`, and the role Developer; for a protected branch one that may push there"
_READS = "have the scope `api`, and the role Reporter"
_SLASH = re.compile(r"^/", re.MULTILINE)


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
    longest: ClassVar[int] = 65_536  # GitLab's own limit is a million: what `inert` adds has room
    folds: ClassVar[bool] = True

    def __init__(self, api: JsonApi, url: str) -> None:
        self._ask = Asking(api)
        self._project = f"projects/{quote(_path(api.url, RepositoryUrl.of(url)), safe='')}"

    @staticmethod
    def api_url(url: str) -> str:
        """Return `/api/v4` of the host; a GitLab below a path names its API itself."""
        return f"{RepositoryUrl.of(url).origin}/api/v4"

    def post(self, status: CommitStatus) -> None:
        """Set a status."""
        body = {"state": self.words[status.state], "name": status.context, "description": status.text}
        body |= {"target_url": status.link} if status.link else {}
        with about_commit(status.commit):
            try:
                self._set(status, body)
            except HostRefusal as refusal:
                if refusal.status != 404 or "References for commit" not in refusal.said:
                    raise
                self._set(status, {**body, "ref": status.commit})

    def _set(self, status: CommitStatus, body: Mapping[str, str]) -> None:
        try:
            self._ask.send("POST", f"{self._project}/statuses/{status.commit}", body, needs=_STATUSES)
        except HostRefusal as refusal:
            if refusal.status != 400 or "annot transition" not in refusal.said:
                raise

    def shows(self, status: CommitStatus) -> bool:
        """Compare with the newest job of the name; without `all` GitLab lists the newest of each in each pipeline."""
        path, query = f"{self._project}/repository/commits/{status.commit}/statuses", {"name": status.context, "per_page": "100"}
        listed = self._ask.find(path, query, _STATUSES)
        mine = [each for each in (listed.rows() if listed else ()) if each.text("name") == status.context]
        newest = max(mine, key=lambda each: each.number("id"), default=None)
        return newest is not None and (newest.text("status"), newest.words("description")) == (self.words[status.state], status.text)

    def pull_request(self, number: int) -> PullRequest:
        """Ask for a merge request; a fork that is gone has no project."""
        found = self._ask.get(f"{self._project}/merge_requests/{number}", needs=_READS)
        source = found.part("source_project_id")
        return PullRequest(
            number=found.number("iid"),
            head=found.commit("sha"),
            base=found.text("target_branch"),
            author=_author(found),
            is_open=found.text("state") == "opened",
            is_draft=found.flag("draft") or found.flag("work_in_progress"),  # the latter until version 14
            is_fork=source.value is None or source.number() != found.number("target_project_id"),
        )

    def merge_base(self, base: str, head: str) -> str:
        """Ask for the merge base of two commits."""
        try:
            return self._ask.get(f"{self._project}/repository/merge_base", {"refs[]": [base, head]}, _READS).commit("id")
        except HostRefusal as refusal:
            if refusal.status == 404 and "Merge Base" in refusal.said:
                return ""
            raise

    def comment(self, number: int, comment: str) -> HostComment | None:
        """Ask for a note."""
        found = self._ask.find(f"{self._notes(number)}/{comment}", needs=_READS) if is_number(comment) else None
        return _comment(found) if found else None

    def add_comment(self, number: int, text: str) -> HostComment:
        """Create a note in which nothing is a quick action."""
        return _comment(self._ask.send("POST", self._notes(number), {"body": inert(text)}, needs=_READS))

    def edit_comment(self, number: int, comment: str, text: str) -> HostComment | None:
        """Change a note's text to one in which nothing is a quick action."""
        path = f"{self._notes(number)}/{comment}"
        found = self._ask.change("PUT", path, {"body": inert(text)}, needs=_READS) if is_number(comment) else None
        return _comment(found) if found else None

    def may_write(self, author: str) -> bool:
        """Ask for the access level of a member, which groups give, too."""
        found = self._ask.find(f"{self._project}/members/all/{author}", needs=_READS) if is_number(author) else None
        return found is not None and found.words("state") in ("", "active") and found.number("access_level") >= DEVELOPER

    def _notes(self, number: int) -> str:
        return f"{self._project}/merge_requests/{number}/notes"


def inert(text: str) -> str:
    """Return a text in which no line begins with a slash; GitLab takes carriage returns out before it looks."""
    return _SLASH.sub("\u200b/", text.replace("\r", ""))


def _author(found: Answered) -> str:
    return "" if found.part("author").value is None else found.key("author", "id")


def _comment(found: Answered) -> HostComment:
    return HostComment(found.key("id"), _author(found), found.words("body"))


def _path(api_url: str, url: RepositoryUrl) -> str:
    """Return a project's path; below a path of GitLab's own it begins after that. Raises ConfigInvalid: it has no group."""
    root = urlsplit(api_url).path.strip("/").removesuffix("api/v4").strip("/")
    name = "/".join(url.parts)
    path = name if url.is_ssh or not root else name.removeprefix(f"{root}/")
    if "/" not in path:
        raise url.unlike("<group>/<project>")
    return path
