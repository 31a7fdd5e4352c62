"""Git hosts, as what shows the statuses of commits: a new host is one file, one row here, and one name in `feedback_settings`.

Law: a row says what is asked of its host's API, and what the host calls our states; it opens no socket (`JsonApi` does), waits for nothing
and remembers nothing. Loaded where a repository of such a host has feedback, never at a door.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from handler.model.commit_status import CommitStatus, StatusState
from handler.model.host_answer import JsonApi

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

    `words`: what the host calls our states; `user`: beside which a token is a password, None: it stands alone.
    """

    pause: ClassVar[float]
    headers: ClassVar[Mapping[str, str]]
    words: ClassVar[Mapping[StatusState, str]]
    user: ClassVar[str | None]

    def __init__(self, api: JsonApi, url: str) -> None:
        """Prepare; nothing is asked. `url`: of the repository, as git is fetched from it."""

    @staticmethod
    def api_url(url: str) -> str:
        """Return where the API is, by the URL of a repository."""

    def post(self, status: CommitStatus) -> None:
        """Let the host show a status. Raises HostRefusal: it never will; HostBusy, AccessDenied, GitUnavailable, ConfigInvalid."""

    def shows(self, status: CommitStatus) -> bool:
        """Whether that is what the host shows of the commit under the context now. Raises as `post`."""


def host_row(name: str) -> type[GitHostApi]:
    """Return the class of a row of `GIT_HOSTS`."""
    module, _, found = GIT_HOSTS[name].partition(":")
    made: Any = getattr(importlib.import_module(module), found)
    return made  # type: ignore[no-any-return]  # as the table says
