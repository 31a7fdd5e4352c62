"""Whose threads a request is answered by."""

from __future__ import annotations

import pytest

from handler.web.gunicorn_worker import LANES, READS, READY, THREADS, _lane


def test_reads_have_a_quarter_of_the_threads_and_deliveries_most() -> None:
    assert (LANES[READS], sum(LANES.values())) == (THREADS // 4, THREADS)
    assert LANES[""] > THREADS // 2


@pytest.mark.parametrize(
    ("path", "lane"),
    [
        ("/api/targets", READS),
        ("/api/runs/shop.0123456789ab", READS),
        ("/metrics", READS),
        ("/readyz", READY),
        ("/healthz", ""),
        ("/webhooks/github", ""),
        ("/replay/shop", ""),
        ("/api", ""),
        ("//api/targets", ""),
    ],
)
def test_a_path_leads_to_its_threads(path: str, lane: str) -> None:
    """Another spelling leads nowhere, so it waits for nobody."""
    assert _lane(path) == lane
