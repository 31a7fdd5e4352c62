"""A pull request (GitLab: merge request) as its host's API describes it, and a comment on one. Pure.

Law: of a webhook only the number and a comment's id are taken, as hints; everything here is what the host says when it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

COMMAND = "/anneal plan"
"""The whole text of a comment that asks for the plan once more."""
_SEPARATOR = "~"


@dataclass(frozen=True, slots=True)
class PullRequest:
    """One pull request. `head`: its commit, whole; `base`: the branch that it is to be merged into, by its short name.

    `author`: how the host knows the author. `is_fork`: its head is in another repository, or in none any more.
    """

    number: int
    head: str
    base: str
    author: str
    is_open: bool = True
    is_draft: bool = False
    is_fork: bool = False


@dataclass(frozen=True, slots=True)
class HostComment:
    """A comment on a pull request. `id`: as the host knows it (`<thread>/<comment>` on Azure DevOps); `author`: the id of its account."""

    id: str
    author: str
    text: str


def pull_request_name(target: str, number: int) -> str:
    """Return what a queue knows the plan of a pull request by: `<first target of the repository>~<number>`."""
    return f"{target}{_SEPARATOR}{number}"


def is_pull_request(name: str) -> bool:
    """Whether a job's target is a pull request: no target's name holds a tilde."""
    return _SEPARATOR in name


def lead_target(name: str) -> str:
    """Return the target in the name of a pull request; any other name as it is."""
    return name.partition(_SEPARATOR)[0]


def pull_request_of(name: str) -> tuple[str, int]:
    """Return the target and the number in such a name. Raises ValueError."""
    target, _, number = name.partition(_SEPARATOR)
    return target, int(number)
