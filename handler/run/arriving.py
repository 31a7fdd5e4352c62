"""Whether what a webhook named has arrived on the git host. Hosts show a push a moment late; deliveries come late, twice, in any order.

Pure. Nobody waits in a run: the job comes back after a while, and goes with a newer one if there is one.
"""

from __future__ import annotations

from collections.abc import Collection

from handler.config.git import Revision
from handler.model.event import Job
from handler.model.refs import Head
from handler.model.result import Outcome

WAITS = (1.0, 2.0, 4.0, 8.0)
"""Seconds after which the head is looked at again when the host doesn't show a pushed commit yet."""


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
