"""What GitHub's API and Gitea's have in common: statuses of commits, pull requests, their comments, who may push.

A pull request is an issue of the same number, and its comments are the issue's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar
from urllib.parse import quote

from handler.feedback.git_hosts.answers import NO_COMMIT, Answered, Asking, is_number
from handler.feedback.git_hosts.repository_url import RepositoryUrl
from handler.model.commit_status import CommitStatus, StatusState
from handler.model.errors import AccessDenied
from handler.model.host_answer import HostDenied, HostRefusal, JsonApi
from handler.model.pull_request import HostComment, PullRequest

PAGES = 20
"""Pages of a commit's statuses that are looked through for a context: a thousand statuses at least."""
_STATUSES, _PULLS, _COMMENTS = "write commit statuses", "read pull requests", "comment on pull requests"
_LOCKED = ("issue is locked", "locked issue")


class GitHubLike:
    """One repository. `state`: what listed statuses call theirs; `newest_first`: how they are listed; `place`: a comment's pull request.

    `writing`: permissions that let push; `asks_rights`: what a token needs that asks for them.
    """

    words: ClassVar[Mapping[StatusState, str]] = {
        StatusState.PENDING: "pending",
        StatusState.SUCCESS: "success",
        StatusState.FAILURE: "failure",
        StatusState.HELD: "failure",
        StatusState.SUPERSEDED: "error",
        StatusState.UNTOUCHED: "success",
    }
    user: ClassVar[str | None] = None
    longest: ClassVar[int] = 65_536
    folds: ClassVar[bool] = True
    state: ClassVar[str]
    newest_first: ClassVar[Mapping[str, str]]
    place: ClassVar[str]
    writing: ClassVar[frozenset[str]]
    asks_rights: ClassVar[str]

    def __init__(self, api: JsonApi, url: str) -> None:
        self._ask = Asking(api)
        self._repository = f"repos/{'/'.join(RepositoryUrl.of(url).last_two())}"

    def post(self, status: CommitStatus) -> None:
        """Create a status."""
        body = {"state": self.words[status.state], "context": status.context, "description": status.text}
        body |= {"target_url": status.link} if status.link else {}
        self._ask.send("POST", f"{self._repository}/statuses/{status.commit}", body, needs=_STATUSES)

    def shows(self, status: CommitStatus) -> bool:
        """Compare with the newest status of the context."""
        newest = self._newest(status)
        return newest is not None and (newest.text(self.state), newest.words("description")) == (self.words[status.state], status.text)

    def _newest(self, status: CommitStatus) -> Answered | None:
        """Return the newest status of a context; those of all contexts are listed together."""
        for page in range(1, PAGES + 1):
            query = {**self.newest_first, "page": str(page)}
            rows = self._listed(f"{self._repository}/commits/{status.commit}/statuses", query)
            mine = next((each for each in rows if each.text("context").lower() == status.context.lower()), None)
            if mine is not None or not rows:
                return mine
        return None

    def _listed(self, path: str, query: Mapping[str, str]) -> list[Answered]:
        """Return a page of a commit's statuses; a commit that isn't there has none."""
        try:
            found = self._ask.find(path, query, _STATUSES)
        except HostRefusal as refusal:
            if refusal.status == NO_COMMIT:
                return []
            raise
        return found.rows() if found else []

    def pull_request(self, number: int) -> PullRequest:
        """Ask for a pull request; its head is there when its branch is gone, too."""
        found = self._ask.get(f"{self._repository}/pulls/{number}", needs=_PULLS)
        return PullRequest(
            number=found.number("number"),
            head=found.commit("head", "sha"),
            base=found.text("base", "ref"),
            author=found.words("user", "login"),
            is_open=found.text("state") == "open",
            is_draft=found.flag("draft"),
            is_fork=self._is_fork(found),
        )

    def _is_fork(self, found: Answered) -> bool:
        """Whether the head is another repository's; None: that is gone."""
        head, base = found.part("head", "repo"), found.text("base", "repo", "full_name")
        return head.value is None or head.text("full_name").lower() != base.lower()

    def comment(self, number: int, comment: str) -> HostComment | None:
        """Ask for a comment; one on something else isn't there."""
        found = self._ask.find(self._comment(comment), needs=_COMMENTS) if is_number(comment) else None
        return _comment(found) if found and found.words(self.place).rpartition("/")[2] == str(number) else None

    def add_comment(self, number: int, text: str) -> HostComment:
        """Create a comment."""
        try:
            return _comment(self._ask.send("POST", f"{self._repository}/issues/{number}/comments", {"body": text}, needs=_COMMENTS))
        except HostDenied as denied:
            raise _refused(denied) from None

    def edit_comment(self, number: int, comment: str, text: str) -> HostComment | None:
        """Change a comment's text."""
        if self.comment(number, comment) is None:
            return None
        try:
            found = self._ask.change("PATCH", self._comment(comment), {"body": text}, needs=_COMMENTS)
        except HostDenied as denied:
            raise _refused(denied) from None
        return _comment(found) if found else None

    def may_write(self, author: str) -> bool:
        """Ask for the permission of an account."""
        path = f"{self._repository}/collaborators/{quote(author, safe='')}/permission"
        found = self._ask.find(path, needs=self.asks_rights) if author else None
        return found is not None and found.text("permission") in self.writing

    def _comment(self, comment: str) -> str:
        return f"{self._repository}/issues/comments/{comment}"


def _comment(found: Answered) -> HostComment:
    return HostComment(found.key("id"), found.words("user", "login"), found.words("body"))


def _refused(denied: HostDenied) -> AccessDenied | HostRefusal:
    """Return the error of a refused comment: that a conversation is locked says nothing of the token."""
    if not any(words in denied.said for words in _LOCKED):
        return denied
    refusal = HostRefusal(*(replace(each, fix="unlock the conversation") for each in denied.problems))
    refusal.status = 403
    return refusal
