"""Posts the comment of a pull request, and finds it again: by the id that our record has, never by what a text says.

    note in the record that it is written now  ->  the host  ->  note what the host has

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
from handler.model.errors import AnnealError, Busy
from handler.model.pull_request import HostComment
from handler.state.record import State
from handler.state.record_format import seconds_of, stamp
from handler.state.recorded_pull_request import MOST_PULL_REQUESTS, RecordedPullRequest
from handler.state.store import StateStore

MakeText = Callable[[bool], str]
"""Makes the text just before it is posted; given whether the comment before was changed by others. Raises where it may not be."""
WRITING = 180.0
"""Seconds after which a writer counts as dead: longer than a host may take for the few requests of a comment."""
_TRIES = 20  # for what a lost note costs is another comment


@dataclass(frozen=True, slots=True)
class PlanComment:
    """Our comment on one pull request. `blank`: makes a record where the target has none yet."""

    api: GitHostApi
    store: StateStore
    blank: Callable[[], State]
    number: int

    def show(self, make: MakeText) -> None:
        """Let the comment say this. Raises what the host, the record and `make` raise; Busy: another server writes it just now."""
        writer = uuid.uuid4().hex
        known = self._begun(writer)
        try:
            posted = self._posted(known, make)
        except AnnealError:
            self._noted(writer, known)
            raise
        self._noted(writer, RecordedPullRequest(self.number, posted.id, posted.author, _digest(posted.text)))

    def closed(self, *, gone: bool) -> None:
        """Note that a pull request is closed, for it may be opened again: of all notes its own goes first; at once, where it is `gone`."""

        def change(state: State) -> State:
            mine = self._known(state)
            kept = (mine,) if mine and not gone else ()
            return replace(state, pull_requests=(*self._others(state), *kept))

        state = self.store.read().state
        if state and self._known(state):
            self.store.update(change)

    def _posted(self, known: RecordedPullRequest, make: MakeText) -> HostComment:
        found = self.api.comment(self.number, known.comment) if known.comment else None
        if found and (found.author, _digest(found.text)) == (known.account, known.digest):
            text = make(False)
            same = found if _digest(text) == known.digest else self.api.edit_comment(self.number, known.comment, text)
            if same:
                return same
        return self.api.add_comment(self.number, make(bool(known.comment)))

    def _begun(self, writer: str) -> RecordedPullRequest:
        """Note that we write the comment from now on; return what was known of it."""
        found = RecordedPullRequest(self.number)

        def change(state: State) -> State:
            nonlocal found
            found = self._known(state) or RecordedPullRequest(self.number)
            if found.writer and time.time() - seconds_of(found.since) < WRITING:
                raise Busy.of(f"comment on pull request {self.number}", "is being written by another server")
            mine = replace(found, writer=writer, since=stamp(time.time()))
            return replace(state, pull_requests=(mine, *self._others(state))[:MOST_PULL_REQUESTS])

        self.store.update(change, None if self.store.read().state else self.blank())
        return replace(found, writer="", since="")

    def _noted(self, writer: str, known: RecordedPullRequest) -> None:
        """Note what is known of the comment, and that it isn't written any more; not where another has begun since."""

        def change(state: State) -> State:
            mine = self._known(state)
            if mine is None or mine.writer != writer:
                return state
            return replace(state, pull_requests=tuple(known if each is mine else each for each in state.pull_requests))

        self.store.update(change, tries=_TRIES)

    def _known(self, state: State) -> RecordedPullRequest | None:
        return next((each for each in state.pull_requests if each.number == self.number), None)

    def _others(self, state: State) -> tuple[RecordedPullRequest, ...]:
        return tuple(each for each in state.pull_requests if each.number != self.number)


def _digest(text: str) -> str:
    """Return the digest of a text, however its host writes line ends."""
    return hashlib.sha256(text.replace("\r\n", "\n").strip().encode()).hexdigest()
