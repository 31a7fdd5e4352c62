"""Plans one pull request: one job of the queue, for all targets that follow the branch which it is to be merged into.

    what the host says of it      closed, a draft, a fork that may not: nothing, or our note of it goes
    a comment that asks           only `/anneal plan`, by an account that may push, as the host says
    the merge, each target        mistakes and plans, and what can't be planned now
    the status of its head        whatever becomes of the comment
    the comment                   while its head is still what was planned

Law: nothing here raises; what a host or cluster can't do now comes again with growing pauses.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from handler.app.pull_requests.comment_post import PlanComment
from handler.app.pull_requests.merge_result import merge_result
from handler.app.pull_requests.plan_comment import BEGINS, PlanOf, status_of, text
from handler.app.pull_requests.target_preview import UNPLANNED, TargetPreview, preview_target
from handler.app.target_runner import TargetRunner
from handler.config.settings import Target
from handler.engine.planner.preview import without_handed_over
from handler.feedback.git_hosts import GitHostApi
from handler.feedback.git_hosts.answers import GONE
from handler.model.backoff import TRANSIENT
from handler.model.commit_status import CommitStatus, StatusState, fitting, status_context
from handler.model.errors import AccessDenied, AnnealError, AuthorError, ConfigInvalid, NewerHead, Problem, Stopping
from handler.model.event import Job
from handler.model.host_answer import HostBusy, HostRefusal
from handler.model.pull_request import COMMAND, PullRequest, pull_request_of
from handler.model.refs import is_commit_id
from handler.model.result import Outcome, Result

_LOG = logging.getLogger("anneal.pull_request")
TRIES = 4
"""How often a plan is tried again whose host or cluster doesn't answer."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One job. `lead`: the first target of its repository; `all`: those that plan pull requests, `targets`: those that plan this one."""

    job: Job
    lead: Target
    all: tuple[Target, ...]
    api: GitHostApi
    number: int
    targets: tuple[Target, ...] = ()


