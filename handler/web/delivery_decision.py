"""The decision on a delivery: verified, read, matched, and its jobs in the queue. The door, functions, `anneal explain-delivery` share it.

Law: a sender learns nothing of targets and repositories outside its secret's scope. An unsigned delivery costs little: every secret hashes
the whole body, so where many are configured large bodies are verified one at a time, up to a bound.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from handler.config.secrets import Accepted
from handler.config.settings import Target
from handler.model.errors import AnnealError, TooLarge, TooManyRequests
from handler.model.event import PULL_REQUEST, Decision, Delivery, Event, Job
from handler.model.target_matching import TargetIndex, WatchedRevision, decide
from handler.queues import Queue
from handler.triggers import Webhook, unproven

MIB = 1024 * 1024
LARGE, MOST = 32 * MIB, 1024 * MIB
"""Bytes to hash, of a body by all secrets: from which on it waits for its turn (some 60 ms), and beyond which it is refused (some 2 s)."""
PATIENCE = 2.0  # seconds that a delivery waits for its turn
LINE = 4  # large bodies that are verified or wait, each on a thread: the other threads stay free
_turn, _line = threading.Lock(), threading.BoundedSemaphore(LINE)


@dataclass(frozen=True, slots=True)
class DeliveryDecision:
    """An event and what is decided. `foreign`: targets it names that have secrets of their own; for the operator's eyes only."""

    event: Event
    decisions: tuple[Decision, ...]
    foreign: tuple[str, ...] = ()


def watch(targets: Iterable[Target], *, follows_objects: bool = True) -> TargetIndex:
    """Return the targets as matching sees them; made once, not for each delivery. `follows_objects`: what runs them lives, and can."""
    return TargetIndex(
        WatchedRevision(
            target.name,
            (target.repository.url, *target.repository.aliases),
            ref=target.revision.ref,
            semver=target.revision.semver,
            suspended=target.suspend,
            promoters=target.revision.promoted.from_ if target.revision.promoted else (),
            needs_process=target.is_template and not follows_objects,
            plans_pull_requests=target.plans_pull_requests,
            has_instances=target.is_template,
        )
        for target in targets
    )


def judge(
    trigger: Webhook, headers: Mapping[str, str], body: bytes, accepted: Sequence[Accepted], watched: TargetIndex
) -> DeliveryDecision:
    """Verify a delivery, read it and decide. Raises BadSignature, BadPayload, TooLarge, TooManyRequests."""
    with _in_turn(len(body) * len(accepted)):
        event, allowed = trigger.verified(headers, body, accepted)
    return bounded(event, watched, allowed)


@contextmanager
def _in_turn(cost: int) -> Iterator[None]:
    if cost > MOST:
        raise TooLarge.of("body", "is too large to be verified by so many secrets", fix="let repositories share a secret")
    if cost <= LARGE:
        yield
        return
    crowded = TooManyRequests.of("body", "other large ones are being verified", fix="deliver it again")
    if not _line.acquire(blocking=False):
        raise crowded
    try:
        if not _turn.acquire(timeout=PATIENCE):
            raise crowded
        try:
            yield
        finally:
            _turn.release()
    finally:
        _line.release()


def bounded(event: Event, watched: TargetIndex, allowed: frozenset[str]) -> DeliveryDecision:
    """Decide for the targets in the scope of the sender's secret.

    A secret whose scope covers none of the named targets is as good as none: BadSignature. Otherwise the secret of one repository could
    trigger, and reveal, the targets of another.
    """
    concerned = [target.name for target in watched.concerned(event)]
    foreign = tuple(name for name in concerned if name not in allowed)
    if foreign and len(foreign) == len(concerned):
        refusal = unproven()
        refusal.add_note(f"signed with a secret that may not speak for {', '.join(foreign)}")  # for the log, never for the answer
        raise refusal
    return DeliveryDecision(event, decide(event, watched.only(allowed)), foreign)


def enqueue(queue: Queue, event: Event, decisions: Sequence[Decision], asked: float) -> dict[str, str]:
    """Put a job for each decision that matched into the queue; return the ids of their runs by target. `asked`: monotonic seconds.

    Raises SenderError: it takes none now.
    """
    matched = [decision for decision in decisions if decision.matched]
    runs = queue.put_all([_job(event, decision, asked) for decision in matched])
    return {decision.target: run for decision, run in zip(matched, runs, strict=True)}


def with_notes(refusal: AnnealError) -> str:
    """Return a refusal with the notes that its sender doesn't get."""
    return "; ".join([str(refusal), *getattr(refusal, "__notes__", ())])


def _job(event: Event, decision: Decision, asked: float) -> Job:
    if event.kind == PULL_REQUEST:
        return Job(decision.target, PULL_REQUEST, comments=(event.comment,) if event.comment else (), actor=event.actor, asked=asked)
    received = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    change = decision.change
    delivery = Delivery(event.delivery, event.provider, change.ref, change.after, event.actor, received)
    return Job(decision.target, "push", hint=change.after, actor=event.actor, deliveries=(delivery,), asked=asked)
