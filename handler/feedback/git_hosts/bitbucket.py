"""Bitbucket Cloud: build statuses, and comments on pull requests.

https://developer.atlassian.com/cloud/bitbucket/rest (the groups commit-statuses, pullrequests, commits, workspaces). A status goes by a key
of at most 40 characters, which a repetition overwrites, and must lead somewhere whose host has a domain. Pull requests name their commits
by the beginnings of ids: the commit is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import quote, urlsplit

from handler.feedback.git_hosts.answers import Answered, Asking, about_commit, is_number
from handler.feedback.git_hosts.repository_url import RepositoryUrl
from handler.model.commit_status import CommitStatus, StatusState, hashed
from handler.model.errors import AccessDenied, GitUnavailable
from handler.model.host_answer import HostRefusal, JsonApi
from handler.model.pull_request import HostComment, PullRequest

KEY = 40
WHOLE = 40
"""Digits of a commit's whole id."""
_ID = re.compile(r"[\w:{}-]{1,128}")
_STATUSES, _PULLS, _COMMENTS = "have the scope `repository`", "have the scope `pullrequest`", "have the scope `pullrequest:write`"
_RIGHTS = "be an administrator's of the repository: others can't ask who may push"


class Bitbucket:
    """One repository (`GitHostApi`).

    A token needs `repository`, for pull requests `pullrequest:write`. Its account must administrate the repository, or it can't ask who may
    push.
    """

    pause: ClassVar[float] = 0.0
    headers: ClassVar[Mapping[str, str]] = {}
    words: ClassVar[Mapping[StatusState, str]] = {
        StatusState.PENDING: "INPROGRESS",
        StatusState.SUCCESS: "SUCCESSFUL",
        StatusState.FAILURE: "FAILED",
        StatusState.HELD: "FAILED",
        StatusState.SUPERSEDED: "STOPPED",
        StatusState.UNTOUCHED: "SUCCESSFUL",
    }
    user: ClassVar[str | None] = None
    longest: ClassVar[int] = 32_768
    folds: ClassVar[bool] = False

    def __init__(self, api: JsonApi, url: str) -> None:
        self._ask = Asking(api)
        found = RepositoryUrl.of(url)
        self._workspace, self._slug = found.last_two()
        self._origin = found.origin
        self._repository = f"repositories/{self._workspace}/{self._slug}"

    @staticmethod
    def api_url(url: str) -> str:  # noqa: ARG004 - one API for all
        """Return the API of Bitbucket Cloud."""
        return "https://api.bitbucket.org/2.0"

    def post(self, status: CommitStatus) -> None:
        """Set a status."""
        with about_commit(status.commit):
            self._ask.send("POST", self._statuses(status), self._body(status), needs=_STATUSES)

    def shows(self, status: CommitStatus) -> bool:
        """Compare with the status of the key."""
        found = self._ask.find(f"{self._statuses(status)}/{quote(hashed(status.context, KEY), safe='')}", needs=_STATUSES)
        return found is not None and (found.text("state"), found.words("description")) == (self.words[status.state], status.text)

    def _statuses(self, status: CommitStatus) -> str:
        return f"{self._repository}/commit/{status.commit}/statuses/build"

    def _body(self, status: CommitStatus) -> dict[str, str]:
        host = urlsplit(status.link).hostname or ""
        link = status.link if "." in host or ":" in host else f"{self._origin}/{self._workspace}/{self._slug}/commits/{status.commit}"
        return build_status(status, self.words, hashed(status.context, KEY), link)

    def pull_request(self, number: int) -> PullRequest:
        """Ask for a pull request and its head; a fork that is gone has no repository."""
        found = self._ask.get(f"{self._repository}/pullrequests/{number}", needs=_PULLS)
        fork = found.words("source", "repository", "full_name")
        is_open = found.text("state") == "OPEN"
        return PullRequest(
            number=found.number("id"),
            head=self._head(found, is_open=is_open),
            base=found.text("destination", "branch", "name"),
            author=_account(found.part("author")),
            is_open=is_open,
            is_draft=found.flag("draft"),
            is_fork=fork.lower() != found.text("destination", "repository", "full_name").lower(),
        )

    def _head(self, found: Answered, *, is_open: bool) -> str:
        """Return the whole id of a head, which a fork has if the repository has it not; empty: of a closed one, whose commit is gone."""
        fork, hash_of = found.words("source", "repository", "full_name"), found.part("source", "commit", "hash")
        if hash_of.value is None and not is_open:
            return ""
        beginning = hash_of.text()
        commit = self._commit(self._repository, beginning) or (self._fork_commit(fork, beginning) if fork else None)
        if commit is None and is_open:
            raise GitUnavailable.of(self._ask.subject, f"it has no commit {beginning[:WHOLE]}, which it names as a head")
        return commit.commit("hash") if commit else ""

    def _commit(self, repository: str, beginning: str) -> Answered | None:
        return self._ask.find(f"{repository}/commit/{quote(beginning, safe='')}", needs=_STATUSES)

    def _fork_commit(self, fork: str, beginning: str) -> Answered | None:
        """Return a fork's commit; that a fork is private says nothing of our token."""
        try:
            return self._commit(f"repositories/{quote(fork)}", beginning)
        except AccessDenied:
            return None

    def merge_base(self, base: str, head: str) -> str:
        """Ask for the common ancestor of two commits; where there is none, look whether both are there."""
        found = self._ask.find(f"{self._repository}/merge-base/{base}..{head}", needs=_STATUSES)
        if found is None:
            for each in (base, head):
                self._ask.get(f"{self._repository}/commit/{each}", needs=_STATUSES)
            return ""
        beginning = found.text("hash")
        return ((len(beginning) < WHOLE and self._commit(self._repository, beginning)) or found).commit("hash")

    def comment(self, number: int, comment: str) -> HostComment | None:
        """Ask for a comment; one that was deleted is still there, marked."""
        found = self._ask.find(self._comment(number, comment), needs=_COMMENTS) if is_number(comment) else None
        return None if found is None or found.flag("deleted") else _comment(found)

    def add_comment(self, number: int, text: str) -> HostComment:
        """Create a comment."""
        return _comment(self._ask.send("POST", f"{self._repository}/pullrequests/{number}/comments", _raw(text), needs=_COMMENTS))

    def edit_comment(self, number: int, comment: str, text: str) -> HostComment | None:
        """Change a comment's text; what says that a comment isn't ours may say so of a deleted one."""
        if not is_number(comment):
            return None
        try:
            return _comment(self._ask.send("PUT", self._comment(number, comment), _raw(text), needs=_COMMENTS))
        except (AccessDenied, HostRefusal):
            if self.comment(number, comment) is None:
                return None
            raise

    def may_write(self, author: str) -> bool:
        """Ask for the permission of an account, which groups give, too."""
        if not _ID.fullmatch(author):
            return False
        query = {"q": f'user.{"uuid" if author.startswith("{") else "account_id"}="{author}"'}
        rows = self._ask.get(f"workspaces/{self._workspace}/permissions/repositories/{self._slug}", query, _RIGHTS).rows("values")
        mine = [each for each in rows if author in (each.words("user", "account_id"), each.words("user", "uuid"))]
        return any(each.text("permission") in ("admin", "write") for each in mine)

    def _comment(self, number: int, comment: str) -> str:
        return f"{self._repository}/pullrequests/{number}/comments/{comment}"


def build_status(status: CommitStatus, words: Mapping[StatusState, str], key: str, link: str) -> dict[str, str]:
    """Return what sets a build status, in Bitbucket's cloud and data centers."""
    return {"key": key, "name": status.context, "state": words[status.state], "description": status.text, "url": link}


def _raw(text: str) -> dict[str, dict[str, str]]:
    return {"content": {"raw": text}}


def _account(found: Answered) -> str:
    """Return the id of an account; those of teams and apps have none but the other."""
    return found.words("account_id") or found.words("uuid")


def _comment(found: Answered) -> HostComment:
    return HostComment(found.key("id"), _account(found.part("user")), found.words("content", "raw"))
