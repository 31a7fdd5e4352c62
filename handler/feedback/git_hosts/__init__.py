"""Git hosts, as what shows statuses of commits and plans on pull requests: a new one is a file, a row here, a name in `feedback_settings`.

Law: a row says what is asked of its host's API, and what the host calls our states; it opens no socket (`JsonApi` does), waits for nothing
and remembers nothing. Loaded where a repository of such a host has feedback, never at a door.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from handler.model.commit_status import CommitStatus, StatusState
from handler.model.host_answer import JsonApi
from handler.model.pull_request import HostComment, PullRequest

GIT_HOSTS: Mapping[str, str] = {
    "github": "handler.feedback.git_hosts.github:GitHub",
    "gitlab": "handler.feedback.git_hosts.gitlab:GitLab",
    "gitea": "handler.feedback.git_hosts.gitea:Gitea",
    "bitbucket": "handler.feedback.git_hosts.bitbucket:Bitbucket",
    "bitbucketserver": "handler.feedback.git_hosts.bitbucketserver:BitbucketServer",
    "azuredevops": "handler.feedback.git_hosts.azuredevops:AzureDevOps",
}


class GitHostApi(Protocol):
    """One repository on one host. `pause`: seconds between two writes that the host wants; `headers`: of each request.

    `words`: what the host calls our states; `user`: beside which a token is a password, None: it stands alone. `longest`: characters of a
    comment; `folds`: its comments fold what stands in `<details>`.
    """

    pause: ClassVar[float]
    headers: ClassVar[Mapping[str, str]]
    words: ClassVar[Mapping[StatusState, str]]
    user: ClassVar[str | None]
    longest: ClassVar[int]
    folds: ClassVar[bool]

    def __init__(self, api: JsonApi, url: str) -> None:
        """Prepare; nothing is asked. `url`: of the repository, as git is fetched from it."""

    @staticmethod
    def api_url(url: str) -> str:
        """Return where the API is, by the URL of a repository."""

    def post(self, status: CommitStatus) -> None:
        """Let the host show a status. Raises HostRefusal: it never will; HostBusy, AccessDenied, GitUnavailable, ConfigInvalid.

        A refusal's status is 404 where the repository isn't seen, 422 where it hasn't that commit.
        """

    def shows(self, status: CommitStatus) -> bool:
        """Whether that is what the host shows of the commit under the context now; no, where nothing is there. Raises as `post`."""

    # --- pull requests
    def pull_request(self, number: int) -> PullRequest:
        """Return a pull request as it is now. Raises HostRefusal: there is none (404); else as `post`."""

    def merge_base(self, base: str, head: str) -> str:
        """Return the commit at which two commits part; empty: they have none in common. Raises as `post`."""

    def comment(self, number: int, comment: str) -> HostComment | None:
        """Return a comment on a pull request; None: it is gone. Raises as `post`."""

    def add_comment(self, number: int, text: str) -> HostComment:
        """Comment on a pull request; return the comment as the host has it. Raises as `post`."""

    def edit_comment(self, number: int, comment: str, text: str) -> HostComment | None:
        """Give a comment another text, and return it; None: it is gone. Raises as `post`."""

    def may_write(self, author: str) -> bool:
        """Whether an account may push to the repository, as the host says now; False where it can't be known. Raises as `post`."""


def host_row(name: str) -> type[GitHostApi]:
    """Return the class of a row of `GIT_HOSTS`."""
    module, _, found = GIT_HOSTS[name].partition(":")
    made: Any = getattr(importlib.import_module(module), found)
    return made  # type: ignore[no-any-return]  # as the table says
