"""`prometheus`: what a query finds is as it must be, now or for some time without a break.

    prometheus:
      url: https://prometheus.example.com     without it the first one that anneal.yaml lists; others are never asked
      query: sum(rate(http_requests_total{code=~"5.."}[1m])) / sum(rate(http_requests_total[1m]))
      is: < 0.01                              <, <=, >, >=, ==, != and a number
      for: 2m                                 asked of Prometheus over the time itself, so that no restart of ours breaks it; 0: just once
      interval: 15s                           between two evaluations
      empty: wait                             no series: wait | pass | fail
      failureLimit: 3                         so many samples in a row that aren't as asked fail the check; a canary's default
      progressTimeout: 10m                    so long without a sample that is better than the one before that time fails the check

Of several series all must be as asked under `success`; under `failure` one is enough. NaN is no value; without data `success` waits and
`failure` has seen nothing bad. No answer: asked again until the check's time is over, and no step succeeds while a check of `failure` has
none. A sample is one evaluation each `interval` since the step began, asked of Prometheus at once, so that restarts and further processes
change none; one without a number counts for nothing. Both limits are of `success`: a check of `failure` ends its step once it holds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, ClassVar

from handler.config.value_formats import duration
from handler.model.errors import AnnealError, AuthorError, Problem
from handler.model.numbers import many
from handler.model.rollout import Moments, Sample
from handler.rollout.interfaces import CheckType, Judged, Object, Options, Probe, Scene, Verdict
from handler.rollout.jsonpath import ordered, same
from handler.rollout.spec_fields import TIMEOUT, Fields

LONGEST = 10_000  # characters of a query
EVALUATIONS = 1_000  # at most so many over the time that something must hold; Prometheus itself refuses more than 11,000
LIMIT_MOST = EVALUATIONS // 2  # failures in a row are looked for among twice as many samples
_OF_SUCCESS = ("failureLimit", "progressTimeout")
_KEYS = ("url", "query", "is", "for", "interval", "empty", "timeout", *_OF_SUCCESS)
_EMPTY = ("wait", "pass", "fail")
_COMPARISON = re.compile(r"(<=|>=|==|!=|<|>) *(-?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?)")
INTERVAL = 15.0
_SOON = 0.2  # seconds until an answer under way is looked for again
_ROUNDED = 1e-6  # of a step: sums of times are rounded
_SHOWN = 3  # series that a message names
_TOLD = 5  # samples that a failure shows, the newest


def _unknown(_url: str) -> Problem | None:
    return None


def bound(checks: Mapping[str, CheckType], problem: Callable[[str], Problem | None]) -> Mapping[str, CheckType]:
    """Return the table with a `prometheus` row that refuses a check's `url` by `problem`, with the Rollout that is read."""
    return {name: replace(check, problem=problem) if isinstance(check, PrometheusCheck) else check for name, check in checks.items()}


@dataclass(frozen=True, slots=True)
class PrometheusCheck:
    """The row. `problem`: see `bound`; a render alone doesn't know it."""

    problem: Callable[[str], Problem | None] = _unknown
    without_object: ClassVar[bool] = True
    of_success: ClassVar[Sequence[str]] = _OF_SUCCESS

    def read(self, raw: Any, field: str) -> Options:
        """Read what is asked, and what the answer must be."""
        fields = Fields(raw, field, _KEYS)
        found: dict[str, Any] = {
            "url": fields.text("url", most=2_000),
            "query": _query(fields),
            "is": _comparison(fields),
            "for": fields.seconds("for", 0.0),
            "interval": fields.seconds("interval", INTERVAL, least=1.0),
            "empty": fields.text("empty"),
            "timeout": fields.seconds("timeout", TIMEOUT, least=1.0),
            "failureLimit": fields.whole("failureLimit", 0, 1, LIMIT_MOST),
            "progressTimeout": fields.seconds("progressTimeout", 0.0, least=1.0),
        }
        if found["empty"] and found["empty"] not in _EMPTY:
            fields.note("empty", f"is none of {', '.join(_EMPTY)}", "leave it out to wait for data under `success`")
        _times(fields, found)
        problem = self.problem(found["url"])
        if problem:
            fields.note("url", problem.message, problem.fix)
        fields.done()
        return found

    def begin(self, options: Options, scene: Scene) -> Probe:
        """Begin for one step."""
        return _Probe(scene, _Ask.of(options))


def _query(fields: Fields) -> str:
    text = fields.raw.get("query")
    if isinstance(text, str):  # written over several lines, as queries are
        fields.raw = {**fields.raw, "query": " ".join(text.split("\n")).replace("\t", " ").strip()}
    return fields.text("query", required=True, most=LONGEST)


def _comparison(fields: Fields) -> str:
    text = fields.text("is", required=True, most=100)
    found = _COMPARISON.fullmatch(text.strip())
    if text and (found is None or not math.isfinite(float(found[2]))):
        fields.note("is", "expected <, <=, >, >=, == or != and a number", 'write e.g. is: "< 0.01"')
    return f"{found[1]} {found[2]}" if found else ""


