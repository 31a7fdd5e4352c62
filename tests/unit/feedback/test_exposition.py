"""The listener for metrics alone: what it serves, and that no client that sits on it keeps Prometheus away for long."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.feedback import exposition
from handler.feedback.exposition import Exposition
from handler.worker.supervisor import listen
from tests.patience import PATIENCE, until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(exposition._Scrape, "timeout", PATIENCE)
    monkeypatch.setattr(exposition, "LONGEST", PATIENCE)
    listener = listen("127.0.0.1:0", "metrics.bind")
    served = Exposition(listener, lambda: "anneal_worker_up 1.0\n")
    served.start()
    yield listener.getsockname()[1]
    served.stop()


def scraped(port: int, path: str = "/metrics") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_the_metrics_listener_serves_metrics_and_nothing_else(port: int) -> None:
    assert scraped(port) == scraped(port, "/metrics?name[]=x") == (200, "anneal_worker_up 1.0\n")
    assert scraped(port, "/<script>")[0] == 404
    assert "<" not in scraped(port, "/<script>")[1]


def test_a_silent_scrape_is_closed_and_frees_its_slot(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition._Scrape, "timeout", 0.5)
    sitting = [socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) for _ in range(exposition.AT_ONCE + 3)]
    for connection in sitting:
        assert connection.recv(10) == b"", "hung up: at once, or when its time was over"
        connection.close()
    monkeypatch.setattr(exposition._Scrape, "timeout", PATIENCE)
    wait_for_a_place(port)


def test_a_scrape_that_sends_a_byte_now_and_then_is_closed_too(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition, "LONGEST", 1.0)
    ended = threading.Event()
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as slow:

        def drip() -> None:
            with contextlib.suppress(OSError):
                while not ended.wait(0.1):
                    slow.sendall(b"x")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            with contextlib.suppress(ConnectionResetError):
                assert slow.recv(10) == b""
        finally:
            ended.set()
            dripping.join()
    monkeypatch.setattr(exposition, "LONGEST", PATIENCE)
    wait_for_a_place(port)


def wait_for_a_place(port: int) -> None:
    """Scrape until a place is free: the last one is a moment after its client was hung up on."""

    def is_served() -> bool:
        with contextlib.suppress(ConnectionError, http.client.HTTPException):
            assert scraped(port)[0] == 200
            return True
        return False

    until(is_served, "no place was freed")


def test_the_document_is_installed_with_the_package() -> None:
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    assert all([*(ROOT / package.replace(".", "/")).glob(name)] for package, names in found.items() for name in names)
    assert "openapi.yaml" in found["handler.web"]
