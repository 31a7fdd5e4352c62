"""Dead letters: messages that came to no end. People look at them, and ask for them again (redrive).

Law: a message is hidden only while it is looked at, and deleted here only after it is in the queue again: a process that dies in between
leaves two of it, and the second run finds nothing to do.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from handler.model.errors import AnnealError
from handler.queues import message, sqs_client
from handler.queues.pending import Work
from handler.queues.sqs import BATCH, Received, SqsEntry, SqsQueue
from handler.queues.sqs_client import QueueInvalid

HIDDEN = 60.0
"""Seconds for which a dead letter is hidden from others, should we die looking at it."""
MOST = 1000
"""Dead letters of one look."""
_EMPTY = 2
"""Answers without a message after which there is none: a queue is many machines, and one of them may not know yet."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter. `work`: what it asks; None: it can't be read, and `trouble` says why."""

    received: Received
    work: Work | None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Letters:
    """What one look found. `waiting`: how many there are, about; of one target no more than ten are shown at once."""

    found: tuple[Letter, ...]
    waiting: int


@dataclass(frozen=True, slots=True)
class Redriven:
    """What became of dead letters: asked for again, deleted as unreadable, left where they were."""

    again: tuple[Letter, ...] = ()
    dropped: tuple[Letter, ...] = ()
    kept: tuple[Letter, ...] = ()


class DeadLetters:
    """Those of one queue, found by its redrive policy."""

    def __init__(self, queue: SqsQueue) -> None:
        """Find them. Raises QueueInvalid: the queue has no dead-letter queue; QueueUnavailable."""
        self._queue = queue
        self.name, url = _dead(queue)
        self._dead = queue.beside(url)

    def look(self) -> Letters:
        """Return what waits there. Raises QueueUnavailable."""
        with self._looked_at() as (letters, _):
            return Letters(tuple(letters), max(self.count(), len(letters)))

    def redrive(self, wanted: Callable[[Work], bool], *, drop_unreadable: bool = False) -> Redriven:
        """Put what is `wanted` into the queue again, and delete it here. Raises QueueUnavailable; what is done by then stays done.

        `drop_unreadable`: delete what can't be read, which no worker will ever run.
        """
        again: list[Letter] = []
        dropped: list[Letter] = []
        refused: set[str] = set()
        while True:  # of one target ten are handed out at most, until they are deleted
            with self._looked_at() as (letters, gone):
                asked = {letter.received.id for letter in again}  # by now another may have made one visible before it was deleted
                chosen = [each for each in letters if each.work and wanted(each.work) and each.received.id not in asked]
                unread = [each for each in letters if each.work is None and drop_unreadable and each.received.id not in refused]
                for start in range(0, len(chosen), BATCH):
                    batch = chosen[start : start + BATCH]
                    self._queue.send([_entry(letter) for letter in batch])
                    self._dead.delete([letter.received for letter in batch])
                    gone.extend(batch)
                refused.update(each.id for each in self._dead.delete([letter.received for letter in unread]))
                unread = [each for each in unread if each.received.id not in refused]
                gone.extend(unread)
            again += chosen
            dropped += unread
            if not chosen and not unread:
                return Redriven(tuple(again), tuple(dropped), tuple(letters))

    @contextmanager
    def _looked_at(self) -> Iterator[tuple[Sequence[Letter], list[Letter]]]:
        """Receive all; in the end give back what isn't among the gone."""
        letters: list[Letter] = []
        gone: list[Letter] = []
        try:
            empty = 0
            while empty < _EMPTY and len(letters) < MOST:
                found = self._dead.receive(BATCH, 0, HIDDEN)
                empty = 0 if found else empty + 1
                letters += map(_letter, found)
            letters.sort(key=lambda letter: letter.received.sent)
            yield letters, gone
        finally:
            self._dead.postpone([letter.received for letter in letters if letter not in gone], 0)

    def count(self) -> int:
        """Return how many there are, about. Raises QueueUnavailable."""
        names = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
        return sum(int(number) for number in self._dead.attributes(*names).values())


def _dead(queue: SqsQueue) -> tuple[str, str]:
    subject, fix = sqs_client.named(queue.url), "give it a redrive policy that names a FIFO queue: aws sqs set-queue-attributes"
    policy = queue.attributes("RedrivePolicy").get("RedrivePolicy")
    if not policy:
        raise QueueInvalid.of(subject, "has no redrive policy, so nothing ends as a dead letter", fix=fix)
    account, _, name = str(json.loads(policy)["deadLetterTargetArn"]).rpartition(":")
    url = queue.address(name, account.rpartition(":")[2])
    return name, url


def _letter(received: Received) -> Letter:
    try:
        return Letter(received, message.decode(received.body))
    except ValueError as error:
        return Letter(received, None, str(error))


def _entry(letter: Letter) -> SqsEntry:
    """Return a new message, with an id of its own: for five minutes the queue drops what has the old one."""
    again = hashlib.sha256(f"redrive {letter.received.id}".encode()).hexdigest()
    return SqsEntry(letter.received.body, letter.received.group or (letter.work.job.target if letter.work else ""), again)


_LOG = logging.getLogger("anneal.queue")
EVERY = 60.0  # seconds between two counts
Report = Callable[[str, int], None]  # takes the name of the queue of dead letters, and how many it has


class DeadLetterCount:
    """Counts from `start` to `stop`, on a thread of its own."""

    def __init__(self, queue: SqsQueue, report: Report) -> None:
        self._queue = queue
        self._report = report
        self._letters: DeadLetters | None = None
        self._said = ""
        self._stop = threading.Event()

    def start(self) -> None:
        """Count now, and then each minute."""
        threading.Thread(target=self._work, name="dead letters", daemon=True).start()

    def stop(self) -> None:
        """Count no more."""
        self._stop.set()

    def count(self) -> None:
        """Count once; what keeps it from being counted is said once."""
        try:
            self._letters = self._letters or DeadLetters(self._queue)
            self._report(self._letters.name, self._letters.count())
        except AnnealError as error:
            if str(error) != self._said:
                _LOG.warning("dead letters aren't counted", extra={"fields": {"code": error.code, "seen": str(error)}})
            self._said = str(error)
        else:
            self._said = ""

    def _work(self) -> None:
        while True:
            self.count()
            if self._stop.wait(EVERY):
                return
