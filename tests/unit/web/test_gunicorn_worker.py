"""Whose threads a request is answered by."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from handler.web.connection_limits import Bounds
from handler.web.gunicorn_worker import ACTS, EVENTS, LOOKS, PAGES, POOLS, READS, READY, SPARE, THREADS, _bounds, _patience, _pool
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow


def test_reads_have_a_quarter_of_the_threads_and_deliveries_most_and_pages_have_theirs_beside() -> None:
    beside = sum(POOLS[pool] for pool in (PAGES, LOOKS, ACTS, EVENTS))
    assert (POOLS[READS], sum(POOLS.values()) - beside) == (THREADS // 4, THREADS)
    assert POOLS[""] > THREADS // 2


@each_row(
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
        ("/ui/targets/shop/events", EVENTS),
        ("/ui/targets/shop/logs", EVENTS),
        ("/ui/targets/events/gap", LOOKS),
        ("/ui/targets/shop/rollback", LOOKS),
        ("/api/targets/shop/gap", LOOKS),
        ("/api/targets/shop/orphans", LOOKS),
        ("/api/targets/shop", READS),
        ("/ui/targets/shop/approve", ACTS),
        ("/ui/targets/shop/suspend", ACTS),
        ("/ui/targets/shop/resume", ACTS),
        ("//", ""),
        ("/ui", ""),
        ("/uix/targets/shop/gap", ""),
    ],
)
def test_a_path_leads_to_its_threads(path: str, pool: str) -> None:
    """Another spelling leads nowhere, so it waits for no other thread."""
    assert _pool(path) == pool


def test_what_open_pages_ask_for_takes_no_thread_of_a_confirmation_and_waits_shortly_for_its_own() -> None:
    assert (POOLS[LOOKS], POOLS[ACTS], POOLS[EVENTS]) == (4, 2, 2)
    assert (_patience(LOOKS), _patience(ACTS), _patience(EVENTS)) == (20.0, 20.0, 2.0)


@pytest.mark.parametrize(("hard", "connections"), [(100_000, Bounds().connections), (1024, 1024 - SPARE - 128), (100, 1)])
def test_streams_take_none_of_the_descriptors_of_deliveries(monkeypatch: pytest.MonkeyPatch, hard: int, connections: int) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    assert _bounds(1, 128).connections == connections
    assert raised == [(min(Bounds().connections + SPARE + 128, hard), hard)]


def test_a_door_without_a_page_loads_nothing_of_it() -> None:
    code = "import sys, handler.web.__main__, handler.web.bootstrap; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "handler.web.connection" in loaded
    assert not [name for name in loaded if name.startswith(("handler.web.page", "handler.web.event_streams", "handler.feedback.live"))]
