"""Bitbucket Data Center: build statuses.

https://developer.atlassian.com/server/bitbucket/rest ("Builds and Deployments"). A status goes by a key, which a repetition overwrites,
and must lead somewhere. What is cancelled came with version 8.0: an older server shows it as failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from handler.feedback.git_hosts.bitbucket import build_status
from handler.feedback.git_hosts.repository_url import RepositoryUrl
from handler.model.commit_status import CommitStatus, StatusState
from handler.model.host_answer import HostRefusal, JsonApi

_FAILED, _CANCELLED = "FAILED", "CANCELLED"


class BitbucketServer:
    """One repository (`GitHostApi`). An HTTP access token needs `Repository read`."""

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

    def __init__(self, api: JsonApi, url: str) -> None:
        self._api = api
        self._url = RepositoryUrl.of(url)

    @staticmethod
    def api_url(url: str) -> str:
        """Return `/rest/api/latest` of the server, below a path where it has one (`<path>/scm/<project>/<repository>`)."""
        found = RepositoryUrl.of(url)
        above = found.parts[: found.parts.index("scm")] if "scm" in found.parts[:-2] else ()
        return "/".join((found.origin, *above, "rest/api/latest"))

    def post(self, status: CommitStatus) -> None:
        """Set a status."""
        project, name = self._url.parts[-2:]
        link = status.link or f"{self._url.origin}/projects/{project}/repos/{name}/commits/{status.commit}"
        body = build_status(status, self.words, status.context, link)
        try:
            self._api.send("POST", self._builds(status), body)
        except HostRefusal as refusal:
            if refusal.status != 400 or body["state"] != _CANCELLED:
                raise
            self._api.send("POST", self._builds(status), {**body, "state": _FAILED})

    def shows(self, status: CommitStatus) -> bool:
        """Compare with the status of the key."""
        try:
            found = self._api.get(self._builds(status), {"key": status.context})
        except HostRefusal as refusal:
            if refusal.status == 404:
                return False
            raise
        mine = self.words[status.state]
        return (found["state"], found["description"]) in ((mine, status.text), (mine.replace(_CANCELLED, _FAILED), status.text))

    def _builds(self, status: CommitStatus) -> str:
        project, name = self._url.parts[-2:]
        return f"projects/{project}/repos/{name}/commits/{status.commit}/builds"
