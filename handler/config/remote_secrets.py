"""Secrets of stores: a cloud's, a Secret. Answers are kept for `interval` seconds, and after failures asked for later and later.

Law: each question has a daemon thread, and each answer counts as it comes: a store that hangs holds up its own secrets alone. What can't be
fetched is an error when it is read; where there was a value before, that one is kept.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from handler.config.git_settings import SecretRef
from handler.model.backoff import Backoff
from handler.model.errors import Problem, SecretUnavailable

Fetch = Callable[[SecretRef], str | None]
"""Asks a store for the whole text that a reference names, its key left out. None: there is no such version of it (yet).

Raises SecretUnavailable, which names the place and the way out, never a value.
"""
PATIENCE = 3.0
"""Seconds that one caller waits for a round; it then goes on with what there is, and so do all others at once."""
START = 20.0  # seconds that the first answers have to come
AT_ONCE, TURN = 8, 3.0
"""Questions that are asked at once; after so many seconds one doesn't wait for its turn any more, for those before it may hang."""
PAUSES = Backoff(5.0, 300.0)  # until a store that failed is asked again
_LOG = logging.getLogger("anneal.secrets")


def nowhere(ref: SecretRef) -> str | None:
    """Ask no store: there is none. Raises SecretUnavailable."""
    raise SecretUnavailable.of(str(ref), "can't be read here: no store is asked")


def whole(ref: SecretRef) -> SecretRef:
    """Return what must be asked for to read a reference: several keys of one AWS secret are one question."""
    aws = ref.aws_secrets_manager
    return SecretRef(aws_secrets_manager=replace(aws, key="")) if aws and aws.key else ref


def text_of(ref: SecretRef, fetch: Fetch) -> str | None:
    """Return what a reference names, without a newline at its end, as of a file; None: there is no such version of it.

    Raises SecretUnavailable.
    """
    text = fetch(whole(ref))
    aws = ref.aws_secrets_manager
    if text is not None and aws and aws.key:
        text = _value(ref, text, aws.key)
    if text and any("\ud800" <= char <= "\udfff" for char in text):  # JSON can write half a character; no text is sent with it
        raise SecretUnavailable.of(str(ref), "is not UTF-8 text")
    return None if text is None else text.removesuffix("\n").removesuffix("\r")


def _value(ref: SecretRef, text: str, key: str) -> str:
    """Take a key out of a JSON object. No problem quotes the document, nor the names of its other keys."""
    found, problem = None, ""
    try:
        document = json.loads(text)
        found = document.get(key) if isinstance(document, dict) else None
    except (ValueError, RecursionError):  # raised below, outside of this block: the error holds the text and would be chained
        document, problem = None, "isn't JSON, so it has no keys"
    if isinstance(found, str):
        return found
    if not problem:
        known = isinstance(document, dict) and key in document
        problem = f"its key {key} is no text" if known else f"has no key {key}" if isinstance(document, dict) else "is no JSON object"
    raise SecretUnavailable.of(str(ref), problem, fix='write it like {"key": "value"}; leave out `key` to use the whole text')


@dataclass(frozen=True, slots=True, repr=False)
class _StoreAnswer:
    """What a store said, when it was asked, and for how many seconds from then on that is kept."""

    value: str | None
    error: SecretUnavailable | None
    asked: tuple[float, float]
    kept: float
    failures: int = 0


