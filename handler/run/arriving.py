"""Whether what a webhook named has arrived on the git host. Hosts show a push a moment late; deliveries come late, twice, in any order.

Pure. Nobody waits in a run. A run that finds nothing else to do is `lagging`: its request comes back after a while and goes on under its
id. One that did something has ended with that; what it leaves to look for is another run's, with an id of its own. Either goes with a
newer request if there is one.
"""

from __future__ import annotations

from collections.abc import Collection

from handler.config.git import Revision
from handler.model.event import Job
from handler.model.refs import Head
from handler.model.result import Outcome, Result

WAITS = (1.0, 2.0, 4.0, 8.0)
"""Seconds after which the head is looked at again when the host doesn't show a pushed commit yet."""

_OVER = frozenset({Outcome.APPLIED, Outcome.UNCHANGED, Outcome.HELD, Outcome.DRIFTED})
"""Ends after which a push may still be missing."""


def is_missed(job: Job, head: Head, revision: Revision) -> bool:
    """Whether what was pushed isn't what the host names.

    Of a range of versions, only a tag that would be the highest is missed, or the highest itself, moved.
    """
    if not job.hint or job.hint in (head.commit, head.oid):
        return False
    if not revision.semver:
        return True
    from handler.source.versions import overtakes  # noqa: PLC0415 - loads a library that only such targets need

    pushed = [each.ref for each in job.deliveries if each.hint == job.hint]
    return any(ref == head.ref or overtakes(revision.semver, ref, head.ref) for ref in pushed)


def verdict(job: Job, head: Head, deployed: Collection[str]) -> tuple[Outcome, str, float]:
    """Decide what becomes of a job whose hint is missed: its outcome, why, and in how many seconds it comes back (0: not at all).

    `deployed`: commits of earlier runs. A later look brings one only if the branch was forced back to it: it gets one.
    """
    seen = f"the host's head is {head.commit[:12]}, not {job.hint[:12]}"
    if job.hint in deployed:
        seen = f"{seen}, which was deployed earlier"
    if job.looks >= (1 if job.hint in deployed else len(WAITS)):
        return Outcome.SUPERSEDED, f"{seen}, after {job.looks + 1} looks", 0.0
    return Outcome.LAGGING, f"{seen}; looked at again in {WAITS[job.looks]:g} s", WAITS[job.looks]


def later(job: Job, result: Result, head: Head, revision: Revision, deployed: Collection[str]) -> Job | None:
    """Return what looks for a push once more that a run didn't find, however that ended, `WAITS[job.looks]` seconds later; None: nothing.

    A push may be the cure of what its author must cure; any other failure is tried again at its own pace.
    """
    over = result.outcome in _OVER or (result.outcome is Outcome.FAILED and result.who == "author")
    if not over or job.dry_run or not head.commit or not is_missed(job, head, revision):
        return None
    if verdict(job, head, deployed)[0] is not Outcome.LAGGING:
        return None
    return Job(job.target, "push", hint=job.hint, actor=job.actor, deliveries=job.deliveries, looks=job.looks + 1)
