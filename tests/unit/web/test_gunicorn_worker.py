"""Whose threads a request is answered by."""

from __future__ import annotations

import pytest

from handler.web.gunicorn_worker import LOOKS, PAGES, POOLS, READS, READY, THREADS, _pool


def test_reads_have_a_quarter_of_the_threads_and_deliveries_most_and_pages_have_theirs_beside() -> None:
    assert (POOLS[READS], sum(POOLS.values()) - POOLS[PAGES] - POOLS[LOOKS]) == (THREADS // 4, THREADS)
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
        ("/", PAGES),
        ("/ui/targets/shop", PAGES),
        ("/ui/live", PAGES),
        ("/ui/login", PAGES),
        ("/ui/targets/shop/gap", LOOKS),
        ("/ui/targets/shop/rollback", LOOKS),
        ("//", ""),
        ("/ui", ""),
        ("/uix/targets/shop/gap", ""),
    ],
)
def test_a_path_leads_to_its_threads(path: str, pool: str) -> None:
    """Another spelling leads nowhere, so it waits for no other thread."""
    assert _pool(path) == pool


def test_an_act_waits_behind_no_plan() -> None:
    assert (_pool("/ui/targets/shop/approve", "GET"), _pool("/ui/targets/shop/approve", "POST")) == (LOOKS, PAGES)