def _times(fields: Fields, found: Options) -> None:
    lasting, interval, timeout, still = found["for"], found["interval"], found["timeout"], found["progressTimeout"]
    if lasting and timeout <= lasting:
        fields.note(
            "timeout", f"{duration(timeout)} isn't longer than `for`, {duration(lasting)}", "raise it: it counts from the step's begin"
        )
    longest = max(lasting, still)
    if longest / interval > EVALUATIONS:
        fields.note("interval", f"is {duration(interval)}, which makes more than {EVALUATIONS:,} evaluations in {duration(longest)}")
    if 0 < still < interval:
        fields.note("progressTimeout", f"{duration(still)} is shorter than `interval`, {duration(interval)}", "two samples are compared")


@dataclass(frozen=True, slots=True)
class _Ask:
    """The options. `limit`: failures in a row, 0: any number of them; `patience`: `progressTimeout`, 0: there is none."""

    url: str
    query: str
    wanted: Threshold
    lasting: float
    interval: float
    empty: str
    limit: int
    patience: float

    @classmethod
    def of(cls, options: Options) -> _Ask:
        url, query, empty = options["url"], options["query"], options["empty"]
        wanted, limit, patience = Threshold.of(options["is"]), options["failureLimit"], options["progressTimeout"]
        return cls(url, query, wanted, options["for"], options["interval"], empty, limit, patience)

    @property
    def held(self) -> int:
        return math.ceil(self.lasting / self.interval)

    @property
    def step(self) -> float:
        """Seconds between two samples: `interval`, or less, so that they fit into `for`."""
        return self.lasting / self.held if self.held else self.interval

    @property
    def still(self) -> int:
        return math.ceil(self.patience / self.step)

    def steps(self, seconds: float, *, failing: bool) -> int:
        most = self.held if failing else max(self.held, 2 * self.limit - 1, self.still)
        return max(min(most, math.floor(seconds / self.step + _ROUNDED)), 0)


@dataclass(frozen=True, slots=True)
class _Question:
    at: float
    steps: int


@dataclass(slots=True)
class _Probe:
    scene: Scene
    ask: _Ask
    due: float = float("-inf")
    asked: _Question | None = None
    said: Judged | None = None

    def look(self, live: Object | None, now: float) -> Judged:  # noqa: ARG002 - the object doesn't show what its users see
        if self.asked is None and now >= self.due:
            self.asked = _Question(now, self.ask.steps(now - self.scene.since, failing=self.scene.failing))
        if self.asked is not None:
            answer = self._answer(self.asked)
            if answer is None:
                return self._meanwhile(_SOON)
            self.due, self.asked, self.said = self.asked.at + self.ask.interval, None, answer
        return self._meanwhile(max(self.due - now, _SOON))

    def _meanwhile(self, again: float) -> Judged:
        said = self.said or Judged(Verdict.PENDING, "Prometheus hasn't answered yet", known=False)
        return replace(said, again=again)

    def _answer(self, asked: _Question) -> Judged | None:
        step = self.ask.step if asked.steps else 0.0
        try:
            moments = self.scene.query(self.ask.url, self.ask.query, asked.steps * step, step)
        except AuthorError:
            raise
        except AnnealError as error:
            return Judged(Verdict.PENDING, "; ".join(map(str, error.problems)), known=False)
        return None if moments is None else self._judge(moments, asked)

    def _judge(self, moments: Moments, asked: _Question) -> Judged:
        empty = self.ask.empty or ("pass" if self.scene.failing else "wait")
        goods = [self._good(samples, empty) for samples in moments]
        now, held, whole = goods[-1], goods[-self.ask.held - 1 :], asked.steps >= self.ask.held
        if self.scene.failing:
            return self._failing(held, self._said(moments[-1]), whole=whole, known=now is not None)
        if now is False and empty == "fail" and not _valued(moments[-1]):
            return Judged(Verdict.FAILED, self._said(moments[-1]))
        if all(good is True for good in held) and whole:
            return Judged(Verdict.PASSED, self._said(moments[-1]))
        times = [asked.at - back * self.ask.step for back in range(len(moments))][::-1]
        values = [worst(samples, self.ask.wanted) for samples in moments]
        seen = [SampleSeen(*each) for each in zip(times, goods, values, strict=True)]
        pending = Judged(Verdict.PENDING, self._said(moments[-1]) + self._must(), known=now is not None)
        return self._given_up(seen, moments[-1]) or pending

    def _must(self) -> str:
        lasting = f" for {duration(self.ask.lasting)} without a break" if self.ask.lasting else ""
        return f", must be {self.ask.wanted.text}{lasting}"

    def _failing(self, bads: Sequence[bool | None], said: str, *, whole: bool, known: bool) -> Judged:
        if whole and all(bad is False for bad in bads):
            lasting = f" for {duration(self.ask.lasting)}" if self.ask.lasting else ""
            return Judged(Verdict.PASSED, f"{said}: {self.ask.wanted.text}{lasting}")
        return Judged(Verdict.PENDING, said, known=known)

    def _given_up(self, seen: Sequence[SampleSeen], newest: Sequence[Sample]) -> Judged | None:
        ask, failed = self.ask, failed_in_a_row(seen)
        if ask.limit and len(failed) >= ask.limit:
            why = f"failed {many(len(failed), 'sample')} in a row, and its failureLimit is {ask.limit}: {_told(failed)}"
            return self._over(newest, why, f"`failureLimit: {min(2 * ask.limit, LIMIT_MOST)}`")
        last = seen[-ask.still - 1 :]
        if ask.still and len(last) > ask.still and is_stuck(last, ask.wanted):
            why = f"got no better in {duration(ask.patience)}, its progressTimeout: {_told(last)}"
            return self._over(newest, why, f"`progressTimeout: {duration(2 * ask.patience)}`")
        return None

    def _over(self, newest: Sequence[Sample], why: str, more: str) -> Judged:
        fix = f"mend what it measures, and push; or give it longer, by {more} in this check"
        return Judged(Verdict.FAILED, f"{self._said(newest, 1)}{self._must()}; {why}", fix=fix)

    def _good(self, samples: Sequence[Sample], empty: str) -> bool | None:
        without = {"wait": None, "pass": True, "fail": False}[empty]
        if not samples:
            return without
        found = [self._good_value(sample.value, without) for sample in samples]
        if False in found:
            return False
        return None if None in found else True

    def _good_value(self, value: float, without: bool | None) -> bool | None:
        if math.isnan(value):
            return without
        return self.ask.wanted.holds(value) != self.scene.failing

    def _said(self, samples: Sequence[Sample], shown: int = _SHOWN) -> str:
        query = _short(self.ask.query)
        if not samples:
            return f"{query} finds no series"
        order = sorted(samples, key=lambda each: self.ask.wanted.holds(each.value) != self.scene.failing)
        values = ", ".join(f"{each.value:g}{_labels(each)}" for each in order[:shown])
        more = f" and {len(samples) - shown} more" if len(samples) > shown else ""
        return f"{query} is {values}{more}"


