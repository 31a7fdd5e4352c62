"""Hosts that the rows of `handler.feedback.git_hosts` are tried against, each by the same few words: five made-up ones.

The way to a host is the one that the app makes: its row, its sign-in, its connections.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import Any, get_args

from handler.app.git_host_apis import git_host_api
from handler.config.feedback_settings import FeedbackSettings, GitHostName
from handler.config.git_settings import Repository, SecretRef
from handler.config.secrets import Secret, Secrets
from handler.feedback.git_hosts import GitHostApi
from handler.model.commit_status import hashed
from handler.source.git_host import SharedConnections
from tests.fakes.git_hosts.azuredevops import AzureDevOps
from tests.fakes.git_hosts.bitbucket import Bitbucket
from tests.fakes.git_hosts.bitbucketserver import BitbucketServer
from tests.fakes.git_hosts.exchange import Comment, Grant, Json, PullRequest
from tests.fakes.git_hosts.github import GitHub
from tests.fakes.git_hosts.gitlab import GitLab
from tests.fakes.git_hosts.served_host import TOKEN, ServedHost

_IDS = count(1)
_REF = SecretRef(env="TOKEN")


class Right(StrEnum):
    """What a person may do."""

    STRANGER = "stranger"
    READER = "reader"
    WRITER = "writer"
    OWNER = "owner"


@dataclass(frozen=True)
class Proposal:
    """A pull request as it was opened, and the commit that its base's branch is at."""

    number: int
    head: str
    base: str
    merge_base: str


def way(name: str, url: str, token: str, api_url: str = "", **feedback: Any) -> GitHostApi:
    """Return what the app makes of a repository with feedback."""
    assert name in get_args(GitHostName)
    settings = FeedbackSettings(token=_REF, host=name, api_url=api_url, **feedback)  # type: ignore[arg-type]  # one of those
    secrets = Secrets(git={_REF: Secret(token)})
    return git_host_api(Repository(url, feedback=settings), secrets, SharedConnections().pools)


def sha() -> str:
    """Return the id of a commit that no other has."""
    return f"{next(_IDS) * 0x9E3779B97F4A7C15F39CC0605CEDC8341082276B:040x}"[-40:]


class TriedHost(ABC):
    """A host with one repository. `states`: what it calls ours, in their order; `tells_rights`: it says who may push."""

    name: str
    url: str
    token: str
    states: tuple[str, ...]
    tells_rights: bool = True

    def api(self, token: str = "", api_url: str = "") -> GitHostApi:
        """Return the way to the host."""
        return way(self.name, self.url, token or self.token, api_url or self.api_url)

    @property
    def api_url(self) -> str:
        """Where its API is, if the URL of its repository doesn't show it."""
        return ""

    @abstractmethod
    def commit(self) -> str:
        """Return a new commit of the repository."""

    @abstractmethod
    def shown(self, commit: str, context: str) -> tuple[str, str, str]:
        """Return the state, the text and the link of what the host shows under a context."""

    @abstractmethod
    def propose(self, right: Right = Right.WRITER, *, fork: bool = False, draft: bool = False) -> Proposal:
        """Let a person with a right open a pull request, of a branch or of a fork; the base goes on afterwards."""

    @abstractmethod
    def close(self, number: int) -> None:
        """Close a pull request."""

    @abstractmethod
    def forget_fork(self, number: int) -> None:
        """Delete the repository that a pull request is from."""

    @abstractmethod
    def say(self, number: int, right: Right, text: str) -> str:
        """Let a person with a right comment; return the comment's id."""

    @abstractmethod
    def delete(self, number: int, comment: str) -> None:
        """Delete a comment of ours."""

    @abstractmethod
    def person(self, right: Right) -> str:
        """Return how the host knows a person with a right, as its answers name people."""

    @abstractmethod
    def unrelated(self) -> str:
        """Return a commit that has nothing in common with any other."""

    @abstractmethod
    def reading(self) -> str:
        """Return a token that may only read."""


@dataclass
class MadeUp(TriedHost):
    """A made-up host. `rights`: as it writes them; `keys`: of a status' state, text and link; `of`: whether it is of a context."""

    name: str
    host: ServedHost
    states: tuple[str, ...]
    rights: Mapping[Right, str]
    keys: tuple[str, str, str]
    of: Callable[[Json, str], bool]
    readers: frozenset[str]
    path: str = "acme/shop.git"
    token: str = TOKEN
    knows: Callable[[str], str] = lambda name: name
    tells_rights: bool = True
    _people: dict[Right, str] = field(default_factory=dict)

    @property
    def url(self) -> str:  # type: ignore[override]  # it is known once the host listens
        return f"{self.host.origin}/{self.path}"

    @property
    def api_url(self) -> str:
        return self.host.url

    def commit(self) -> str:
        made = sha()
        self.host.commits.add(made)
        return made

    unrelated = commit

    def shown(self, commit: str, context: str) -> tuple[str, str, str]:
        newest = [each for each in self.host.statuses[commit] if self.of(each, context)][-1]
        state, text, link = (str(newest.get(key) or "") for key in self.keys)
        return state, text, link

    def propose(self, right: Right = Right.WRITER, *, fork: bool = False, draft: bool = False) -> Proposal:
        head, base, merge_base = self.commit(), self.commit(), self.commit()
        self.host.merge_bases[base, head] = merge_base
        number = self.host.next_number()
        author = self._named(right)
        self.host.pull_requests[number] = PullRequest(number, head, base, author=author, fork=fork, draft=draft, target="release/1.x")
        return Proposal(number, head, base, merge_base)

    def close(self, number: int) -> None:
        self.host.pull_requests[number].state = "closed"

    def forget_fork(self, number: int) -> None:
        self.host.pull_requests[number].orphan = True

    def say(self, number: int, right: Right, text: str) -> str:
        made = Comment(self.host.next_number(), number, text, self._named(right))
        self.host.comments[made.number] = made
        return str(made.number)

    def delete(self, number: int, comment: str) -> None:
        del self.host.comments[int(comment)]

    def person(self, right: Right) -> str:
        return self.knows(self._named(right))

    def _named(self, right: Right) -> str:
        """Return the name of a person with a right, who is known to the host."""
        if right not in self._people:
            self._people[right] = f"{right}-ada"
            if right in self.rights:
                self.host.users[self.knows(self._people[right])] = self.rights[right]
        return self._people[right]

    def reading(self) -> str:
        self.host.tokens["a-token-that-reads"] = Grant("anneal", self.readers)
        return "a-token-that-reads"


