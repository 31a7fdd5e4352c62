"""Posts the comment of a pull request, and finds it again: by the id that our record has, never by what a text says.

    ours still, by account and text    edited in place, unless it says the same
    edited by others, or gone          posted anew, and the new one says so

Law: what others may write, too, proves nothing. Only the record of one target, the first that the host's repository has, is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from handler.feedback.git_hosts import GitHostApi
from handler.model.pull_request import HostComment
from handler.state.record import State
from handler.state.recorded_pull_request import MOST_PULL_REQUESTS, RecordedPullRequest
from handler.state.store import StateStore

MakeText = Callable[[bool], str]
"""Makes the text; given whether the comment before was changed by others."""


@dataclass(frozen=True, slots=True)
class PlanComment:
    """Our comment on one pull request. `blank`: makes a record where the target has none yet."""

    api: GitHostApi
    store: StateStore
    blank: Callable[[], State]
    number: int

    def show(self, make: MakeText) -> None:
        """Let the comment say this. Raises what the host raises, and what keeps the record from being written."""
        known = self._known()
        found = self.api.comment(self.number, known.comment) if known else None
        ours = known is not None and found is not None and (found.author, _digest(found.text)) == (known.account, known.digest)
        if known is not None and found is not None and ours:
            text = make(False)
            if _digest(text) == known.digest:
                return
            posted = self.api.edit_comment(self.number, known.comment, text)
            if posted is not None:
                self._keep(posted)
                return
        self._keep(self.api.add_comment(self.number, make(known is not None)))

    def forget(self) -> None:
        """Forget a pull request that is closed; its comment stays."""
        if self._known():
            self.store.update(lambda state: replace(state, pull_requests=self._others(state)))

    def _known(self) -> RecordedPullRequest | None:
        state = self.store.read().state
        return next((each for each in state.pull_requests if each.number == self.number), None) if state else None

    def _others(self, state: State) -> tuple[RecordedPullRequest, ...]:
        return tuple(each for each in state.pull_requests if each.number != self.number)

    def _keep(self, posted: HostComment) -> None:
        mine = RecordedPullRequest(self.number, posted.id, posted.author, _digest(posted.text))

        def change(state: State) -> State:
            return replace(state, pull_requests=(mine, *self._others(state))[:MOST_PULL_REQUESTS])

        self.store.update(change, None if self.store.read().state else self.blank())


def _digest(text: str) -> str:
    """Return the digest of a text, however its host writes line ends."""
    return hashlib.sha256(text.replace("\r\n", "\n").strip().encode()).hexdigest()
