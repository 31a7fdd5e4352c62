"""Gitea and Forgejo: commit statuses, and comments on pull requests.

https://docs.gitea.com/api ("repository", "issue"). Statuses aren't bounded in number. A pull request's own `merge_base` lags behind a push
by force, and no operation compares commits: it is found by the commits that the head has and the base has not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import quote

from handler.feedback.git_hosts.answers import NO_COMMIT, Answered
from handler.feedback.git_hosts.githublike import GitHubLike
from handler.feedback.git_hosts.repository_url import RepositoryUrl
from handler.model.commit_status import CommitStatus
from handler.model.errors import AccessDenied, GitUnavailable
from handler.model.host_answer import HostBusy, HostRefusal
from handler.model.pull_request import HostComment

FARTHEST = 2000
"""Commits between a head and the commit at which it parts from the base: those are read one page after the other."""
_BRIEF = {"stat": "false", "verification": "false", "files": "false"}
_CONTENTS = "read the contents of the repository"


class Gitea(GitHubLike):
    """One repository (`GitHostApi`).

    A token needs `write:repository`, for comments `write:issue`. Its account must administrate the repository, or it can't ask who may
    push. Members of a team count as such where the token may read that (`read:organization`, of an owner of the organization).
    """

    pause: ClassVar[float] = 0.0
    headers: ClassVar[Mapping[str, str]] = {}
    state: ClassVar[str] = "status"
    newest_first: ClassVar[Mapping[str, str]] = {"sort": "leastindex", "limit": "50"}  # its name for the highest index first
    place: ClassVar[str] = "pull_request_url"
    writing: ClassVar[frozenset[str]] = frozenset({"owner", "admin", "write"})
    asks_rights: ClassVar[str] = "be an administrator's of the repository: others can't ask who may push"

    @staticmethod
    def api_url(url: str) -> str:
        """Return `/api/v1` beside the repository, below a path where Gitea has one."""
        found = RepositoryUrl.of(url)
        return found.below(*found.parts[:-2], "api/v1")

    def post(self, status: CommitStatus) -> None:
        """Create a status; Gitea answers 500 where it has no such commit."""
        try:
            super().post(status)
        except HostBusy:
            raise
        except GitUnavailable:
            if self._ask.find(f"{self._repository}/git/commits/{status.commit}", _BRIEF, _CONTENTS) is None:
                words = f"it has no commit {status.commit}"
                raise HostRefusal.answered(self._ask.subject, words, NO_COMMIT) from None
            raise

    def add_comment(self, number: int, text: str) -> HostComment:
        """Create a comment; Gitea answers 500 where it has no such pull request, too."""
        try:
            return super().add_comment(number, text)
        except HostBusy:
            raise
        except GitUnavailable:
            self.pull_request(number)  # which raises HostRefusal
            raise

    def merge_base(self, base: str, head: str) -> str:
        """Follow the head's own commits to where they end; of several ends it is one that has no other above it."""
        best = ""
        for each in self._ends(base, head):
            if not best or not self._own(each, best, 1):  # it stands above the best until now
                best = each
        return best

    def _ends(self, base: str, head: str) -> list[str]:
        """Return the commits that both have and that a commit of the head alone comes from."""
        own: dict[str, list[str]] = {}
        for page in range(1, FARTHEST // 50 + 2):
            rows = self._own(base, head, page)
            own |= {row.commit("sha"): [each.commit("sha") for each in row.rows("parents")] for row in rows}
            if not rows:
                return list(dict.fromkeys(parent for parents in own.values() for parent in parents if parent not in own)) if own else [head]
        words = f"more than {FARTHEST:,} commits of the head aren't in the base"
        raise HostRefusal.answered(self._ask.subject, words, 422)

    def _own(self, base: str, head: str, page: int) -> list[Answered]:
        """Return a page of the commits that one has and another has not, the newest first."""
        query = {"sha": head, "not": base, "limit": "50", "page": str(page), **_BRIEF}
        return self._ask.get(f"{self._repository}/commits", query, _CONTENTS).rows()

    def may_write(self, author: str) -> bool:
        """Ask for the permission of an account, which doesn't count what a team may, and then for teams."""
        return super().may_write(author) or (bool(author) and self._is_in_team(author))

    def _is_in_team(self, author: str) -> bool:
        """Whether a team that may push has this member, as far as the token may know it."""
        try:
            teams = self._ask.get(f"{self._repository}/teams").rows()
            able = [each.key("id") for each in teams if each.words("units_map", "repo.code") in self.writing]
            return any(self._ask.find(f"teams/{each}/members/{quote(author, safe='')}") for each in able)
        except (AccessDenied, HostRefusal):  # of a person, or its teams are no business of the token
            return False

    def _is_fork(self, found: Answered) -> bool:
        """Whether the head is another repository's, or on no branch: that one (`refs/for/…`) is pushed by accounts that may only read."""
        return not found.words("head", "label") or super()._is_fork(found)
