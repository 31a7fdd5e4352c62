"""Azure DevOps: statuses of commits, and threads of pull requests.

https://learn.microsoft.com/rest/api/azure/devops/git. A context is a genre and a name; the newest status of one has the highest id. A
comment stands in a thread of its own. The version asked for is that of Azure DevOps Server 2020, the oldest that has all of it.
Repositories are at `https://dev.azure.com/<organization>/<project>/_git/<repository>`, at
`https://<organization>.visualstudio.com/<project>/_git/<repository>`, and by SSH at
`ssh://git@ssh.dev.azure.com/v3/<organization>/<project>/<repository>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from handler.feedback.git_hosts.answers import Answered, Asking, about_commit, is_number
from handler.feedback.git_hosts.repository_url import RepositoryUrl
from handler.model.commit_status import CommitStatus, StatusState
from handler.model.host_answer import JsonApi
from handler.model.pull_request import HostComment, PullRequest

VERSION = {"api-version": "6.0"}
_BRANCH = "refs/heads/"
_COLLECTION = "DefaultCollection"
_CLOUD = "https://dev.azure.com"
_STATUSES, _READS = "have the scope `Code (status)`", "have the scope `Code (read)`"
_COMMENTS = "have the scope `Pull request threads`"


class AzureDevOps:
    """One repository (`GitHostApi`). A token is the password beside an empty user.

    It needs `Code (status)`, for pull requests also `Code (read)` and `Pull request threads`. Who may push isn't asked, so no account is
    taken for a writer: another host knows memberships (vssps.dev.azure.com), and access control lists are for tokens that manage security.
    """

    pause: ClassVar[float] = 0.0
    headers: ClassVar[Mapping[str, str]] = {}
    words: ClassVar[Mapping[StatusState, str]] = {
        StatusState.PENDING: "pending",
        StatusState.SUCCESS: "succeeded",
        StatusState.FAILURE: "failed",
        StatusState.HELD: "failed",
        StatusState.SUPERSEDED: "error",
        StatusState.UNTOUCHED: "succeeded",
    }
    user: ClassVar[str | None] = ""
    longest: ClassVar[int] = 65_536
    folds: ClassVar[bool] = False  # a `<details>` is documented for wikis alone

    def __init__(self, api: JsonApi, url: str) -> None:
        _, project, name = _places(url)
        self._ask = Asking(api)
        self._repository = f"{quote(project)}/_apis/git/repositories/{quote(name)}"

    @staticmethod
    def api_url(url: str) -> str:
        """Return the organization's URL, or the collection's of a server."""
        return _places(url)[0]

    def post(self, status: CommitStatus) -> None:
        """Create a status."""
        body: dict[str, Any] = {"state": self.words[status.state], "description": status.text, "context": _context(status)}
        body |= {"targetUrl": status.link} if status.link else {}
        with about_commit(status.commit):
            self._ask.send("POST", f"{self._repository}/commits/{status.commit}/statuses", body, VERSION, _STATUSES)

    def shows(self, status: CommitStatus) -> bool:
        """Compare with the newest status of the context."""
        query = {**VERSION, "latestOnly": "true"}
        listed = self._ask.find(f"{self._repository}/commits/{status.commit}/statuses", query, _STATUSES)
        mine = [each for each in (listed.rows("value") if listed else ()) if _is_of(each.part("context"), status)]
        newest = max(mine, key=lambda each: each.number("id"), default=None)
        return newest is not None and (newest.text("state"), newest.words("description")) == (self.words[status.state], status.text)

    def pull_request(self, number: int) -> PullRequest:
        """Ask for a pull request."""
        found = self._ask.get(f"{self._repository}/pullRequests/{number}", VERSION, _READS)
        return PullRequest(
            number=found.number("pullRequestId"),
            head=found.commit("lastMergeSourceCommit", "commitId"),
            base=found.text("targetRefName").removeprefix(_BRANCH),
            author=found.words("createdBy", "id"),
            is_open=found.text("status") == "active",
            is_draft=found.flag("isDraft"),
            is_fork=found.part("forkSource").value is not None,
        )

    def merge_base(self, base: str, head: str) -> str:
        """Ask for the merge bases of two commits; the first of several."""
        query = {**VERSION, "otherCommitId": head}
        found = self._ask.get(f"{self._repository}/commits/{base}/mergeBases", query, _READS).rows("value")
        return found[0].commit("commitId") if found else ""

    def comment(self, number: int, comment: str) -> HostComment | None:
        """Ask for a comment; one that was deleted is still there, marked."""
        found = self._ask.find(self._comment(number, comment), VERSION, _COMMENTS) if _is_comment(comment) else None
        return None if found is None or found.flag("isDeleted") else _comment(comment.partition("/")[0], found)

    def add_comment(self, number: int, text: str) -> HostComment:
        """Create a thread that is closed, so that no policy waits for it."""
        body = {"comments": [{"parentCommentId": 0, "content": text, "commentType": "text"}], "status": "closed"}
        found = self._ask.send("POST", self._threads(number), body, VERSION, _COMMENTS)
        return _comment(found.key("id"), found.first("comments"))

    def edit_comment(self, number: int, comment: str, text: str) -> HostComment | None:
        """Change a comment's text, if it isn't deleted."""
        if self.comment(number, comment) is None:
            return None
        found = self._ask.change("PATCH", self._comment(number, comment), {"content": text}, VERSION, _COMMENTS)
        return _comment(comment.partition("/")[0], found) if found else None

    def may_write(self, author: str) -> bool:  # noqa: ARG002 - the port's argument
        """Return that it isn't known."""
        return False

    def _threads(self, number: int) -> str:
        return f"{self._repository}/pullRequests/{number}/threads"

    def _comment(self, number: int, comment: str) -> str:
        thread, _, inner = comment.partition("/")
        return f"{self._threads(number)}/{thread}/comments/{inner}"


def _context(status: CommitStatus) -> dict[str, str]:
    """Return a context as its genre and name; one without a slash is a name."""
    genre, slash, name = status.context.partition("/")
    return {"genre": genre, "name": name} if slash else {"name": genre}


def _is_of(context: Answered, status: CommitStatus) -> bool:
    wanted = _context(status)
    return (context.words("genre"), context.text("name")) == (wanted.get("genre", ""), wanted["name"])


def _is_comment(comment: str) -> bool:
    thread, _, inner = comment.partition("/")
    return is_number(thread) and is_number(inner)


def _comment(thread: str, found: Answered) -> HostComment:
    return HostComment(f"{thread}/{found.key('id')}", found.words("author", "id"), found.words("content"))


def _places(url: str) -> tuple[str, str, str]:
    """Return the URL of the organization, the project and the repository. Raises ConfigInvalid: the URL has another shape."""
    found = RepositoryUrl.of(url)
    if found.is_ssh and found.parts[:1] == ("v3",) and len(found.parts) == 4:
        _, organization, project, name = found.parts
        origin = _CLOUD if found.origin.endswith(".visualstudio.com") else found.origin
        return RepositoryUrl(origin, ()).below(organization), project, name
    if found.parts[-2:-1] != ("_git",):
        raise found.unlike("<organization>/<project>/_git/<repository>")
    above, name = found.parts[:-2], found.parts[-1]
    # A project's first repository has the project's name, and is written without it.
    is_default = not above or above[-1] == _COLLECTION or (found.origin == _CLOUD and len(above) == 1)
    *above_project, project = (*above, name) if is_default else above
    return found.below(*above_project), project, name
