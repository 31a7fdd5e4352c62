"""`prometheus`: what a query finds is as it must be, now or for some time without a break.

    prometheus:
      url: https://prometheus.example.com     without it the first one that anneal.yaml lists; others are never asked
      query: sum(rate(http_requests_total{code=~"5.."}[1m])) / sum(rate(http_requests_total[1m]))
      is: < 0.01                              <, <=, >, >=, ==, != and a number
      for: 2m                                 asked of Prometheus over the time itself, so that no restart of ours breaks it; 0: just once
      interval: 15s                           between two evaluations
      empty: wait                             no series: wait | pass | fail

Of several series all must be as asked under `success`; under `failure` one is enough. NaN, the ratio of nothing to nothing, is no value: it
counts as a series that isn't there. Without data `success` waits, and `failure` has seen nothing bad; `pass` and `fail` say that it is good
or bad under either. An answer that doesn't come is asked for again until the time of the check is over; while a check of `failure` has no
answer, its step doesn't succeed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from handler.config.forms import duration
from handler.model.errors import AnnealError, AuthorError, Problem
from handler.model.metrics import Moments, Sample
from handler.rollout.checks.limits import TIMEOUT
from handler.rollout.fields import Fields
from handler.rollout.same import ordered, same
from handler.rollout.tables import CheckType, Judged, Object, Options, Probe, Scene, Verdict

LONGEST = 10_000
"""Characters of a query."""
EVALUATIONS = 1_000
"""At most so many over the time that something must hold; Prometheus itself refuses more than 11,000."""
_KEYS = ("url", "query", "is", "for", "interval", "empty", "timeout")
_EMPTY = ("wait", "pass", "fail")
_COMPARISON = re.compile(r"(<=|>=|==|!=|<|>) *(-?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?)")
_INTERVAL = 15.0
_SOON = 0.2
"""Seconds until an answer under way is looked for again."""
_SHOWN = 3
"""Series that a message names."""


def _unknown(_url: str) -> Problem | None:
    return None


def bound(checks: Mapping[str, CheckType], problem: Callable[[str], Problem | None]) -> Mapping[str, CheckType]:
    """Return a table whose row refuses, with a Rollout that is read, what may not be asked. `problem`: of a check's `url`."""
    return {name: replace(check, problem=problem) if isinstance(check, Prometheus) else check for name, check in checks.items()}


@dataclass(frozen=True, slots=True)
class Prometheus:
    """The row. `problem`: see `bound`; who only renders doesn't know."""

    problem: Callable[[str], Problem | None] = _unknown
    without_object: ClassVar[bool] = True

    def read(self, raw: Any, field: str) -> Options:
        """Read what is asked, and what the answer must be."""
        fields = Fields(raw, field, _KEYS)
        found: dict[str, Any] = {
            "url": fields.text("url", most=2_000),
            "query": _query(fields),
            "is": _comparison(fields),
            "for": fields.seconds("for", 0.0),
            "interval": fields.seconds("interval", _INTERVAL, least=1.0),
            "empty": fields.text("empty"),
            "timeout": fields.seconds("timeout", TIMEOUT, least=1.0),
        }
        if found["empty"] and found["empty"] not in _EMPTY:
            fields.note("empty", f"is none of {', '.join(_EMPTY)}", "leave it out to wait for data under `success`")
        _times(fields, found["for"], found["interval"], found["timeout"])
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


def _times(fields: Fields, lasting: float, interval: float, timeout: float) -> None:
    if lasting and timeout <= lasting:
        fields.note(
            "timeout", f"{duration(timeout)} isn't longer than `for`, {duration(lasting)}", "raise it: it counts from the step's begin"
        )
    if lasting / interval > EVALUATIONS:
        fields.note("interval", f"is {duration(interval)}, which makes more than {EVALUATIONS:,} evaluations in {duration(lasting)}")


@dataclass(frozen=True, slots=True)
class _Ask:
    """The options."""

    url: str
    query: str
    wanted: str
    lasting: float
    interval: float
    empty: str

    @classmethod
    def of(cls, options: Options) -> _Ask:
        """Make it from what was read."""
        return cls(options["url"], options["query"], options["is"], options["for"], options["interval"], options["empty"])

    def holds(self, value: float) -> bool:
        """Whether a value is as asked; NaN is never."""
        order, number = self.wanted.split(" ")
        if math.isnan(value):
            return False
        return same(value, float(number)) == (order == "==") if order in ("==", "!=") else ordered(value, order, float(number))


