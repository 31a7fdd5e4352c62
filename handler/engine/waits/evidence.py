"""The evidence of a wait under way: every few seconds the pods and Warnings of unhealthy objects are read, on a thread of its own.

Law: a cause is reported once while it lasts: another count of restarts isn't news, another reason is. Causes that an earlier run of this
wait reported keep their words; an unreadable cluster changes nothing. What of it is repeated says `handler.plan.closed`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field

from handler.cluster.evidence import Evidence, happened
from handler.engine.run.context import RunContext
from handler.engine.waits.log_tail import recorded
from handler.health.diagnosis import Finding, NamespaceSight, Subject, Warned, diagnose, names
from handler.model.field_masking import without_credentials
from handler.model.names import Identity
from handler.model.tree import printable
from handler.state.record_format import seconds_of

FIRST = 2.0  # seconds of a wait before its first look: what gets healthy sooner costs nothing
_EVERY, _LATER, _IDLE = 5.0, 10.0, 60.0
"""Seconds from one look to the next: of a young wait, of one that lasts for a minute, and where nothing may be read."""
_YOUNG = 60.0
_NAMESPACES = 4  # namespaces of one look; those that were looked at longest ago come first
_MOST_TEXTS = 20  # objects with evidence, at most
_LOGS = 3  # objects whose logs are recorded, where the target has that
_TEXT = 500  # characters of one object's evidence
_MEMORY = 4000
_AT_ONCE, _A_SECOND = 20.0, 2.0
_LOG = logging.getLogger("anneal.run")

Subjects = Callable[[], Sequence[Subject]]


@dataclass(slots=True)
class Pace:
    """How often one run looks, however many of its steps wait: so many times at once, then so many a second. Threads share it."""

    _left: float = _AT_ONCE
    _at: float = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._at = time.monotonic()

    def may(self) -> bool:
        """Whether a look may begin now."""
        with self._lock:
            now = time.monotonic()
            self._left, self._at = min(self._left + (now - self._at) * _A_SECOND, _AT_ONCE), now
            if self._left < 1:
                return False
            self._left -= 1
            return True


@dataclass(slots=True)
class _Look:
    subjects: Sequence[Subject]
    thread: threading.Thread | None = None
    found: dict[Identity, Finding] = field(default_factory=dict)


@dataclass(slots=True)
class EvidenceLooks:
    """The looks of one wait. Only the waiting thread calls it.

    `pace`: of all looks of the run; `what`: what is waited for; `since`: its begin, in seconds since the epoch by the run's clock.
    `known`: the evidence that an earlier run of the same wait reported, by object. `texts`: the present evidence of each object.
    """

    run: RunContext
    pace: Pace
    what: str
    since: float
    known: Mapping[str, str] = field(default_factory=dict)
    texts: dict[Identity, str] = field(default_factory=dict)
    _memory: dict[Identity, str] = field(default_factory=dict)
    _looked: dict[str, float] = field(default_factory=dict)
    _began: float = field(init=False)
    _due: float = field(init=False)
    _look: _Look | None = None

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._due = self._began + FIRST

    def look(self, subjects: Subjects) -> bool:
        """Take in a finished look, begin the next one when due; True: news. `subjects`: the unhealthy, the worst first."""
        look, news = self._look, False
        if look is not None and look.thread is not None and not look.thread.is_alive():
            self._look, news = None, self._update(look)
        if self._look is None and time.monotonic() >= self._due and self.pace.may():
            self._begin(_Look(subjects()))
        return news

    def once(self, subjects: Sequence[Subject]) -> None:
        """Look now, and wait for what is found: of a run that may not wait itself."""
        if self.pace.may():
            look = _Look(subjects)
            self._read(look)
            self._update(look)

    def explain(self, subjects: Sequence[Subject]) -> dict[Identity, str]:
        """Look now, at the end of a wait; return each object's text, with the end of a log where the target has it recorded."""
        look, logs, now = _Look(subjects), self.run.deps.target.evidence.logs == "record", self.run.deps.planner.api.server_time()
        evidence = self._read(look)
        found = {identity: self._shown(each.at_last(now)) for identity, each in look.found.items()}
        texts = {each.identity: found.get(each.identity) or self.texts.get(each.identity, "") for each in subjects}
        for identity, each in [*look.found.items()][: _LOGS if logs else 0]:
            log = recorded(evidence, each.pod, identity.namespace) if each.pod else ""
            texts[identity] = "; ".join(filter(None, (texts[identity], log)))
        return texts

    # --- looking
    def _begin(self, look: _Look) -> None:
        self._due = time.monotonic() + _IDLE  # until it says better itself
        look.thread = threading.Thread(target=copy_context().run, args=(self._read, look), name="evidence", daemon=True)
        with contextlib.suppress(RuntimeError):  # there is no thread for it
            look.thread.start()
            self._look = look

    def _read(self, look: _Look) -> Evidence:
        spaces: dict[str, list[Subject]] = defaultdict(list)
        for subject in look.subjects:
            spaces[subject.identity.namespace].append(subject)
        pause = _EVERY if time.monotonic() - self._began < _YOUNG else _LATER
        evidence = Evidence(self.run.deps.planner.api)
        if spaces:
            chosen = sorted(spaces, key=lambda name: self._looked.get(name, 0.0))[:_NAMESPACES]
            self._looked |= dict.fromkeys(chosen, time.monotonic())
            look.found |= explain(evidence, [each for name in chosen for each in spaces[name]], *self._span())
            pause = pause if evidence.answered else _IDLE
        self._due = time.monotonic() + pause
        return evidence

    def _span(self) -> tuple[float, float]:
        """Return since when what is seen may be a cause, and what time it is now, by the API server's clock."""
        run, attempt = self.run, self.run.state.attempt
        age = run.clock() - min(self.since, seconds_of(attempt.since) if attempt else self.since)
        now = run.deps.planner.api.server_time()
        return now - age, now

    # --- texts
    def _update(self, look: _Look) -> bool:
        before, there = dict(self.texts), {subject.identity for subject in look.subjects}
        for identity in [each for each in self.texts if each not in there or not look.found.get(each, _SAME).causes]:
            del self.texts[identity], self._memory[identity]
        for subject in look.subjects:
            found = look.found.get(subject.identity)
            if found and found.causes and (subject.identity in self.texts or len(self.texts) < _MOST_TEXTS):
                self._update_one(subject, found)
        return self.texts != before

    def _update_one(self, subject: Subject, found: Finding) -> None:
        """Update one object's text where its causes are new or none of the old ones is left; else keep its words."""
        one, known = subject.identity, self.known.get(str(subject.identity), "")
        memory = self._memory.get(one, known)
        shown = self.texts.get(one, known.removeprefix(subject.said).removeprefix("; ") if known.startswith(subject.said) else "")
        text = self._shown(found.text)
        news = [cause for cause in found.causes if not names(memory, cause)]
        if news or not any(names(f"{subject.said}; {shown}", cause) for cause in found.causes):
            shown = text
        self.texts[one] = shown
        self._memory[one] = "; ".join((memory, text, *news))[-_MEMORY:] if news else memory
        if news:
            self._log(subject, shown)

    def _shown(self, text: str) -> str:
        return printable(without_credentials(text), _TEXT)

    def _log(self, subject: Subject, evidence: str) -> None:
        run = self.run
        facts = {"target": run.job.target, "commit": run.revision.commit, "run": run.run, "for": self.what}
        said = "; ".join(filter(None, (subject.said, evidence)))
        _LOG.info("waits", extra={"fields": {**facts, "subject": str(subject.identity), "evidence": said}})


