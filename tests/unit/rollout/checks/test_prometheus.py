"""`prometheus`: comparisons, times, empty results, several series, NaN, and answers that don't come; as success and as failure."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from handler.model.errors import Problem, RolloutFailed
from handler.model.rollout import Sample
from handler.prometheus.client import MetricsUnavailable
from handler.rollout.checks import CHECKS
from handler.rollout.checks.prometheus import Threshold, bound, worst
from handler.rollout.interfaces import Judged, SpecError, Verdict
from tests.unit.rollout.checks.scenes import SINCE, Metrics, begun, mistakes, moment

pytestmark = pytest.mark.slow

ASKED = {"query": "errors", "is": "< 0.01"}
PASSED, PENDING, FAILED = Verdict.PASSED, Verdict.PENDING, Verdict.FAILED


def judged(*moments: Any, raw: dict[str, Any] = ASKED, later: float = 0.0, **scene: Any) -> Judged:
    return begun("prometheus", raw, query=Metrics(moments), **scene).look(None, SINCE + later)


@pytest.mark.parametrize(
    ("comparison", "value", "holds"),
    [
        ("< 0.01", 0.009, True),
        ("< 0.01", 0.01, False),
        ("<= 0.01", 0.01, True),
        (">0.5", 0.6, True),
        (">= 1e3", 999, False),
        ("== 1", 1.0, True),
        ("!= 1", 1.0, False),
        ("!= 1", 2.0, True),
        ("== -1.5", -1.5, True),
        ("> 5", math.inf, True),
        ("< 5", -math.inf, True),
        ("< 5", math.inf, False),
        ("< 5", math.nan, False),
        ("!= 5", math.nan, False),
    ],
)
def test_a_value_is_compared(comparison: str, value: float, holds: bool) -> None:
    raw = {"query": "errors", "is": comparison}
    assert judged(moment(value), raw=raw).verdict is (PASSED if holds else PENDING)
    assert judged(moment(value), raw=raw, failing=True).verdict is (PASSED if holds else PENDING)


@pytest.mark.parametrize(
    ("values", "success", "failure"),
    [
        ((0.001, 0.002), PASSED, PASSED),
        ((0.001, 0.5), PENDING, PASSED),
        ((0.5, 0.6), PENDING, PENDING),
    ],
)
def test_of_several_series_all_must_be_good_and_one_is_enough_to_be_bad(
    values: tuple[float, ...], success: Verdict, failure: Verdict
) -> None:
    assert judged(moment(*values)).verdict is success
    assert judged(moment(*values), failing=True).verdict is failure


@pytest.mark.parametrize("samples", [(), (math.nan,)])
@pytest.mark.parametrize(
    ("empty", "failing", "verdict", "known"),
    [
        ("", False, PENDING, False),
        ("wait", False, PENDING, False),
        ("pass", False, PASSED, True),
        ("fail", False, FAILED, True),
        ("", True, PENDING, True),
        ("wait", True, PENDING, False),
        ("pass", True, PENDING, True),
        ("fail", True, PASSED, True),
    ],
)
def test_without_data_success_waits_and_failure_has_seen_nothing_bad(
    samples: tuple[float, ...], empty: str, failing: bool, verdict: Verdict, known: bool
) -> None:
    found = judged(moment(*samples), raw=ASKED | {"empty": empty}, failing=failing)
    assert found.verdict is verdict
    if verdict is PENDING:
        assert found.known is known


def test_a_series_without_a_value_beside_a_bad_one_is_bad() -> None:
    assert judged(moment(math.nan, 0.5), raw=ASKED | {"empty": "fail"}).verdict is PENDING, "there is data; it may become good"
    assert judged(moment(math.nan, 0.001), raw=ASKED | {"empty": "pass"}).verdict is PASSED
    assert judged(moment(math.nan, 0.001)).verdict is PENDING


def test_a_metric_held_for_a_time_must_hold_at_each_sample_of_it() -> None:
    raw = ASKED | {"for": "2m", "interval": "30s"}
    good, bad = moment(0.0), moment(0.5)
    assert judged(*[good] * 5, raw=raw, later=119).verdict is PENDING
    assert judged(*[good] * 5, raw=raw, later=120).verdict is PASSED
    assert judged(good, good, bad, good, good, raw=raw, later=600).verdict is PENDING
    assert judged(good, good, [], good, good, raw=raw, later=600).verdict is PENDING, "a break is a break"
    assert judged(good, bad, bad, raw=raw, later=600, failing=True).verdict is PENDING
    said = judged(bad, bad, bad, raw=raw | {"is": "> 0.1"}, later=600, failing=True)
    assert (said.verdict, said.message) == (PASSED, 'errors is 0.5 {pod="web-0"}: > 0.1 for 2m')


def test_prometheus_itself_is_asked_about_the_time_so_that_no_restart_breaks_it() -> None:
    raw = ASKED | {"for": "2m", "interval": "30s", "url": "https://prometheus.example.com"}
    metrics = Metrics([moment(0.0)])
    for later in (0.0, 45.0, 600.0):
        begun("prometheus", raw, query=metrics).look(None, SINCE + later)
    url = "https://prometheus.example.com"
    assert metrics.asked == [(url, "errors", 0.0, 0.0), (url, "errors", 30.0, 30.0), (url, "errors", 120.0, 30.0)]


def test_it_is_asked_once_an_interval_and_says_when_to_look_again() -> None:
    metrics = Metrics([moment(0.5)])
    probe = begun("prometheus", ASKED | {"interval": "10s"}, query=metrics)
    again = [probe.look(None, SINCE + later).again for later in (0, 3, 9, 10)]
    assert again == [10, 7, 1, 10]
    assert len(metrics.asked) == 2


def test_an_answer_under_way_is_looked_for_soon_and_what_was_said_before_counts() -> None:
    metrics = Metrics(None, [moment(0.001)], None, [moment(0.5)])
    probe = begun("prometheus", ASKED | {"interval": "10s"}, query=metrics)
    first = probe.look(None, SINCE)
    assert (first.verdict, first.known) == (PENDING, False)
    assert 0 < first.again < 1
    assert [probe.look(None, SINCE + later).verdict for later in (0.2, 10.4, 10.6)] == [PASSED, PASSED, PENDING]
    assert [asked[2:] for asked in metrics.asked] == [(0.0, 0.0)] * 4, "the same question until its answer is here"


def test_an_unavailable_prometheus_is_asked_again_and_the_check_is_pending() -> None:
    lost = MetricsUnavailable.of("prometheus", "can't be reached")
    for failing in (False, True):
        metrics = Metrics(lost, [moment(0.001)])
        probe = begun("prometheus", ASKED, query=metrics, failing=failing)
        found = probe.look(None, SINCE)
        assert (found.verdict, found.known, found.again) == (PENDING, False, 15.0)
        assert found.message == "prometheus: can't be reached"
        assert probe.look(None, SINCE + 15).known


def test_a_query_that_can_never_be_evaluated_ends_the_step_under_success_and_failure() -> None:
    for failing in (False, True):
        with pytest.raises(RolloutFailed, match="parse error"):
            begun("prometheus", ASKED, query=Metrics(RolloutFailed.of("prometheus", "parse error")), failing=failing).look(None, SINCE)


def test_a_message_names_the_worst_series_and_is_never_long() -> None:
    said = judged(moment(*[0.001] * 50, 0.5, 0.7), raw=ASKED | {"query": "x" * 5000}).message
    assert '0.5 {pod="web-50"}, 0.7 {pod="web-51"}' in said
    assert "and 49 more" in said
    assert len(said) < 400


GOOD, BAD, WORSE, NONE = moment(0.0), moment(0.5), moment(0.6), moment()
LIMITED = ASKED | {"failureLimit": 3}


@pytest.mark.parametrize(
    ("moments", "verdict"),
    [
        ([BAD], PENDING),
        ([BAD, BAD], PENDING),
        ([BAD, BAD, BAD], FAILED),
        ([BAD, GOOD, BAD, BAD], PENDING),
        ([GOOD, BAD, BAD, BAD], FAILED),
        ([BAD, BAD, BAD, GOOD], PASSED),
        ([BAD, NONE, BAD, moment(math.nan), BAD], FAILED),
        ([BAD, BAD, BAD, NONE], FAILED),
        ([BAD, NONE, NONE, NONE, BAD], PENDING),
        ([NONE] * 6, PENDING),
        ([moment(math.nan)] * 6, PENDING),
    ],
)
def test_samples_that_fail_in_a_row_fail_the_check_and_those_without_a_number_count_for_nothing(
    moments: list[Any], verdict: Verdict
) -> None:
    assert judged(*moments, raw=LIMITED, later=600).verdict is verdict
    assert judged(*moments, later=600).verdict is (PASSED if verdict is PASSED else PENDING), "without a limit its time alone ends it"


def test_an_unavailable_prometheus_never_counts_for_the_failure_limit() -> None:
    lost = MetricsUnavailable.of("prometheus", "can't be reached")
    probe = begun("prometheus", LIMITED, query=Metrics(lost))
    assert {probe.look(None, SINCE + 15.0 * number).verdict for number in range(20)} == {PENDING}


def test_the_samples_are_asked_of_prometheus_from_the_begin_on_so_that_none_is_counted_twice() -> None:
    """However often a process looks: a look between two samples, another process, one that comes late ask about the same moments."""
    metrics = Metrics([BAD])
    for later in (0.0, 14.9, 15.0, 20.0, 30.0, 75.0, 3600.0):
        begun("prometheus", LIMITED, query=metrics).look(None, SINCE + later)
    assert [(seconds, step) for _, _, seconds, step in metrics.asked] == [(0, 0), (0, 0), (15, 15), (15, 15), (30, 15), (75, 15), (75, 15)]


def test_success_and_failure_limit_are_asked_in_one_query() -> None:
    metrics = Metrics([BAD])
    raw = LIMITED | {"for": "40s", "progressTimeout": "5m"}
    begun("prometheus", raw, query=metrics).look(None, SINCE + 3600)
    [(_, _, seconds, step)] = metrics.asked
    assert (round(seconds, 3), round(step, 3)) == (306.667, 13.333), "40 s are three steps, none longer than the interval"
    assert judged(*[WORSE] * 3, *[BAD] * 3, *[GOOD] * 4, raw=LIMITED | {"for": "40s"}, later=3600).verdict is PASSED


@pytest.mark.parametrize(
    ("comparison", "values", "verdict"),
    [
        ("< 0.01", [0.5, 0.5, 0.5], FAILED),
        ("< 0.01", [0.5, 0.7, 0.6], FAILED),
        ("< 0.01", [0.5, 0.4, 0.6], PENDING),
        ("< 0.01", [0.5, 0.0, 0.5], PENDING),
        ("< 0.01", [0.5, 0.5], PENDING),
        ("> 5", [3, 3, 2], FAILED),
        ("> 5", [3, 4, 2], PENDING),
        ("== 5", [3, 7, 8], FAILED),
        ("== 5", [3, 6, 8], PENDING),
        ("!= 5", [5, 5, 5], FAILED),
        ("< 0.01", [math.inf, math.inf, math.inf], FAILED),
        ("< 0.01", [0.5, math.nan, 0.5], FAILED),
        ("< 0.01", [math.nan, 0.5, 0.5], PENDING),
        ("< 0.01", [0.5, 0.5, math.nan], PENDING),
    ],
)
def test_a_metric_that_gets_no_better_for_its_progress_timeout_fails_the_check(
    comparison: str, values: list[float], verdict: Verdict
) -> None:
    raw = {"query": "errors", "is": comparison, "progressTimeout": "30s"}
    assert judged(*map(moment, values), raw=raw, later=600).verdict is verdict


def test_of_several_series_the_worst_must_get_better() -> None:
    raw = ASKED | {"progressTimeout": "15s"}
    assert judged(moment(0.5, 0.4), moment(0.5, 0.1), raw=raw, later=600).verdict is FAILED
    assert judged(moment(0.5, 0.1), moment(0.4, 0.3), raw=raw, later=600).verdict is PENDING


def test_a_failure_tells_the_samples_their_times_the_limit_and_the_way_out() -> None:
    query = 'errors{by="web"}'
    found = judged(GOOD, *map(moment, (0.1, 0.2, 0.3)), raw=LIMITED | {"query": query}, later=600)
    assert found.message == (
        'errors{by="web"} is 0.3 {pod="web-0"}, must be < 0.01; '
        "failed 3 samples in a row, and its failureLimit is 3: 0.1 at 22:22:50Z, 0.2 at 22:23:05Z, 0.3 at 22:23:20Z"
    )
    assert found.fix == "mend what it measures, and push; or give it longer, by `failureLimit: 6` in this check"
    found = judged(*[BAD] * 7, raw=ASKED | {"progressTimeout": "90s", "for": "10m"}, later=600)
    assert found.message == (
        'errors is 0.5 {pod="web-0"}, must be < 0.01 for 10m without a break; got no better in 1m30s, '
        "its progressTimeout: 2 before, 0.5 at 22:22:20Z, 0.5 at 22:22:35Z, 0.5 at 22:22:50Z, 0.5 at 22:23:05Z, 0.5 at 22:23:20Z"
    )
    assert found.fix == "mend what it measures, and push; or give it longer, by `progressTimeout: 3m` in this check"


def test_a_failure_of_many_series_with_long_labels_still_tells_its_samples() -> None:
    samples = [Sample({"path": "/" * 200, "pod": str(number)}, 0.123456789) for number in range(50)]
    found = judged(*[samples] * 9, raw=LIMITED | {"query": "x" * 5_000, "failureLimit": 9}, later=600)
    assert len(found.message) < 500
    assert re.search(r"; failed 9 samples in a row, and its failureLimit is 9: 4 before, (0\.123457 at \S+ ?){5}$", found.message)


def test_under_failure_neither_limit_is_asked_for() -> None:
    """A check of success may be named there; it then says what ends the step."""
    metrics = Metrics([moment(0.001)])
    raw = LIMITED | {"progressTimeout": "5m"}
    assert begun("prometheus", raw, query=metrics, failing=True).look(None, SINCE + 600).verdict is PASSED
    assert metrics.asked == [("", "errors", 0.0, 0.0)]


@pytest.mark.parametrize(
    ("change", "place", "said"),
    [
        ({"query": None}, "query", "is missing"),
        ({"query": "x" * 10_001}, "query", "at most 10,000"),
        ({"query": ["x"]}, "query", "not text"),
        ({"query": "a\x1b[0m"}, "query", "can't be shown"),
        ({"is": None}, "is", "is missing"),
        ({"is": "0.01"}, "is", "expected <, <=, >, >=, == or !="),
        ({"is": "=< 1"}, "is", "expected <"),
        ({"is": "< 1 or > 5"}, "is", "expected <"),
        ({"is": "< NaN"}, "is", "expected <"),
        ({"is": "< 1e999"}, "is", "expected <"),
        ({"is": "<" + " " * 90 + "x"}, "is", "expected <"),
        ({"is": "<" + "9" * 100}, "is", "at most 100"),
        ({"is": 0.01}, "is", "not text"),
        ({"for": "2 minutes"}, "for", "expected a duration"),
        ({"for": "-1s"}, "for", "expected a duration"),
        ({"for": "2h"}, "timeout", "1h isn't longer than `for`, 2h"),
        ({"for": "30m", "interval": "1s"}, "interval", "more than 1,000 evaluations"),
        ({"interval": "0.1s"}, "interval", "expected a duration"),
        ({"empty": "maybe"}, "empty", "is none of wait, pass, fail"),
        ({"timeout": "10y"}, "timeout", "expected a duration"),
        ({"progressTimeout": "10s"}, "progressTimeout", "10s is shorter than `interval`, 15s"),
        ({"progressTimeout": "50m", "interval": "1s"}, "interval", "more than 1,000 evaluations in 50m"),
        ({"failureLimit": 0}, "failureLimit", "expected 1 to 500"),
        ({"failureLimit": 501}, "failureLimit", "expected 1 to 500"),
        ({"failureLimit": "3"}, "failureLimit", "not a whole number"),
        ({"consecutiveErrorLimit": 4}, "consecutiveErrorLimit", "unknown key"),
        ({"url": 7}, "url", "not text"),
    ],
)
def test_a_mistake_is_named_with_its_place(change: dict[str, Any], place: str, said: str) -> None:
    assert said in mistakes("prometheus", ASKED | change)[f"check.{place}"]


def test_a_query_may_stand_on_several_lines() -> None:
    assert CHECKS["prometheus"].read(ASKED | {"query": "sum(\n  errors\n)\n"}, "check")["query"] == "sum(   errors )"


def test_an_unlisted_address_is_refused_as_the_rollout_is_read() -> None:
    table = bound(CHECKS, lambda url: Problem("prometheus", f"{url} isn't listed", fix="list it") if url else None)
    with pytest.raises(SpecError) as error:
        table["prometheus"].read(ASKED | {"url": "http://169.254.169.254"}, "check")
    assert [(each.field, each.message, each.fix) for each in error.value.mistakes] == [
        ("check.url", "http://169.254.169.254 isn't listed", "list it")
    ]
    assert table["prometheus"].read(ASKED, "check")["url"] == ""
    assert {name: row for name, row in table.items() if name != "prometheus"} == {
        name: row for name, row in CHECKS.items() if name != "prometheus"
    }


@pytest.mark.parametrize(
    ("comparison", "better", "worse"),
    [
        ("< 1", 2.0, 3.0),
        ("<= 1", 2.0, math.inf),
        ("> 1", 0.5, -2.0),
        (">= 1", 0.0, -math.inf),
        ("== 1", 0.5, 2.0),
    ],
)
def test_a_sample_further_from_its_threshold_is_worse(comparison: str, better: float, worse: float) -> None:
    wanted = Threshold.of(comparison)
    assert wanted.short_of(better) < wanted.short_of(worse)
    assert worst([Sample({}, better), Sample({}, math.nan), Sample({}, worse)], wanted) == worse


def test_a_not_equal_threshold_ranks_no_sample_worse() -> None:
    assert {Threshold.of("!= 1").short_of(value) for value in (1.0, 2.0, math.inf)} == {0.0}
