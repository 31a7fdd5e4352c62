"""Which comment on a pull request is ours: a part of the record of the first target of its repository."""

from __future__ import annotations

from dataclasses import dataclass

from handler.state.record_format import Line, Sha

MOST_PULL_REQUESTS = 50
"""Open pull requests of which a record keeps the comment; of more the oldest gets another one."""


@dataclass(frozen=True, slots=True)
class RecordedPullRequest:
    """Our comment on one pull request. `comment`, `account`: ids of its host; `digest`: of the text as the host has it (sha256)."""

    number: int
    comment: Line
    account: Line
    digest: Sha
