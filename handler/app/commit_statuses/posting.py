"""Posts what one target's record owes its git host, and marks it there.

    read the record -> post what is pending, and each end that is owed -> mark those ends

Law: a record is testimony: what this process hasn't just heard of is posted only to commits of the branch. What may have been sent and
isn't marked is looked for on the host before it is sent again, so that nothing is shown twice. A pending that came late, over an end that
another process has posted, is followed by that end once more.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import Protocol

from handler.app.commit_statuses.host_lane import DueLook
from handler.app.target_runner import TargetRunner
from handler.config.settings import Settings, Target
from handler.model.commit_status import CommitStatus, StatusState, fitting, status_context
from handler.model.errors import AccessDenied, AnnealError, AuthorError, GitUnavailable, Moved
from handler.model.host_answer import HostRefusal
from handler.model.tree import ReadSet
from handler.state import commit_status_update
from handler.state.record import State
from handler.state.record_values import RecordedCommitStatus
from handler.state.store import StateStore

_LOG = logging.getLogger("anneal.feedback")
_UNTOUCHED = "targets that read nothing of what changed stay as they are"


class StatusHost(Protocol):
    """What shows the statuses of one repository's commits: a part of `GitHostApi`."""

    def post(self, status: CommitStatus) -> None:
        """Let the host show a status. Raises HostRefusal: it never will; HostBusy, AccessDenied, GitUnavailable, ConfigInvalid."""

    def shows(self, status: CommitStatus) -> bool:
        """Whether that is what the host shows of the commit under the context now. Raises as `post`."""


class RecordsAndHosts(Protocol):
    """What leads to records and git hosts; `Handler` is it."""

    def store(self, target: Target) -> StateStore:
        """Return a target's record."""

    def brief_store(self, target: Target) -> StateStore:
        """Return the same with short time-outs."""

    def git_api(self, target: Target) -> StatusHost:
        """Return the API of the git host of a target's repository. Raises ConfigInvalid."""

    def is_overtaken(self, target: Target, state: State, status: RecordedCommitStatus) -> bool:
        """Whether a commit that only a webhook has named was overtaken. Raises AnnealError."""

    def proves(self, target: Target, commit: str) -> bool:
        """Whether a target's revision leads to a commit. Raises AnnealError."""


@dataclass
class _Look:
    """One look at a record. `news`: see `DueLook`; `done`: what the host has by now; `dropped`: what it never gets.

    `failed`: the first thing that kept a status from being posted; the others are posted all the same.
    """

    target: Target
    state: State
    api: StatusHost
    news: frozenset[str]
    done: list[RecordedCommitStatus] = field(default_factory=list)
    dropped: list[RecordedCommitStatus] = field(default_factory=list)
    failed: AnnealError | None = None


