"""Whether a commit that only a webhook has named was overtaken: no run aimed at it, because a newer one came before.

Law: a payload is a hint, so the git host is asked. What changes nothing for the target has no end to be shown.
"""

from __future__ import annotations

from handler.app.target_runner import TargetRunner
from handler.config.settings import Target
from handler.model.errors import AuthorError
from handler.model.tree import ReadSet
from handler.state.record import State
from handler.state.recorded_commit_status import RecordedCommitStatus


def is_overtaken(ways: TargetRunner, target: Target, state: State, status: RecordedCommitStatus) -> bool:
    """Return whether what the record is on leads back to the commit, which reads otherwise than what was recorded before it.

    Raises AnnealError: the host, or what isn't git, can't be asked now.
    """
    head = state.attempt.commit if state.attempt else state.held.commit if state.held else state.commit
    try:
        if not head or not ways.ancestry(target).reaches(head, status.commit):
            return False
        preparer = ways.preparer(target, ways.discovery(target))
        tree, outside = preparer.tree(status.commit), preparer.outside(state.render, status.commit)
    except AuthorError:
        return False  # gone, or no commit that the target takes
    reads = ReadSet(tuple((path, "") for path in state.reads_paths)).on(tree, outside.ask)
    return reads.digest() != status.unless
