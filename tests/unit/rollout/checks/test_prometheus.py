"""`prometheus`: comparisons, times, empty results, several series, NaN, and answers that don't come; as success and as failure."""

from __future__ import annotations

import math
from typing import Any

import pytest

from handler.model.errors import Problem, RolloutFailed
from handler.model.metrics import Sample
from handler.prometheus.errors import MetricsUnavailable
from handler.rollout.checks import CHECKS
from handler.rollout.checks.prometheus import bound
from handler.rollout.tables import Judged, SpecError, Verdict
from tests.unit.rollout.checks.scenes import SINCE, Metrics, begun, mistakes, moment

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


def test_for_some_time_means_at_each_moment_of_it_and_not_before_it_is_over() -> None:
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
    assert metrics.asked == [(url, "errors", 0.0, 0.0), (url, "errors", 45.0, 30.0), (url, "errors", 120.0, 30.0)]


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


def test_what_cannot_be_asked_is_asked_again_and_nothing_is_known_meanwhile() -> None:
    lost = MetricsUnavailable.of("prometheus", "can't be reached: CANARY")
    for failing in (False, True):
        metrics = Metrics(lost, [moment(0.001)])
        probe = begun("prometheus", ASKED, query=metrics, failing=failing, mask=lambda text: text.replace("CANARY", "***"))
        found = probe.look(None, SINCE)
        assert (found.verdict, found.known, found.again) == (PENDING, False, 15.0)
        assert found.message == "prometheus: can't be reached: ***"
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


def test_what_a_message_cuts_is_masked_before() -> None:
    """Of half a secret no mask knows."""
    long, secret = "x" * 100, "hunter2-of-the-database-and-of-all-else"
    raw = ASKED | {"query": f'{long}{{by="{secret}"}}'}
    said = judged([Sample({"by": long + secret}, 0.5)], raw=raw, mask=lambda text: text.replace(secret, "***")).message
    assert "hunter2" not in said
    assert said.count("***") == 2


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
        ({"progressTimeout": "1m"}, "progressTimeout", "unknown key"),
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
