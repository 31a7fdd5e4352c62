"""Posts the comment of a pull request, and finds it again: by the id that our record has, never by what a text says.

    note in the record what is written now, and by which server  ->  the host  ->  note what the host has

    ours still, by account and text    edited in place, unless it says the same
    edited by others, or gone          posted anew, and the new one says so

Law: what others may write, too, proves nothing. Only the record of one target, the first that the host's repository has, is written. Of
several servers one writes a comment at a time.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

from handler.feedback.git_hosts import GitHostApi
from handler.model.errors import AnnealError, Busy, GitUnavailable
from handler.model.host_answer import HostBusy
from handler.state.record import State
from handler.state.record_format import seconds_of, stamp
from handler.state.record_values import MOST_PULL_REQUESTS, RecordedPullRequest
from handler.state.store import StateStore

MakeText = Callable[[bool], str]
"""Makes the text just before it is posted; given whether the comment before was changed by others. Raises where it may not be."""
WRITING = 180.0
"""Seconds after which a writer counts as dead: longer than a host may take for the few requests of a comment."""
_TRIES = 20  # for what a lost note costs is another comment


@dataclass(frozen=True, slots=True)
class PlanComment:
    """Our comment on one pull request. `blank`: makes a record where the target has none yet.

    `begins`: as each of our texts does: a record that was written into may name another's comment, which isn't changed.
    """

    api: GitHostApi
    store: StateStore
    blank: Callable[[], State]
    number: int
    begins: str = ""

    def show(self, make: MakeText) -> None:
        """Let the comment say this. Raises what the host, the record and `make` raise; Busy: another server writes it just now."""
        state = self.store.read().state
        known = self._known(state) or RecordedPullRequest(self.number)
        if known.writer and known.since and abs(time.time() - seconds_of(known.since)) < WRITING:
            raise self._busy()
        found = self.api.comment(self.number, known.comment) if known.comment else None
        is_known = found is not None and found.author == known.account and _digest(found.text) in (known.digest, known.next)
        is_ours = found is not None and is_known and found.text.startswith(self.begins)
        text = make(bool(known.comment) and not is_ours)
        if is_ours and found and _digest(found.text) == _digest(text):
            return
        writing = replace(known, writer=uuid.uuid4().hex, since=stamp(time.time()), next=_digest(text))
        if not self._noted(known, writing, None if state else self.blank()):
            raise self._busy()
        try:
            posted = self.api.edit_comment(self.number, known.comment, text) if is_ours else None
            posted = posted or self.api.add_comment(self.number, text)
        except AnnealError as error:
            may_have_arrived = isinstance(error, GitUnavailable) and not isinstance(error, HostBusy)
            if is_ours or not may_have_arrived:  # else a second comment waits until this writer counts as dead
                self._noted(writing, replace(writing, writer="", since="") if may_have_arrived else known)
            raise
        self._noted(writing, RecordedPullRequest(self.number, posted.id, posted.author, _digest(posted.text)))

    def closed(self, *, gone: bool) -> None:
        """Note that a pull request is closed, for it may be opened again: of all notes its own goes first; at once, where it is `gone`."""

        def change(state: State) -> State:
            mine = self._known(state)
            kept = (mine,) if mine and not gone else ()
            return replace(state, pull_requests=(*self._others(state), *kept))

        state = self.store.read().state
        if state and self._known(state):
            self.store.update(change)

    def _noted(self, before: RecordedPullRequest, after: RecordedPullRequest, blank: State | None = None) -> bool:
        """Note what becomes of the comment, in a new record where none is; return False where another server has noted something since."""
        is_noted = False

        def change(state: State) -> State:
            nonlocal is_noted
            is_noted = (self._known(state) or RecordedPullRequest(self.number)) == before
            return replace(state, pull_requests=(after, *self._others(state))[:MOST_PULL_REQUESTS]) if is_noted else state

        self.store.update(change, blank, tries=_TRIES)
        return is_noted

    def _busy(self) -> Busy:
        return Busy.of(f"comment on pull request {self.number}", "is being written by another server")

    def _known(self, state: State | None) -> RecordedPullRequest | None:
        return next((each for each in state.pull_requests if each.number == self.number), None) if state else None

    def _others(self, state: State) -> tuple[RecordedPullRequest, ...]:
        return tuple(each for each in state.pull_requests if each.number != self.number)


def _digest(text: str) -> str:
    """Return the digest of a text, however its host writes line ends."""
    return hashlib.sha256(text.replace("\r\n", "\n").strip().encode()).hexdigest()
