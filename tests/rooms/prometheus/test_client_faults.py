"""Answers that no Prometheus gives, addresses that no setting lists, and a token that no other host is shown."""

from __future__ import annotations

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from handler.config.git_settings import SecretRef
from handler.config.remote_secrets import SecretClocks
from handler.config.secret_rotation import Rotation
from handler.config.secrets import Secrets, resolve_all
from handler.config.settings import PrometheusSettings, Settings
from handler.model.errors import AnnealError, PlanRefused, RolloutFailed
from handler.prometheus import client
from handler.prometheus.allowed_servers import AllowedServers
from handler.prometheus.client import MetricsUnavailable, PrometheusClient
from tests.rooms.prometheus.faulty_prometheus import Answer, Liar, answering

TOKEN = "CANARY-do-not-show-this-token"
GOOD = json.dumps({"status": "success", "data": {"resultType": "scalar", "result": [0, "1"]}}).encode()


def asked(answer: Answer, seconds: float = 0.0) -> tuple[Liar, Any]:
    """Return the server, and what became of one question."""
    with Liar(answer) as liar:
        try:
            return liar, PrometheusClient([PrometheusSettings(liar.url)], Secrets()).query("", "up", seconds, 1.0)
        except AnnealError as error:
            return liar, error


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>", "200: answers no JSON"),
        (200, b"[" * 100_000, "200: answers no JSON"),
        (200, b"[]", "answers, but not as Prometheus"),
        (200, b'{"status": "success"}', "answers, but not as Prometheus"),
        (
            200,
            b'{"status": "success", "data": {"resultType": "vector", "result": [{"metric": [], "value": [0, "1"]}]}}',
            "not as Prometheus",
        ),
        (
            200,
            b'{"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [0, "x"]}]}}',
            "not as Prometheus",
        ),
        (200, b'{"status": "success", "data": {"resultType": "scalar", "result": [0, "1_0"]}}', "not as Prometheus"),
        (200, b'{"status": "success", "data": {"resultType": "scalar", "result": [0, " 1"]}}', "not as Prometheus"),
        (200, b'{"status": "success", "data": {"resultType": "scalar", "result": [0, "\\u0663"]}}', "not as Prometheus"),
        (200, b'{"status": "success", "data": {"resultType": "vector", "result": 7}}', "not as Prometheus"),
        (404, b"not here", "404: answers, but not as Prometheus; its URL may need a path"),
        (401, b"", "401: doesn't accept the token, or wants one"),
        (403, b"", "403: doesn't accept the token"),
        (500, b"", "500: doesn't answer the query"),
        (503, b"busy", "503: answers no JSON"),
        (200, b'{"status": "success", "data": {"resultType": "scalar", "result": [0, 1' + b"0" * 400 + b"]}}", "200: answers, but not as"),
        (503, b'{"status": "error", "errorType": "timeout", "error": "query timed out"}', "503: its error is timeout"),
        (400, b'{"status": "error", "errorType": "odd", "error": "\\u001b[31mred"}', "400: it names no kind of error that is known"),
    ],
)
def test_an_unreadable_answer_is_metrics_unavailable(status: int, body: bytes, said: str) -> None:
    _, error = asked(answering(status, body))
    assert isinstance(error, MetricsUnavailable)
    with pytest.raises(MetricsUnavailable, match=said):
        raise error


def test_a_histogram_and_a_text_are_no_value() -> None:
    for kind, result in (("vector", [{"metric": {}, "histogram": [0, {}]}]), ("string", [0, "x"])):
        _, error = asked(answering(200, json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode()))
        assert isinstance(error, RolloutFailed)


def test_a_redirect_is_not_followed() -> None:
    with Liar(answering(200, GOOD)) as other:
        _, error = asked(answering(307, b"", Location=f"{other.url}/api/v1/query"))
        assert "307: redirects elsewhere, which is never followed" in str(error)
        assert other.asked == []


def test_an_answer_is_read_up_to_its_limit_and_never_unpacked() -> None:
    for length in (str(client.LARGEST + 1), str(10**12)):
        _, error = asked(answering(200, b"x" * (client.LARGEST + 1), Content_Length=length))
        assert isinstance(error, RolloutFailed)
        assert "answers with more than 1 MiB of series; aggregate" in str(error)
    _, error = asked(answering(200, gzip.compress(GOOD), Content_Encoding="gzip"))
    assert "answers no JSON" in str(error)


def test_an_answer_that_drips_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LONGEST", 0.1)
    ended = threading.Event()

    def drip(request: BaseHTTPRequestHandler) -> None:
        answering(200, b"", Content_Length="100000")(request)
        while not ended.wait(0.05):
            try:
                request.wfile.write(b" ")
            except OSError:
                return

    _, error = asked(drip)
    ended.set()
    assert isinstance(error, MetricsUnavailable)
    assert "its answer hasn't ended after 0.1 s" in str(error)


def test_samples_outside_of_the_range_query_are_left_out() -> None:
    series = {"metric": {}, "values": [[at, "1"] for at in range(100_000, 100_300)] + [[1e300, "2"], [-1e300, "3"]]}
    body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [series]}}).encode()
    _, found = asked(answering(200, body), 3.0)
    assert found == [[]] * 4


# --- whom it asks
LISTED = AllowedServers(
    [
        PrometheusSettings("https://metrics.example.com/team"),
        PrometheusSettings("http://127.0.0.1:9090"),
        PrometheusSettings("https://metrics.example.com/team/a"),
    ]
)


