"""The way to Prometheus against a real one."""

from __future__ import annotations

import math
import shlex
import time
from itertools import pairwise
from pathlib import Path

import pytest

from handler.config.secrets import Secrets
from handler.config.settings import PrometheusSettings
from handler.model.errors import PlanRefused, RolloutFailed
from handler.prometheus.client import MetricsUnavailable, PrometheusClient
from infra.prometheushost import Exporter, PrometheusHost
from tests.rooms.source.certificates import Authority


@pytest.fixture
def metrics(prometheus: PrometheusHost) -> PrometheusClient:
    return PrometheusClient([PrometheusSettings(prometheus.url)], Secrets())


def tracks(**values: str) -> str:
    """Return a query that finds these values, by a label, whenever a scrape came last."""
    return "(" + " or ".join(f'label_replace(vector({value}), "track", "{track}", "", "")' for track, value in values.items()) + ")"


def test_a_vector_is_found_with_its_labels(metrics: PrometheusClient, prometheus: PrometheusHost) -> None:
    (found,) = metrics.query(prometheus.url, tracks(canary="0.002", stable="Inf"))
    assert {sample.labels["track"]: sample.value for sample in found} == {"canary": 0.002, "stable": math.inf}


def test_an_empty_vector_a_scalar_and_nan_are_told_apart(metrics: PrometheusClient) -> None:
    assert metrics.query("", "nothing_of_that_name") == [[]]
    assert [[sample.value for sample in moment] for moment in metrics.query("", "1 + 1")] == [[2.0]]
    ((nan,),) = metrics.query("", "vector(0) / vector(0)")
    assert math.isnan(nan.value)


def test_a_range_query_has_a_sample_for_each_step_the_newest_last(metrics: PrometheusClient) -> None:
    before = time.time()
    found = metrics.query("", "time()", 10, 2.5)
    times = [moment[0].value for moment in found]
    assert [round(after - first, 1) for first, after in pairwise(times)] == [2.5] * 4
    assert before - 1 <= times[-1] <= time.time() + 1
    assert metrics.query("", "nothing_of_that_name", 10, 2.5) == [[]] * 5
    assert len(metrics.query("", "time()", 10, 4)) == 4, "steps divide the time; none is longer than asked"


@pytest.mark.parametrize("seconds", [0.0, 4.0])
@pytest.mark.parametrize("query", ["errors{", "up[5m]", '"text"', "sum("])
def test_a_query_whose_result_is_no_vector_or_scalar_is_the_authors(metrics: PrometheusClient, query: str, seconds: float) -> None:
    with pytest.raises(
        RolloutFailed, match=r"can't evaluate the query: it is .*; see what it says: promtool query instant -- http"
    ) as refused:
        metrics.query("", query, seconds, 1.0)
    assert refused.value.problems[0].fix.endswith(shlex.quote(query))


def test_a_422_by_duplicate_series_is_metrics_unavailable(metrics: PrometheusClient) -> None:
    two = tracks(a="1", b="1")
    with pytest.raises(MetricsUnavailable, match="422: its error is execution"):
        metrics.query("", f"{two} * on(job) {two}")


def test_a_prometheus_that_ends_is_unavailable_until_it_is_back(exporter: Exporter) -> None:
    with PrometheusHost(exporter.address) as host:
        asked = PrometheusClient([PrometheusSettings(host.url)], Secrets())
        assert asked.query("", "1")
        host.stop()
        with pytest.raises(MetricsUnavailable, match=f"prometheus {host.url}: can't be reached: its host refuses connections"):
            asked.query("", "1")
        host.start()
        assert asked.query("", "1")


def test_the_certificate_of_prometheus_is_verified_by_the_named_ca(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ours")
    both = authority.certificate("prometheus")
    web = tmp_path / "web.yml"
    web.write_text(f"tls_server_config: {{cert_file: {both}, key_file: {both}}}\n")
    with PrometheusHost(web=web, authority=authority.file) as host:
        assert PrometheusClient([PrometheusSettings(host.url, ca_file=str(authority.file))], Secrets()).query("", "1")
        for file in ("", str(Authority(tmp_path, "others").file)):
            with pytest.raises(
                MetricsUnavailable, match=r"TLS with its host fails \(.*certificate.*\); name the authority that signed it: `caFile`"
            ):
                PrometheusClient([PrometheusSettings(host.url, ca_file=file)], Secrets()).query("", "1")
        with pytest.raises(MetricsUnavailable, match="can't be reached: the file of authorities isn't there"):
            PrometheusClient([PrometheusSettings(host.url, ca_file=str(tmp_path / "missing.pem"))], Secrets()).query("", "1")
        with pytest.raises(PlanRefused, match="isn't listed"):
            PrometheusClient([PrometheusSettings(host.url)], Secrets()).query(host.url.replace("https", "http"), "1")
