"""Whether a comment on a pull request asks for its plan: by its whole text, and by an account that may push, as the host says."""

from __future__ import annotations

from collections.abc import Sequence

from handler.feedback.git_hosts import GitHostApi
from handler.model.pull_request import COMMAND


def is_asked(api: GitHostApi, number: int, comments: Sequence[str]) -> bool:
    """Return whether one of these comments, by their ids, asks for the plan of a pull request. Raises what the host raises."""
    return any(_asks(api, number, comment) for comment in reversed(comments))


def _asks(api: GitHostApi, number: int, id: str) -> bool:  # noqa: A002 - as `HostComment` has it
    comment = api.comment(number, id)
    return comment is not None and comment.text.strip() == COMMAND and api.may_write(comment.author)