class TriedBitbucket(MadeUp):
    """Bitbucket Cloud, where what is deleted is marked."""

    def delete(self, number: int, comment: str) -> None:
        self.host.comments[int(comment)].deleted = True


class TriedAzure(MadeUp):
    """Azure DevOps, where comments are in threads, and what is deleted is marked."""

    host: AzureDevOps

    def say(self, number: int, right: Right, text: str) -> str:
        thread = self.host.next_number()
        self.host.threads[thread] = {"id": thread, "pull_request": number, "status": "active"}
        self.host.comments[thread * 1000 + 1] = Comment(1, number, text, self._named(right), thread=thread)
        return f"{thread}/1"

    def delete(self, number: int, comment: str) -> None:
        thread, _, inner = comment.partition("/")
        self.host.comments[int(thread) * 1000 + int(inner)].deleted = True


def _number(name: str) -> str:
    """Return how the made-up GitLab counts a person."""
    return str(sum(name.encode()))


def _github() -> MadeUp:
    return MadeUp(
        name="github",
        host=GitHub(),
        states=("pending", "success", "failure", "failure", "error", "success"),
        rights={Right.READER: "read", Right.WRITER: "maintain", Right.OWNER: "admin"},
        keys=("state", "description", "target_url"),
        of=lambda each, context: each["context"] == context,
        readers=frozenset({"statuses:read", "pull_requests:read", "contents:read"}),
    )


def _gitlab() -> MadeUp:
    return MadeUp(
        name="gitlab",
        host=GitLab(),
        states=("running", "success", "failed", "failed", "canceled", "success"),
        rights={Right.READER: "20", Right.WRITER: "30", Right.OWNER: "50"},
        keys=("status", "description", "target_url"),
        of=lambda each, context: each["name"] == context,
        readers=frozenset({"read_api"}),
        knows=_number,
    )


def _bitbucket() -> MadeUp:
    return TriedBitbucket(
        name="bitbucket",
        host=Bitbucket(),
        states=("INPROGRESS", "SUCCESSFUL", "FAILED", "FAILED", "STOPPED", "SUCCESSFUL"),
        rights={Right.READER: "read", Right.WRITER: "write", Right.OWNER: "admin"},
        keys=("state", "description", "url"),
        of=lambda each, context: each["key"] == hashed(context, 40) and each["name"] == context,
        readers=frozenset({"account"}),
    )


def _bitbucketserver() -> MadeUp:
    return MadeUp(
        name="bitbucketserver",
        host=BitbucketServer(),
        states=("INPROGRESS", "SUCCESSFUL", "FAILED", "FAILED", "CANCELLED", "SUCCESSFUL"),
        rights={Right.STRANGER: "LICENSED", Right.READER: "REPO_READ", Right.WRITER: "REPO_WRITE", Right.OWNER: "REPO_ADMIN"},
        keys=("state", "description", "url"),
        of=lambda each, context: each["key"] == context,
        readers=frozenset({"LICENSED"}),
        path="scm/acme/shop.git",
    )


def _azuredevops() -> MadeUp:
    return TriedAzure(
        name="azuredevops",
        host=AzureDevOps(),
        states=("pending", "succeeded", "failed", "failed", "error", "succeeded"),
        rights={each: each for each in Right},
        keys=("state", "description", "targetUrl"),
        of=lambda each, context: f"{each['context']['genre']}/{each['context']['name']}" == context,
        readers=frozenset({"vso.code"}),
        path="acme/platform/_git/shop",
        tells_rights=False,
    )


MADE_UP: Mapping[str, Callable[[], MadeUp]] = {
    "github": _github,
    "gitlab": _gitlab,
    "bitbucket": _bitbucket,
    "bitbucketserver": _bitbucketserver,
    "azuredevops": _azuredevops,
}


def made_up(name: str) -> Iterator[MadeUp]:
    """Yield a made-up host that listens; it must be left without a request that its schema refuses."""
    tried = MADE_UP[name]()
    with tried.host:
        yield tried