class StatusPosting:
    """Posts to one host; by one thread."""

    def __init__(self, settings: Settings, ways: RecordsAndHosts) -> None:
        self._settings, self._ways = settings, ways
        self._targets = {target.name: target for target in settings.targets}
        self._pending: dict[str, tuple[str, str]] = {}

    def is_pending(self, target: str, commit: str) -> bool:
        """Whether the host shows a target's commit as pending, by a post of this process."""
        return self._pending.get(target, ("",))[0] == commit

    def look(self, due: DueLook) -> None:
        """Post what a target's record owes. Raises AnnealError: what kept a part of it from being posted."""
        target = self._targets[due.target]
        state = self._ways.brief_store(target).read().state
        owed = [each for each in reversed(state.commit_statuses) if not self._is_shown(target, each)] if state else []
        if state is None or not owed:
            return
        look = _Look(target, state, self._ways.git_api(target), due.news)
        for status in sorted(owed, key=lambda each: each.hinted):  # what git is asked about comes last
            self._tried(look, status)
        if look.done or look.dropped:
            self._ways.store(target).update(lambda state: _marked(state, look))
        self._repeat_late(look)
        if look.failed:
            raise look.failed

    def _is_shown(self, target: Target, status: RecordedCommitStatus) -> bool:
        return status.posted or self._pending.get(target.name) == (status.commit, status.text)

    def _tried(self, look: _Look, status: RecordedCommitStatus) -> None:
        """Post one status; a host that doesn't answer isn't asked for the next."""
        if isinstance(look.failed, GitUnavailable):
            return
        try:
            self._judge(look, status)
        except AnnealError as error:
            look.failed = look.failed if look.failed and not isinstance(error, GitUnavailable) else error

    def _judge(self, look: _Look, status: RecordedCommitStatus) -> None:
        is_news = _is_news(look, status)
        is_idle = status.hinted and not self._ways.is_overtaken(look.target, look.state, status)
        if is_idle or not (is_news or self._is_proven(look.target, status)):
            look.dropped.append(status)
        elif self._is_sent(look, self._status(look.target, status), is_news=is_news) and not status.is_end:
            self._pending[look.target.name] = status.commit, status.text
        else:
            if self.is_pending(look.target.name, status.commit):
                del self._pending[look.target.name]  # should it be tried again, it is pending again
            look.done.append(status)

    def _is_proven(self, target: Target, status: RecordedCommitStatus) -> bool:
        """Whether a commit that only the record names is the target's: no other one is called good in our name."""
        try:
            return self._ways.proves(target, status.commit)
        except AuthorError:  # the host has it no longer
            return False

    def _status(self, target: Target, status: RecordedCommitStatus) -> CommitStatus:
        feedback, page = target.repository.feedback, self._settings.page
        assert feedback is not None  # noqa: S101 - only such targets are due
        at = feedback.page_url or (page.url if page else "")
        link = f"{at}/ui/targets/{target.name}" if at else ""
        if status.state == StatusState.UNTOUCHED:  # one for all such targets
            return CommitStatus(status.commit, status_context(self._settings.installation), StatusState.UNTOUCHED, _UNTOUCHED)
        context = status_context(self._settings.installation, target.name)
        return CommitStatus(status.commit, context, StatusState(status.state), fitting(status.text), link)

    def _is_sent(self, look: _Look, status: CommitStatus, *, is_news: bool) -> bool:
        """Send a status unless the host shows it already; return whether it shows it now: False: it refuses it for good."""
        api = look.api
        if not is_news and api.shows(status):
            return True
        fields = {"commit": status.commit, "context": status.context, "state": str(status.state)}
        try:
            api.post(status)
        except HostRefusal as refusal:
            if refusal.status == 404:
                fix = "let the token write commit statuses of the repository, or give another one; check feedback.apiUrl"
                raise AccessDenied(*(replace(each, fix=fix) for each in refusal.problems)) from None
            if refusal.status == 409:
                raise Moved(*refusal.problems) from None  # of this repository; its host goes on with others
            _LOG.warning("a commit status is refused", extra={"fields": {**fields, "why": str(refusal)}})
            return False
        _LOG.info("commit status", extra={"fields": fields})
        return True

    def _repeat_late(self, look: _Look) -> None:
        """Show an end once more that another process may have posted while a pending of ours was on its way, marked or not."""
        name = look.target.name
        if not any(self._pending.get(name) == (each.commit, each.text) for each in look.state.commit_statuses):
            return
        fresh = self._ways.brief_store(look.target).read().state
        for each in fresh.commit_statuses if fresh else ():
            if each.commit == self._pending[name][0] and each.is_end:
                self._is_sent(look, self._status(look.target, each), is_news=True)


def _is_news(look: _Look, status: RecordedCommitStatus) -> bool:
    if status.state == StatusState.UNTOUCHED:
        return False  # it may be of another target
    return f"{status.run}/{status.commit}" in look.news or (not status.is_end and status.commit in look.news)


def _marked(state: State, look: _Look) -> State:
    return commit_status_update.without(commit_status_update.posted(state, look.done), look.dropped)


def is_overtaken(ways: TargetRunner, target: Target, state: State, status: RecordedCommitStatus) -> bool:
    """Return whether a commit that only a webhook has named was overtaken: no run aimed at it, because a newer one came before.

    So it is where what the record is on leads back to it, and it reads otherwise than what was recorded before: what changes nothing has no
    end to be shown. A payload is a hint, so the git host is asked.

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
