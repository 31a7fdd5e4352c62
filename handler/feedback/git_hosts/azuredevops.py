"""Azure DevOps: statuses of commits.

https://learn.microsoft.com/rest/api/azure/devops/git/statuses. A context is a genre and a name; the newest status of one has the highest
id. Repositories are at `https://dev.azure.com/<organization>/<project>/_git/<repository>`, at
`https://<organization>.visualstudio.com/<project>/_git/<repository>`, and by SSH at
`ssh://git@ssh.dev.azure.com/v3/<organization>/<project>/<repository>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from handler.feedback.git_hosts.repository_url import RepositoryUrl
from handler.model.commit_status import CommitStatus, StatusState
from handler.model.host_answer import JsonApi

VERSION = {"api-version": "7.1"}


class AzureDevOps:
    """One repository (`GitHostApi`). A token needs `Code (status)`; it is the password beside an empty user."""

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

    def __init__(self, api: JsonApi, url: str) -> None:
        _, project, name = _places(url)
        self._api = api
        self._repository = f"{quote(project)}/_apis/git/repositories/{quote(name)}"

    @staticmethod
    def api_url(url: str) -> str:
        """Return the organization's URL, or the collection's of a server."""
        return _places(url)[0]

    def post(self, status: CommitStatus) -> None:
        """Create a status."""
        genre, _, name = status.context.partition("/")
        body: dict[str, Any] = {"state": self.words[status.state], "description": status.text, "context": {"genre": genre, "name": name}}
        body |= {"targetUrl": status.link} if status.link else {}
        self._api.send("POST", f"{self._repository}/commits/{status.commit}/statuses", body, VERSION)

    def shows(self, status: CommitStatus) -> bool:
        """Compare with the newest status of the context."""
        answer = self._api.get(f"{self._repository}/commits/{status.commit}/statuses", {**VERSION, "latestOnly": "true"}) or {}
        mine = [each for each in answer.get("value", ()) if f"{each['context'].get('genre')}/{each['context']['name']}" == status.context]
        newest = max(mine, key=lambda each: int(each["id"]), default=None)
        return newest is not None and (newest["state"], newest["description"]) == (self.words[status.state], status.text)


def _places(url: str) -> tuple[str, str, str]:
    """Return the URL of the organization, the project and the repository. Raises ValueError: the URL has another shape."""
    found = RepositoryUrl.of(url)
    if found.parts[:1] == ("v3",):
        _, organization, project, name = found.parts
        return f"{found.origin}/{organization}", project, name
    at = found.parts.index("_git")
    above, name = found.parts[:at], found.parts[at + 1]
    is_default = len(above) <= (1 if found.origin.endswith("://dev.azure.com") else 0)  # a project's first repository has its name
    *above_project, project = (*above, name) if is_default else above
    return "/".join((found.origin, *above_project)), project, name
