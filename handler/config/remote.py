"""Secrets that somebody must be asked for: a cloud's store, a Secret. What was told is kept for a while; who reads never waits long.

Law: a store is asked by one thread a round and again only when a value is `interval` old; after a failure later and later. What can't be
fetched is an error for who reads it, and whoever had a value before keeps that one.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from handler.config import masking
from handler.config.git import SecretRef
from handler.model.errors import Problem, SecretUnavailable

Fetch = Callable[[SecretRef], str | None]
"""Asks a store for the whole text that a reference names, its key left out. None: there is no such version of it (yet).

Raises SecretUnavailable, which names the place and the way out, never a value.
"""
PATIENCE = 3.0
"""Seconds that one caller waits for a round; it then goes on with what there is, and so do all others at once."""
AT_ONCE = 8
"""Questions that a round asks at once."""
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
_LOG = logging.getLogger("anneal.secrets")


def nowhere(ref: SecretRef) -> str | None:
    """Ask no store: for who has none. Raises SecretUnavailable."""
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
    return None if text is None else text.removesuffix("\n").removesuffix("\r")


def _value(ref: SecretRef, text: str, key: str) -> str:
    """Take a key out of a JSON object. No problem quotes the document, nor the names of its other keys."""
    found, problem = None, ""
    try:
        document = json.loads(text)
        found = document.get(key) if isinstance(document, dict) else None
    except (ValueError, RecursionError):  # it holds the text, so it must not become anyone's __context__
        document, problem = None, "isn't JSON, so it has no keys"
    if isinstance(found, str):
        return found
    if not problem:
        known = isinstance(document, dict) and key in document
        problem = f"its key {key} is no text" if known else f"has no key {key}" if isinstance(document, dict) else "is no JSON object"
    raise SecretUnavailable.of(str(ref), problem, fix='write it like {"key": "value"}; leave out `key` to use the whole text')


@dataclass(frozen=True, slots=True, repr=False)
class _Told:
    """What a store said, and when it is asked again. `wall`: when it was asked, by the clock that goes on while a function is frozen."""

    value: str | None
    error: SecretUnavailable | None
    due: float
    wall: float
    failures: int = 0

    def __repr__(self) -> str:
        return "_Told(***)"


class Remote:
    """The stores' answers about these references, kept for `interval` seconds. Calling it is a Fetch that asks nobody.

    Safe to share between threads: an answer is replaced, never changed.
    """

    def __init__(self, refs: Iterable[SecretRef], fetch: Fetch, interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Ask for everything once; errors wait for who reads what they are about."""
        self._fetch, self._interval, self._clock = fetch, interval, clock
        self._refs = tuple(dict.fromkeys(whole(ref) for ref in refs if ref.remote))
        self._told: dict[SecretRef, _Told] = {}
        self._merging = threading.Lock()
        self._thread: threading.Thread | None = None
        self.rounds = 0
        if self._refs:
            self._round(self._refs)

    def __call__(self, ref: SecretRef) -> str | None:
        """Return what was told last. Raises SecretUnavailable: the last answer was an error."""
        told = self._told.get(ref)
        if told is None:
            return nowhere(ref)
        if told.error:
            raise SecretUnavailable(*told.error.problems)
        return told.value

    def renew(self, patience: float = PATIENCE) -> None:
        """Ask anew for what is due, in a thread of its own, and wait `patience` seconds for it; while one is on its way, go on at once.

        Only one thread may call this at a time.
        """
        if self._thread and self._thread.is_alive():
            return
        due = [ref for ref in self._refs if self._is_due(self._told[ref])]
        if not due:
            return
        self._thread = threading.Thread(target=self._round, args=(due,), name="secrets", daemon=True)
        self._thread.start()
        self._thread.join(patience)

    def _is_due(self, told: _Told) -> bool:
        return told.due <= self._clock() or (told.error is None and time.time() - told.wall >= self._interval)

    def hurry(self, ref: SecretRef) -> None:
        """Let the next `renew` ask for this one, if the last question was a few seconds ago."""
        now = self._clock()
        with self._merging:
            told = self._told.get(whole(ref))
            if told and not told.error and told.due - self._interval + FIRST_PAUSE <= now:
                self._told = {**self._told, whole(ref): replace(told, due=now)}

    def _round(self, refs: Iterable[SecretRef]) -> None:
        """Ask for all of these, several at once. A value is as old as its question: a process may be frozen before the answer."""
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="secrets") as pool:
            told = dict(pool.map(lambda ref: (ref, self._asked(ref)), refs))
        masking.learn(*(text for each in told.values() for text in _texts(each.value)), seconds=2 * self._interval)
        for ref, each in told.items():
            before = self._told.get(ref)
            if each.error is None and each.value is None and (before is None or before.error or before.value is not None):
                fields = {"secret": str(ref)}
                _LOG.info("a secret has no version of this stage; it counts as absent until it has one", extra={"fields": fields})
        with self._merging:
            self._told = {**self._told, **told}
            self.rounds += 1

    def _asked(self, ref: SecretRef) -> _Told:
        before, now, wall = self._told.get(ref), self._clock(), time.time()
        try:
            return _Told(self._fetch(ref), None, now + self._interval, wall)
        except SecretUnavailable as error:
            problems = error.problems
        except Exception as error:  # noqa: BLE001 - a mistake of ours or of a vendor's: what there is still counts
            problems = (Problem(str(ref), f"can't be read: {type(error).__name__}"),)
        failures = before.failures + 1 if before else 1
        pause = min(FIRST_PAUSE * 2.0 ** min(failures - 1, 10), LONGEST_PAUSE)
        return _Told(None, SecretUnavailable(*problems), now + pause, wall, failures)


def _texts(value: str | None) -> Iterator[str]:
    """Yield what is secret in a store's answer: each text of a JSON object, else the whole."""
    try:
        document = json.loads(value or "")
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict):
        yield from (each for each in document.values() if isinstance(each, str))
    elif value:
        yield value