class PullRequestRuns:
    """Plans the pull requests of one configuration. Safe to share between threads."""

    def __init__(self, handler: TargetRunner) -> None:
        self._handler = handler

    def run(self, job: Job, stop: threading.Event) -> Result:
        """Plan one pull request; whatever goes wrong is in the result, and what may be done later is asked for again."""
        since = time.monotonic()
        try:
            said = self._planned(job, stop)
            result = Result(job.target, Outcome.PLANNED, message=said)
        except AnnealError as error:
            result = self._failed(job, error)
        result = replace(result, trigger=job.trigger, run=job.run, duration=round(time.monotonic() - since, 3))
        fields = {"pull_request": job.target, "outcome": result.outcome, "seconds": result.duration, "seen": result.message}
        _LOG.log(logging.WARNING if result.outcome is Outcome.FAILED else logging.INFO, "pull request", extra={"fields": fields})
        return result

    def _failed(self, job: Job, error: AnnealError) -> Result:
        failed = Result(job.target, Outcome.FAILED, message=str(error), problems=error.problems, who=error.who, code=error.code)
        if error.who != "nobody" or job.looks >= TRIES or isinstance(error, Stopping):
            return failed
        pause = error.pause if isinstance(error, HostBusy) else TRANSIENT.after(job.looks + 1)
        at = time.time() + pause
        return replace(failed, again=replace(job, looks=job.looks + 1, run="", moment=at), again_at=at)

    def _planned(self, job: Job, stop: threading.Event) -> str:
        asked = self._asked(job)
        is_commanded = is_asked(asked.api, asked.number, job.comments)
        if job.comments and not job.changed and not is_commanded:
            return "no comment asks for a plan whose author may push"
        found = self._found(asked)
        if found is None or not found.is_open:
            self._comment(asked).closed(gone=found is None)
            return "it is closed"
        if found.is_draft and not is_commanded:
            return "it is a draft"
        targets = tuple(each for each in asked.all if each.revision.ref == f"refs/heads/{found.base}")
        if not targets:
            return f"no target follows {found.base}"
        if found.is_fork:
            targets = tuple(each for each in targets if each.repository.feedback and each.repository.feedback.forks)
        if not targets:
            return "it comes from a fork, and `forks` is off"
        return self._shown(replace(asked, targets=targets), found, stop)

    def _asked(self, job: Job) -> _Asked:
        name, number = pull_request_of(job.target)
        lead = self._handler.target(name)
        feedback = lead.repository.feedback
        if feedback is None or not feedback.pull_requests:
            raise ConfigInvalid.of(
                f"target {name}", "plans no pull requests", fix="write `feedback: {pullRequests: true}` in its repository"
            )
        every = (each for each in self._handler.settings.targets if each.plans_pull_requests and not each.suspend)
        targets = tuple(each for each in every if each.repository.is_same(lead.repository))
        return _Asked(job, lead, targets, self._handler.git_api(lead), number)

    def _found(self, asked: _Asked) -> PullRequest | None:
        """Return what the host says of it; None: it has no such pull request."""
        try:
            found = asked.api.pull_request(asked.number)
        except HostRefusal as refusal:
            if refusal.status in GONE:
                return None
            raise
        if found.is_open and not is_commit_id(found.head):
            raise HostRefusal.of(f"pull request {asked.number}", f"the host names {found.head[:60]!a} as its head")
        return found

    def _comment(self, asked: _Asked) -> PlanComment:
        handler = self._handler
        keeper = self._keeper(asked)
        store = handler.store(keeper)
        return PlanComment(asked.api, store, lambda: store.blank(handler.cluster_uid(keeper)), asked.number, BEGINS)

    def _keeper(self, asked: _Asked) -> Target:
        """Return the target whose record has the note of the comment: the first one, or another that was the first before."""
        silent = set()
        for target in (asked.lead, *(each for each in asked.all if each is not asked.lead)):
            if target.cluster in silent:
                continue
            try:
                state = self._handler.brief_store(target).read().state
            except AnnealError:
                if target is asked.lead:
                    raise
                silent.add(target.cluster)
                continue
            if state and any(each.number == asked.number for each in state.pull_requests):
                return target
        return asked.lead

    def _shown(self, asked: _Asked, found: PullRequest, stop: threading.Event) -> str:
        try:
            about, previews = self._previewed(asked, found, stop)
        except Stopping:
            raise
        except Exception:  # also a mistake of ours: the author isn't left waiting
            with contextlib.suppress(AnnealError):  # what keeps it from being planned counts
                self._post(asked, found, StatusState.FAILURE, UNPLANNED)
            raise
        state, words = status_of(about, previews)

        def make(edited: bool) -> str:
            now = self._found(asked)
            if now is None or (now.head, now.base, now.is_open) != (found.head, found.base, found.is_open):
                raise NewerHead.of(f"pull request {asked.number}", "has changed while it was planned")
            return text(replace(about, edited=edited), previews, asked.api.longest, folds=asked.api.folds)

        refused: AnnealError | None = None
        try:
            self._post(asked, found, state, words)
        except (HostRefusal, AccessDenied) as error:  # the comment is another right
            refused = error
        self._comment(asked).show(make)
        if refused:
            raise refused
        for late in filter(None, (each.late for each in previews)):
            raise late
        return words

    def _post(self, asked: _Asked, found: PullRequest, state: StatusState, words: str) -> None:
        """Post the status of a head, unless the host shows it already. Raises what the host raises."""
        context = status_context(self._handler.settings.installation, "pull-request", "plan")
        status = CommitStatus(found.head, context, state, fitting(words))
        if not asked.api.shows(status):
            asked.api.post(status)

    def _previewed(self, asked: _Asked, found: PullRequest, stop: threading.Event) -> tuple[PlanOf, list[TargetPreview]]:
        about = PlanOf(found.head, found.base)
        host = self._handler.git_host(asked.lead)
        try:
            merge = merge_result(host, asked.api, found, asked.targets[0].path)
        except AuthorError as error:
            return replace(about, trouble=error.problems), []
        about = replace(about, base=merge.base, diverged=merge.diverged)
        previews = list[TargetPreview]()
        for target in asked.targets:
            if not stop.is_set():
                previews.append(preview_target(self._handler, target, merge))
                continue
            late = Stopping.of(asked.job.target, "the worker stops; the next event, or `/anneal plan`, plans it")
            if not previews:
                raise late
            previews.append(TargetPreview(target.name, problems=(Problem(f"target {target.name}", UNPLANNED),), late=late))
        return about, self._handed_over(asked, previews)

    def _handed_over(self, asked: _Asked, previews: list[TargetPreview]) -> list[TargetPreview]:
        """Leave what another of these targets declares from now on, on the same cluster, out of the deletions."""
        targets = {target.name: target for target in asked.targets}

        def one(each: TargetPreview) -> TargetPreview:
            mine = targets[each.target]
            others = (other for other in previews if other is not each and targets[other.target].cluster == mine.cluster)
            declared = {identity: other.target for other in others for identity in other.declares}
            return replace(each, preview=without_handed_over(each.preview, declared, mine.prune)) if each.preview else each

        return [*map(one, previews)]


def is_asked(api: GitHostApi, number: int, comments: Sequence[str]) -> bool:
    """Return whether one of these comments, by their ids, asks for the plan of a pull request. Raises what the host raises."""
    return any(_asks(api, number, comment) for comment in reversed(comments))


def _asks(api: GitHostApi, number: int, id: str) -> bool:  # noqa: A002 - as `HostComment` has it
    comment = api.comment(number, id)
    return comment is not None and comment.text.strip() == COMMAND and api.may_write(comment.author)
