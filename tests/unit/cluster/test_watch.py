"""What a WATCH may send: events in pieces, and what no API server says but a proxy between may."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import pytest

from handler.cluster import watch
from handler.model.names import Identity, Resource
from tests.patience import PATIENCE

WEB = Identity("", "ConfigMap", "shop", "web")
OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "8"}}
EVENT = json.dumps({"type": "MODIFIED", "object": OBJECT}).encode() + b"\n"


class Response:
    """An answer whose body comes in these pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.pieces, self.reads = pieces, 0

    def read1(self, _most: int) -> bytes:
        self.reads += 1
        return next(self.pieces, b"")

    def close(self) -> None:
        """Nothing is open."""


def watched(pieces: Iterator[bytes]) -> tuple[str, int, list[Any]]:
    """Watch from version 7; return where to go on, how often was read, and what was reported."""
    response, lines = Response(pieces), watch.Lines()
    scope = watch.Scope(Resource("", "v1", "ConfigMap", "configmaps", namespaced=True), "shop", False, "", frozenset({WEB}), {WEB})
    api: Any = SimpleNamespace(stream=lambda _request: response, connection=SimpleNamespace(generation=0, refresh=lambda _: None))
    version = watch._watch(api, scope, "7", lines)
    told = []
    while True:
        try:
            told.append(lines.get_nowait()[1])
        except queue.Empty:
            return version, response.reads, told


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_watch_events_are_whole_however_their_bytes_arrive(size: int) -> None:
    body = EVENT * 3
    version, _, told = watched(body[at : at + size] for at in range(0, len(body), size))
    assert version == "8"
    assert told == [(WEB, OBJECT)] * 3


def test_a_watch_line_over_the_size_limit_restarts_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_LONGEST", 1000)
    version, reads, told = watched(chain([EVENT], repeat(b"x" * 100)))
    assert (version, told) == ("", [(WEB, OBJECT)])
    assert reads <= 12


@pytest.mark.parametrize("garbage", [b"[" * 200_000 + b"\n", b'{"object":' * 50_000 + b"\n", b"<html>\n", b"17\n", b"{}\n"])
def test_a_watch_resumes_after_garbage(garbage: bytes) -> None:
    version, _, told = watched(iter([EVENT, garbage, EVENT]))
    assert (version, told) == ("8", [(WEB, OBJECT)])


def test_stop_is_called_by_its_interval_however_many_watch_events_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_STOP_EVERY", 60.0)
    judged, asked, count = threading.Semaphore(0), list[int](), 50
    states: list[Any] = []

    def judge(seen: watch.Seen) -> bool:
        states.append(seen[1])
        judged.release()
        return len(states) == count

    def events() -> Iterator[bytes]:
        while judged.acquire(timeout=PATIENCE) and not scope.closed.is_set():
            yield EVENT

    class Cut(Response):
        def shutdown(self) -> None:
            judged.release()

    scope = watch.Scope(Resource("", "v1", "ConfigMap", "configmaps", namespaced=True), "shop", False, "", frozenset({WEB}), {WEB})
    listed = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []}
    way = SimpleNamespace(generation=0)
    api: Any = SimpleNamespace(get=lambda *_, **__: listed, stream=lambda _request: Cut(events()), connection=way)
    watch.feed(api, [scope], judge, 3600.0, lambda: asked.append(len(states)))
    assert states == [None, *[OBJECT] * (count - 1)]
    assert asked == [0]
