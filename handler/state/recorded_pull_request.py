"""Which comment on a pull request is ours: a part of the record of the first target of its repository."""

from __future__ import annotations

from dataclasses import dataclass

from handler.state.record_format import Line, Sha, Time

MOST_PULL_REQUESTS = 200
"""Pull requests of which a record keeps the comment; of more the one that was planned or closed longest ago gets another one."""


@dataclass(frozen=True, slots=True)
class RecordedPullRequest:
    """Our comment on one pull request. `comment`, `account`: ids of its host; `digest`: of the text as the host has it (sha256).

    `comment` is empty until there is one. `writer`: what writes the comment just now, since `since`; empty: nothing does. `next`: the
    digest of what it writes, which the host may have though no answer came.
    """

    number: int
    comment: Line = ""
    account: Line = ""
    digest: Sha = ""
    writer: Line = ""
    since: Time = ""
    next: Sha = ""
