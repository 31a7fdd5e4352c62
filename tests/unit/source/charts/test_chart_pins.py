"""What a record knows of charts: which version a commit has, which bytes a version has, what is kept."""

from __future__ import annotations

import pytest

from handler.model.errors import ChartChanged
from handler.model.outside_inputs import ChartReference, FetchedChart, KnownChart
from handler.source.charts.chart_pins import KEPT, ChartPins

pytestmark = pytest.mark.slow

URL = "https://charts.example.com/stable"
A, B, C = (f"sha256:{letter * 64}" for letter in "abc")
EXACT, RANGE = ChartReference(URL, "web", "1.2.0"), ChartReference(f"{URL}/", "web", "^1")


def fetched(reference: ChartReference, version: str, digest: str = A) -> FetchedChart:
    return FetchedChart(reference, version, digest, b"")


def pins(*known: KnownChart, commit: str = "c2") -> ChartPins:
    return ChartPins(known, commit)


def known(asked: str, version: str, digest: str = A, commit: str = "c1") -> KnownChart:
    return KnownChart(URL, "web", asked, version, digest, commit)


def test_a_range_is_resolved_once_a_commit() -> None:
    record = known("^1", "1.2.0")
    assert pins(record, commit="c1").version(RANGE) == "1.2.0"
    assert pins(record, commit="c2").version(RANGE) == ""
    assert pins(record, commit="").version(RANGE) == ""
    assert pins(KnownChart(URL, "web", "^1", "1.2.0", A, ""), commit="").version(RANGE) == ""  # files of no commit
    assert pins(record, commit="c1").version(ChartReference(URL, "other", "^1")) == ""
    assert pins().version(EXACT) == "1.2.0"


def test_the_bytes_of_a_version_are_known_at_any_commit_and_by_any_way_to_it() -> None:
    record = pins(known("^1", "1.2.0"))
    record.judge(EXACT, "1.2.0", A)
    record.judge(RANGE, "1.3.0", B)
    for reference in (EXACT, RANGE):
        with pytest.raises(ChartChanged, match=f"serves {B}, not {A} as was recorded with commit c1"):
            record.judge(reference, "1.2.0", B)


def test_a_digest_that_a_person_wrote_counts_before_the_record() -> None:
    written = ChartReference(URL, "web", "1.2.0", digest=B, place="web/anneal.lock:3")
    record = pins(known("1.2.0", "1.2.0"))
    record.judge(written, "1.2.0", B)
    with pytest.raises(ChartChanged, match=f"serves {A}, not {B} as is written for web/anneal.lock:3"):
        record.judge(written, "1.2.0", A)
    assert record.recorded([fetched(written, "1.2.0", B)]) == (known("1.2.0", "1.2.0", B, "c2"),)


def test_what_is_recorded() -> None:
    first = pins(commit="c1").recorded([fetched(RANGE, "1.2.0")])
    assert first == (known("^1", "1.2.0", commit="c1"),)
    second = ChartPins(first, "c2").recorded([fetched(RANGE, "1.3.0", B)])
    assert second == (*first, known("^1", "1.3.0", B, "c2"))
    assert ChartPins(second, "c1").version(RANGE) == "1.2.0"  # a rollback renders what that commit was rendered with
    assert ChartPins(second, "c2").recorded([fetched(RANGE, "1.3.0", B)]) == second


def test_an_exact_version_takes_one_entry_whatever_the_commit() -> None:
    record: tuple[KnownChart, ...] = ()
    for number in range(5):
        record = ChartPins(record, f"c{number}").recorded([fetched(EXACT, "1.2.0")])
    assert record == (known("1.2.0", "1.2.0", commit="c4"),)


def test_a_record_is_bounded_and_a_repeated_version_goes_first() -> None:
    record: tuple[KnownChart, ...] = (known("^0", "0.9.0", C, "c"),)
    for number in range(KEPT + 20):
        record = ChartPins(record, f"c{number}").recorded([fetched(RANGE, "1.2.0")])
    assert len(record) == KEPT
    assert record[0] == known("^0", "0.9.0", C, "c")
    assert record[-1].commit == f"c{KEPT + 19}"
    for number in range(KEPT + 20):
        record = ChartPins(record, "d").recorded([fetched(RANGE, f"2.{number}.0")])
        record = ChartPins(record, f"d{number}").recorded([fetched(RANGE, f"2.{number}.0")])
    assert len(record) == KEPT


def test_the_name_of_a_chart_in_a_registry_is_in_its_url() -> None:
    record = ChartPins((), "c1").recorded([fetched(ChartReference("oci://H:443/charts/", "web", "^1"), "1.2.0")])
    assert record == (KnownChart("oci://h/charts/web", "", "^1", "1.2.0", A, "c1"),)
    assert ChartPins(record, "c1").version(ChartReference("oci://h/charts/web", "", "^1")) == "1.2.0"