@dataclass(frozen=True, slots=True)
class SecretClocks:
    """Two clocks: monotonic stands still while a function is frozen, the wall clock may be set back or ahead."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time

    def now(self) -> tuple[float, float]:
        """Return this moment by both."""
        return self.monotonic(), self.wall()

    def passed(self, since: tuple[float, float], seconds: float) -> bool:
        """Whether so many seconds have passed by either clock."""
        return any(now - then >= seconds for now, then in zip(self.now(), since, strict=True))


class RemoteSecrets:
    """The stores' answers, kept for `interval` seconds. Calling it is a Fetch that asks no store. Safe to share between threads."""

    def __init__(self, refs: Iterable[SecretRef], fetch: Fetch, interval: float, clocks: SecretClocks | None = None) -> None:
        """Ask for everything once; errors are raised when their secret is read."""
        self._fetch, self._interval, self._clocks = fetch, interval, clocks or SecretClocks()
        self._refs = tuple(dict.fromkeys(whole(ref) for ref in refs if ref.remote))
        self._answers: dict[SecretRef, _StoreAnswer] = {}
        self._asked: set[SecretRef] = set()
        self._turns = threading.Semaphore(AT_ONCE)
        self._answered = threading.Condition()
        self.rounds = 0
        """Grows with each answer."""
        self._ask(self._refs, START)
        with self._answered:
            self._answers = {ref: self._answers.get(ref) or self._unanswered(ref) for ref in self._refs}

    def __call__(self, ref: SecretRef) -> str | None:
        """Return the last answer. Raises SecretUnavailable: it was an error."""
        answer = self._answers.get(ref)
        if answer is None:
            return nowhere(ref)
        if answer.error:
            raise SecretUnavailable(*answer.error.problems)
        return answer.value

    def renew(self, patience: float = PATIENCE) -> None:
        """Ask anew for what is due and not on its way already, and wait `patience` seconds for that. One thread at a time calls this."""
        due = [ref for ref in self._refs if self._clocks.passed(self._answers[ref].asked, self._answers[ref].kept)]
        self._ask([ref for ref in due if ref not in self._asked], patience)

    def make_due(self, ref: SecretRef) -> None:
        """Let the next `renew` ask for this one, if the last question was a few seconds ago."""
        with self._answered:
            answer = self._answers.get(whole(ref))
            if answer and not answer.error and self._clocks.passed(answer.asked, PAUSES.first):
                self._answers = {**self._answers, whole(ref): replace(answer, kept=0.0)}

    def _ask(self, refs: Sequence[SecretRef], patience: float) -> None:
        with self._answered:
            self._asked.update(refs)
        for ref in refs:
            threading.Thread(target=self._question, args=(ref,), name="secrets", daemon=True).start()
        with self._answered:
            self._answered.wait_for(lambda: self._asked.isdisjoint(refs), patience)

    def _question(self, ref: SecretRef) -> None:
        """Ask for one, in its turn; the answer counts at once."""
        mine = self._turns.acquire(timeout=TURN)
        answer = self._answer(ref)
        if mine:
            self._turns.release()
        before = self._answers.get(ref)
        if answer.error is None and answer.value is None and (before is None or before.error or before.value is not None):
            said = "a secret has no version of this stage; it counts as absent until it has one"
            _LOG.info(said, extra={"fields": {"secret": str(ref)}})
        with self._answered:
            self._answers = {**self._answers, ref: answer}
            self._asked.discard(ref)
            self.rounds += 1
            self._answered.notify_all()

    def _answer(self, ref: SecretRef) -> _StoreAnswer:
        """Return what a store says. A value is as old as its question: a process may be frozen before the answer."""
        before, now = self._answers.get(ref), self._clocks.now()
        try:
            return _StoreAnswer(self._fetch(ref), None, now, self._interval)
        except SecretUnavailable as error:
            problems = error.problems
        except Exception as error:  # noqa: BLE001 - a mistake of ours or of a vendor's: what there is still counts
            problems = (Problem(str(ref), f"can't be read: {type(error).__name__}"),)
        failures = before.failures + 1 if before else 1
        return _StoreAnswer(None, SecretUnavailable(*problems), now, PAUSES.after(failures), failures)

    def _unanswered(self, ref: SecretRef) -> _StoreAnswer:
        fix = "see whether this process reaches the store, and whether that is well"
        error = SecretUnavailable.of(str(ref), f"can't be read: its store didn't answer in {START:g} s", fix=fix)
        return _StoreAnswer(None, error, self._clocks.now(), PAUSES.first)
