"""Bitbucket Cloud: build statuses.

https://developer.atlassian.com/cloud/bitbucket/rest/api-group-commit-statuses. A status goes by a key of at most 40 characters, which a
repetition overwrites, and must lead somewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from handler.feedback.git_hosts.repository_url import RepositoryUrl
from handler.model.commit_status import CommitStatus, StatusState, hashed
from handler.model.host_answer import HostRefusal, JsonApi

KEY = 40


class Bitbucket:
    """One repository (`GitHostApi`). A token needs `repository`."""

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

    def __init__(self, api: JsonApi, url: str) -> None:
        self._api = api
        self._url = RepositoryUrl.of(url)

    @staticmethod
    def api_url(url: str) -> str:  # noqa: ARG004 - one API for all
        """Return the API of Bitbucket Cloud."""
        return "https://api.bitbucket.org/2.0"

    def post(self, status: CommitStatus) -> None:
        """Set a status."""
        self._api.send("POST", self._statuses(status), self._body(status))

    def shows(self, status: CommitStatus) -> bool:
        """Compare with the status of the key."""
        try:
            found = self._api.get(f"{self._statuses(status)}/{hashed(status.context, KEY).replace('/', '%2F')}")
        except HostRefusal as refusal:
            if refusal.status == 404:
                return False
            raise
        return (found["state"], found["description"]) == (self.words[status.state], status.text)

    def _statuses(self, status: CommitStatus) -> str:
        return f"repositories/{self._url.name}/commit/{status.commit}/statuses/build"

    def _body(self, status: CommitStatus) -> dict[str, str]:
        link = status.link or f"{self._url.origin}/{self._url.name}/commits/{status.commit}"
        return build_status(status, self.words, hashed(status.context, KEY), link)


def build_status(status: CommitStatus, words: Mapping[StatusState, str], key: str, link: str) -> dict[str, str]:
    """Return what sets a build status, in Bitbucket's cloud and data centers."""
    return {"key": key, "name": status.context, "state": words[status.state], "description": status.text, "url": link}
