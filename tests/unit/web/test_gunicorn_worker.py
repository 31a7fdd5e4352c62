"""Whose threads a request is answered by."""

from __future__ import annotations

import pytest

from handler.web.gunicorn_worker import POOLS, READS, READY, THREADS, _pool


def test_reads_have_a_quarter_of_the_threads_and_deliveries_most() -> None:
    assert (POOLS[READS], sum(POOLS.values())) == (THREADS // 4, THREADS)
    assert POOLS[""] > THREADS // 2


@pytest.mark.parametrize(
    ("path", "pool"),
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
def test_a_path_leads_to_its_threads(path: str, pool: str) -> None:
    """Another spelling leads nowhere, so it waits for no other thread."""
    assert _pool(path) == pool
