"""Whether the git host already serves a pushed commit, and when to look again. Pure: no run waits for it.

A run that finds nothing else to do is `lagging`: its request comes back after a while under its id. One that did something leaves the look
to a run of its own. Either merges with a newer request.
"""

from __future__ import annotations

from collections.abc import Collection

from handler.config.git_settings import Revision
from handler.model.backoff import Backoff
from handler.model.event import Job
from handler.model.refs import Head
from handler.model.result import Outcome, Result

WAITS = tuple(Backoff(1.0, 8.0).after(looks) for looks in range(1, 5))
"""Seconds after which the head is looked at again when the host doesn't show a pushed commit yet."""

_OVER = frozenset(
    {Outcome.APPLIED, Outcome.UNCHANGED, Outcome.HELD, Outcome.DRIFTED, Outcome.SUPERSEDED, Outcome.WAITING, Outcome.ROLLED_BACK}
)
"""Ends after which a push may still be missing."""


def missed(job: Job, head: Head, revision: Revision) -> tuple[str, ...]:
    """Return the pushed commits that the host doesn't name, newest last; of a range of versions, only what would be the highest.

    None is missed where others prove commits: what is pushed isn't what is followed.
    """
    if revision.promoted:
        return ()
    pushed = [(each.hint, each.ref) for each in job.deliveries]
    if job.hint not in dict(pushed):
        pushed.append((job.hint, ""))
    there = ("", head.commit, head.oid)
    found = [hint for hint, ref in reversed(pushed) if hint not in there and _may_come(ref, head, revision)]
    return tuple(reversed(dict.fromkeys(found)))


def _may_come(ref: str, head: Head, revision: Revision) -> bool:
    if not revision.semver:
        return True
    from handler.source.tag_versions import overtakes  # noqa: PLC0415 - loads a library that only such targets need

    return ref == head.ref or overtakes(revision.semver, ref, head.ref)


def is_missed(job: Job, head: Head, revision: Revision) -> bool:
    """Whether the newest push that a job knows of isn't what the host names."""
    return job.hint in missed(job, head, revision)


def verdict(job: Job, head: Head, deployed: Collection[str]) -> tuple[Outcome, str, float]:
    """Decide what becomes of a job whose hint is missed: its outcome, why, and in how many seconds it comes back (0: not at all)."""
    seen = f"the host's head is {head.commit[:12]}, not {job.hint[:12]}"
    if job.hint in deployed:
        seen = f"{seen}, which was deployed earlier"
    if job.looks >= _looks(job, job.hint, deployed):
        return Outcome.SUPERSEDED, f"{seen}, after {job.looks + 1} looks", 0.0
    return Outcome.LAGGING, f"{seen}; looked at again in {WAITS[job.looks]:g} s", WAITS[job.looks]


def later(job: Job, result: Result, head: Head, revision: Revision, deployed: Collection[str]) -> Job | None:
    """Return what looks, `WAITS[job.looks]` seconds later, for pushes that a run didn't find; None: nothing, or other failures."""
    failed = result.outcome is Outcome.FAILED
    if not (result.outcome in _OVER or (failed and result.who == "author")) or job.dry_run or not head.commit:
        return None
    left = [hint for hint in missed(job, head, revision) if job.looks < _looks(job, hint, deployed)]
    if not left or (failed and job.hint not in left):
        return None
    heard = tuple(each for each in job.deliveries if each.hint in left)
    actor = heard[-1].actor if heard else job.actor
    return Job(job.target, "push", hint=left[-1], actor=actor, deliveries=heard, looks=job.looks + 1)


def _looks(job: Job, hint: str, deployed: Collection[str]) -> int:
    """Return how often a missed push is looked for again: one that was deployed earlier once, and not at all behind a newer one."""
    if hint not in deployed:
        return len(WAITS)
    return 1 if hint == job.hint else 0