_SAME = Finding(("",))  # the finding of an object that a look had no time for: its text stays


_SINGLE = 3  # objects of one namespace whose pods are asked for by their labels; of more, the namespace's are read


def explain(evidence: Evidence, subjects: Iterable[Subject], since: float, now: float) -> dict[Identity, Finding]:
    """Return what explains each object (none: not while something is unread). `since`, `now`: by the API server's clock."""
    spaces: dict[str, list[Subject]] = defaultdict(list)
    for subject in subjects:
        spaces[subject.identity.namespace].append(subject)
    found: dict[Identity, Finding] = {}
    for namespace, mine in spaces.items():
        sight = _seen(evidence, namespace, mine, since, now)
        each_one = {subject.identity: diagnose(subject, sight) for subject in mine}
        found |= {identity: each for identity, each in each_one.items() if each.causes or not evidence.broken}
    return found


def _seen(evidence: Evidence, namespace: str, subjects: Iterable[Subject], since: float, now: float) -> NamespaceSight:
    selectors = dict.fromkeys(subject.selector for subject in subjects if subject.has_pods)
    asked = [*selectors] if len(selectors) <= _SINGLE and all(selectors) else [""]
    pods = [each for selector in (asked if selectors else ()) for each in evidence.pods(namespace, selector)]
    return NamespaceSight.of(pods, [Warned.of(each, happened(each)) for each in evidence.warnings(namespace)], since, now)
