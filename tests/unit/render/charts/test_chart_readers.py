"""anneal.lock: read with lines for its mistakes, and applied to what is asked for."""

from __future__ import annotations

from typing import cast

import pytest

from handler.model.errors import ManifestInvalid
from handler.model.outside_inputs import ChartReference, KnownChart, chart_asked, chart_read
from handler.render.charts.chart_readers import locked, read_lock
from handler.render.sandbox import Sandbox
from tests.fakes.sandbox import InProcess

SANDBOX = cast("Sandbox", InProcess())
A = f"sha256:{'a' * 64}"
URL = "https://charts.example.com/stable"
TEXT = f"""# comment
charts:
- url: {URL}
  name: web
  range: ^1.2
  version: 1.2.7
  digest: {A}
- url: oci://registry.example.com/charts/db
  version: 2.0.0
  digest: {A}
"""


def test_a_lock_is_read_with_the_place_of_each_entry() -> None:
    assert read_lock(SANDBOX, TEXT.encode(), "web/anneal.lock") == (
        KnownChart(URL, "web", "^1.2", "1.2.7", A, place="web/anneal.lock:3"),
        KnownChart("oci://registry.example.com/charts/db", "", "2.0.0", "2.0.0", A, place="web/anneal.lock:8"),
    )
    assert read_lock(SANDBOX, b"", "anneal.lock") == read_lock(SANDBOX, b"charts:\n", "anneal.lock") == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("charts: 1", "anneal.lock:1: charts: isn't a list"),
        ("charts:\n- web", "anneal.lock:1: anneal.lock: an entry is a mapping"),
        ("charts:\n- {url: 1}", "anneal.lock:2: anneal.lock: an entry is a mapping of texts"),
        ("charts:\n\n- {url: https://h/x, version: 1.0.0, digest: md5}", "anneal.lock:3: digest: expected sha256"),
        ("charts:\n- {url: https://u:secret@h/x, version: 1.0.0, digest: " + A + "}", "anneal.lock:2: url: expected"),
        ("charts:\n- {url: https://h/x, version: 1.0.0, digest: " + A + ", more: x}", "anneal.lock:2: key more: isn't known"),
        ("charts:\n- {url: https://h/x, digest: " + A + "}", "anneal.lock:2: version: expected"),
        ("charts: [", "anneal.lock:2: YAML"),
        ("charts: &a [*a]", "contains itself"),
    ],
)
def test_mistakes_of_a_lock_have_their_lines(text: str, said: str) -> None:
    with pytest.raises(ManifestInvalid) as refused:
        read_lock(SANDBOX, text.encode(), "anneal.lock")
    assert said in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_lock_gives_version_and_digest_to_what_is_asked_for() -> None:
    lock = read_lock(SANDBOX, TEXT.encode(), "anneal.lock")
    web = ChartReference(f"{URL}/", "web", "^1.2", place="Chart.yaml:5")
    assert locked(web, lock) == ChartReference(f"{URL}/", "web", "1.2.7", A, "Chart.yaml:5")
    assert locked(ChartReference("oci://registry.example.com/charts", "db", "2.0.0"), lock).digest == A
    for unlocked in (ChartReference(URL, "other", "^1.2"), ChartReference(URL, "web", "^9", digest=f"sha256:{'b' * 64}")):
        assert locked(unlocked, lock) == unlocked


def test_a_lock_that_no_longer_fits_is_refused() -> None:
    lock = read_lock(SANDBOX, TEXT.encode(), "anneal.lock")
    with pytest.raises(ManifestInvalid) as refused:
        locked(ChartReference(URL, "web", "^2", place="Chart.yaml:5"), lock)
    assert str(refused.value) == (
        "Chart.yaml:5: chart web: anneal.lock has it for ^1.2 (anneal.lock:3), and ^2 is asked for;"
        " run `anneal vendor DIR --lock` on the directory and commit what it writes"
    )


def test_the_name_of_a_read_leads_back_to_what_was_asked_for() -> None:
    for reference in (ChartReference(URL, "web", ">=1 <2 || 3.x"), ChartReference("oci://h:5000/a/b", "", "*")):
        assert chart_asked(chart_read(reference)) == reference