@dataclass(slots=True)
class _Probe:
    scene: Scene
    ask: _Ask
    due: float = float("-inf")
    asked: tuple[float, float] | None = None
    said: Judged | None = None

    def look(self, live: Object | None, now: float) -> Judged:  # noqa: ARG002 - the object tells nothing of what its users see
        """Ask when it's due, judge the answer when it's here; until then what was said last counts."""
        if self.asked is None and now >= self.due:
            lasting = min(self.ask.lasting, max(now - self.scene.since, 0.0))
            self.asked = (now, lasting)
        if self.asked is not None:
            answer = self._answer(*self.asked)
            if answer is None:
                return self._meanwhile(_SOON)
            self.due, self.asked, self.said = self.asked[0] + self.ask.interval, None, answer
        return self._meanwhile(max(self.due - now, _SOON))

    def _meanwhile(self, again: float) -> Judged:
        said = self.said or Judged(Verdict.PENDING, "Prometheus hasn't answered yet", known=False)
        return Judged(said.verdict, said.message, said.progress, again, said.known)

    def _answer(self, at: float, lasting: float) -> Judged | None:
        """Ask, and judge; None: the answer is under way. Raises AuthorError: the query will never be answered."""
        step = self.ask.interval if lasting else 0.0
        try:
            moments = self.scene.query(self.ask.url, self.ask.query, lasting, step)
        except AuthorError:
            raise
        except AnnealError as error:
            return Judged(Verdict.PENDING, self.scene.mask("; ".join(map(str, error.problems))), known=False)
        return None if moments is None else self._judge(moments, whole=at - self.scene.since >= self.ask.lasting)

    def _judge(self, moments: Moments, *, whole: bool) -> Judged:
        """Judge every moment; `whole`: they cover the time that it must hold."""
        empty = self.ask.empty or ("pass" if self.scene.failing else "wait")
        goods = [self._good(samples, empty) for samples in moments]
        now, said = goods[-1], self._said(moments[-1])
        if self.scene.failing:
            return self._failing(goods, said, whole=whole, known=now is not None)
        if now is False and empty == "fail" and not _valued(moments[-1]):
            return Judged(Verdict.FAILED, said)
        if all(good is True for good in goods) and whole:
            return Judged(Verdict.PASSED, said)
        held = f", must be {self.ask.wanted}" + (f" for {duration(self.ask.lasting)} without a break" if self.ask.lasting else "")
        return Judged(Verdict.PENDING, said + held, known=now is not None)

    def _failing(self, bads: Sequence[bool | None], said: str, *, whole: bool, known: bool) -> Judged:
        """Under `failure` the comparison names what is bad, and it must be so at every moment."""
        if whole and all(bad is False for bad in bads):
            lasting = f" for {duration(self.ask.lasting)}" if self.ask.lasting else ""
            return Judged(Verdict.PASSED, f"{said}: {self.ask.wanted}{lasting}")
        return Judged(Verdict.PENDING, said, known=known)

    def _good(self, samples: Sequence[Sample], empty: str) -> bool | None:
        """Say of one moment whether it's good; None: nobody knows."""
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
        return self.ask.holds(value) != self.scene.failing

    def _said(self, samples: Sequence[Sample]) -> str:
        """Tell the newest values, those that matter most first."""
        if not samples:
            return f"{_short(self.scene.mask(self.ask.query))} finds no series"
        order = sorted(samples, key=lambda each: self.ask.holds(each.value) != self.scene.failing)
        told = ", ".join(f"{each.value:g}{_labels(each, self.scene.mask)}" for each in order[:_SHOWN])
        more = f" and {len(samples) - _SHOWN} more" if len(samples) > _SHOWN else ""
        return self.scene.mask(f"{_short(self.scene.mask(self.ask.query))} is {told}{more}")


def _valued(samples: Sequence[Sample]) -> bool:
    return any(not math.isnan(sample.value) for sample in samples)


def _labels(sample: Sample, mask: Callable[[str], str]) -> str:
    """Write a sample's labels as PromQL does; masked, then cut."""
    text = ", ".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()) if name != "__name__")
    return f" {{{_short(mask(text))}}}" if text else ""


def _short(text: str) -> str:
    return text if len(text) <= 120 else text[:119] + "…"