@pytest.mark.parametrize(
    ("url", "by"),
    [
        ("", "https://metrics.example.com/team"),
        ("https://metrics.example.com/team", "https://metrics.example.com/team"),
        ("https://metrics.example.com/team/", "https://metrics.example.com/team"),
        ("https://METRICS.example.com:443/team/b", "https://metrics.example.com/team"),
        ("https://metrics.example.com/team/a/x", "https://metrics.example.com/team/a"),
        ("http://127.0.0.1:9090/any", "http://127.0.0.1:9090"),
    ],
)
def test_a_listed_prometheus_url_may_be_asked_and_paths_below_it(url: str, by: str) -> None:
    assert LISTED.find(url).by.url == by


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254",
        "http://metrics.example.com/team",
        "https://metrics.example.com",
        "https://metrics.example.com/teams",
        "https://metrics.example.com:8443/team",
        "https://metrics.example.com.evil.example/team",
        "https://metrics.example.com@evil.example/team",
        "https://metrics.example.com/team/../admin",
        "https://metrics.example.com/team/%2e%2E/admin",
        "https://metrics.example.com/team%2f..%2fadmin",
        "https://metrics.example.com/team/%252e%252e/admin",
        "https://metrics.example.com/team/%25%32%65%25%32%65/admin",
        "https://metrics.example.com/team/..;/admin",
        "https://metrics.example.com/team/..;x=1/admin",
        "https://metrics.example.com/team/..%3b/admin",
        "https://metrics.example.com/team\\..\\admin",
        "https://metrics.example.com/team?x=/api",
        "https://metrics.example.com/team#x",
        "http://127.0.0.1:90900",
        "http://[::1]:9090",
        "http://0x7f000001:9090",
        "file:///etc/passwd",
        "//127.0.0.1:9090",
        " http://127.0.0.1:9090",
        "http://127.0.0.1:9090\r\nHost: x",
        "gopher://127.0.0.1:9090",
    ],
)
def test_an_unlisted_prometheus_url_is_never_asked(url: str) -> None:
    with pytest.raises(PlanRefused):
        LISTED.find(url)


def test_the_refusal_names_the_line_that_would_allow_it_and_no_password() -> None:
    with pytest.raises(PlanRefused, match=r"isn't listed.*anneal.yaml: prometheus: \[\{url: https://other.example.com:8443\}\]"):
        LISTED.find("https://other.example.com:8443/x")
    with pytest.raises(PlanRefused) as error:
        LISTED.find(f"https://user:{TOKEN}@metrics.example.com/team")
    assert TOKEN not in str(error.value)
    with pytest.raises(PlanRefused, match="none is listed"):
        AllowedServers([]).find("")


def test_a_command_on_a_local_directory_may_ask_any_prometheus_url() -> None:
    assert AllowedServers([], anywhere=True).find("http://127.0.0.1:1/x").url == "http://127.0.0.1:1/x"
    with pytest.raises(PlanRefused):
        AllowedServers([], anywhere=True).find("file:///etc/passwd")


# --- its token
def settings_of(url: str, ref: SecretRef) -> Settings:
    return Settings((), prometheus=(PrometheusSettings(url, ref),))


def test_the_bearer_token_is_sent_and_is_in_no_error() -> None:
    def tell(request: BaseHTTPRequestHandler) -> None:
        said = f"no, {request.headers['Authorization']}"
        answering(400, json.dumps({"status": "error", "errorType": "bad_data", "error": said}).encode())(request)

    with Liar(tell) as liar:
        secrets = resolve_all(settings_of(liar.url, SecretRef(env="METRICS")), {"METRICS": TOKEN}, needs={"metrics"})
        with pytest.raises(RolloutFailed, match="can't evaluate the query: it is no query that Prometheus can read") as error:
            PrometheusClient([PrometheusSettings(liar.url, SecretRef(env="METRICS"))], secrets).query("", "up")
    assert liar.asked[0][1]["Authorization"] == f"Bearer {TOKEN}"
    assert TOKEN not in repr((error.value, error.value.__cause__, error.value.__context__))


@pytest.mark.usefixtures("waited_for")
def test_a_token_that_was_rotated_is_read_again_after_a_refusal() -> None:
    stored, now = ["old-token"], [1_000.0]
    ref = SecretRef(aws_parameter="/metrics")

    def answer(request: BaseHTTPRequestHandler) -> None:
        right = request.headers["Authorization"] == "Bearer new-token"
        answering(200 if right else 401, GOOD if right else b"")(request)

    with Liar(answer) as liar:
        clocks = SecretClocks(lambda: now[0], lambda: now[0])
        secrets = Rotation(settings_of(liar.url, ref), {}, needs={"metrics"}, fetch=lambda _: stored[0], clocks=clocks)
        stored[0], now[0] = "new-token", now[0] + 30
        assert PrometheusClient([PrometheusSettings(liar.url, ref)], secrets).query("", "up")
    assert [headers["Authorization"] for _, headers, _ in liar.asked] == ["Bearer old-token", "Bearer new-token"]


def test_the_query_is_in_the_body_and_in_no_log_of_a_proxy() -> None:
    liar, found = asked(answering(200, GOOD))
    ((path, headers, body),) = liar.asked
    assert path == "/api/v1/query"
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert b"query=up&timeout=10s&time=" in body
    assert "Authorization" not in headers
    assert found[0][0].value == 1.0
