"""The room's pure pieces: discovery documents, labels, order of results, pauses."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import urllib3

from handler.cluster.api import ApiRequest, _pause
from handler.cluster.discovery import read_aggregated
from handler.cluster.live import matches
from handler.cluster.parallel import parallel, together
from handler.model.errors import AnnealError, ApiRefused, LeaseLost
from handler.model.names import Resource


def served(kind: str | None, plural: str, scope: str = "Namespaced") -> dict[str, Any]:
    return {"resource": plural, "responseKind": {"kind": kind} if kind else None, "scope": scope, "verbs": ["get", "list"]}


def test_aggregated_discovery_is_read_with_all_its_holes() -> None:
    document = {
        "items": [
            {
                "metadata": {"name": "apps"},
                "versions": [
                    {"version": "v1", "freshness": "Current", "resources": [served("Deployment", "deployments"), served(None, "odd")]},
                    {"version": "v1beta1", "freshness": "Current"},
                ],
            },
            {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1", "freshness": "Stale", "resources": None}]},
            {"metadata": {}, "versions": [{"version": "v1", "resources": [served("Node", "nodes", "Cluster")]}]},
            {"metadata": None},
        ]
    }
    found = read_aggregated([document, {}])
    assert found.resources == (
        Resource("apps", "v1", "Deployment", "deployments", True, frozenset({"get", "list"})),
        Resource("", "v1", "Node", "nodes", False, frozenset({"get", "list"})),
    )
    assert found.stale == {"metrics.k8s.io"}


@pytest.mark.parametrize(
    ("labels", "selector", "found"),
    [
        ({"a": "1"}, "a=1", True),
        ({"a": "1", "b": "2"}, "a=1,b=2", True),
        ({"a": "1"}, "a=2", False),
        ({"a": "1"}, "a=1,b=2", False),
        ({}, "a=1", False),
        (None, "a=1", False),
        (None, "", True),
    ],
)
def test_labels_are_checked_again(labels: dict[str, str] | None, selector: str, found: bool) -> None:
    assert matches({"metadata": {"labels": labels}}, selector) is found


def test_results_keep_their_order_and_errors_are_results() -> None:
    refusal = ApiRefused.of("ConfigMap/a", "no")

    def refuse() -> int:
        raise refusal

    assert parallel([lambda: 1, refuse, lambda: 3], workers=3) == [1, refusal, 3]
    assert parallel([]) == []
    with pytest.raises(ApiRefused):
        together([lambda: 1, refuse])


def test_nothing_starts_after_a_lost_lease() -> None:
    started: list[int] = []
    lost = LeaseLost.of("Lease", "taken")

    def task(number: int) -> int:
        started.append(number)
        if number == 2:
            raise lost
        return number

    results = parallel([lambda number=number: task(number) for number in range(50)], workers=1)  # type: ignore[misc] # mypy can't type a default
    assert started == [0, 1, 2]
    assert results == [0, 1, *[lost] * 48]


def test_a_mistake_of_ours_is_raised_and_starts_nothing_more() -> None:
    started = threading.Semaphore(0)

    def mistake() -> None:
        started.release()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        parallel([mistake] * 100, workers=2)
    assert sum(started.acquire(blocking=False) for _ in range(100)) <= 2


@pytest.mark.parametrize(("after", "least", "most"), [("2", 2.0, 2.5), ("0", 0.2, 0.4), ("", 0.2, 0.4), ("Wed, 21 Oct", 0.2, 0.4)])
def test_a_pause_honours_the_server(after: str, least: float, most: float) -> None:
    response = urllib3.HTTPResponse(status=429, headers={"Retry-After": after} if after else {})
    pauses = [_pause(2, response) for _ in range(50)]
    assert all(least <= pause <= most for pause in pauses)


def test_a_pause_grows_to_a_limit() -> None:
    assert _pause(0, AnnealError()) <= 0.1
    assert 5.0 <= _pause(60, AnnealError()) <= 10.0


def test_a_request_never_shows_its_body() -> None:
    assert "hunter2" not in repr(ApiRequest("PUT", "/api/v1/namespaces/a/secrets/s", body=b"hunter2"))