def _told(seen: Sequence[SampleSeen]) -> str:
    left = [each for each in seen if each.value is not None or each.good is False]
    more = f"{len(left) - _TOLD} before, " if len(left) > _TOLD else ""
    return more + ", ".join(f"{_number(each.value)} at {_clock(each.at)}" for each in left[-_TOLD:])


def _number(value: float | None) -> str:
    return "nothing" if value is None else f"{value:g}"


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%SZ")


def _valued(samples: Sequence[Sample]) -> bool:
    return any(not math.isnan(sample.value) for sample in samples)


def _labels(sample: Sample) -> str:
    text = ", ".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()) if name != "__name__")
    return f" {{{_short(text)}}}" if text else ""


def _short(text: str) -> str:
    return text if len(text) <= 120 else text[:119] + "…"


_LESS, _MORE = ("<", "<="), (">", ">=")


@dataclass(frozen=True, slots=True)
class Threshold:
    """A comparison: `<`, `<=`, `>`, `>=`, `==`, `!=` and a number. `text`: both, as its author wrote them."""

    text: str
    order: str
    number: float

    @classmethod
    def of(cls, text: str) -> Threshold:
        """Read it as a check's options have it: `< 0.01`."""
        order, number = text.split(" ")
        return cls(text, order, float(number))

    def holds(self, value: float) -> bool:
        """Whether a value is as asked; NaN is never."""
        if math.isnan(value):
            return False
        if self.order in ("==", "!="):
            return same(value, self.number) == (self.order == "==")
        return ordered(value, self.order, self.number)

    def short_of(self, value: float) -> float:
        """Return how far a value is from what is asked: the larger, the worse. Of what only mustn't be a number, none is worse."""
        if self.order == "!=" or same(value, self.number):
            return 0.0
        away = value - self.number
        return away if self.order in _LESS else -away if self.order in _MORE else abs(away)


@dataclass(frozen=True, slots=True)
class SampleSeen:
    """One sample. `at`: seconds since the epoch; `good`: None: no number; `value`: of the worst series, None: no number."""

    at: float
    good: bool | None
    value: float | None


def worst(samples: Sequence[Sample], wanted: Threshold) -> float | None:
    """Return the value that is furthest from what is asked; None: there is none."""
    values = [sample.value for sample in samples if not math.isnan(sample.value)]
    return max(values, key=wanted.short_of, default=None)


def failed_in_a_row(seen: Sequence[SampleSeen]) -> list[SampleSeen]:
    """Return the newest samples that failed one after the other, in their order; those without a number are passed over."""
    return [*_failed_backwards(seen)][::-1]


def _failed_backwards(seen: Sequence[SampleSeen]) -> Iterator[SampleSeen]:
    for each in reversed(seen):
        if each.good:
            return
        if each.good is False:
            yield each


def is_stuck(seen: Sequence[SampleSeen], wanted: Threshold) -> bool:
    """Whether none of these samples was as asked, or better than the first; one that begins or ends without a number says nothing."""
    if len(seen) < 2 or seen[0].value is None or seen[-1].value is None or any(each.good for each in seen):
        return False
    first = wanted.short_of(seen[0].value)
    return all(wanted.short_of(each.value) >= first for each in seen[1:] if each.value is not None)
