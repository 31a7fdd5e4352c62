"""The place of streams: what a loop sends, which readers are dropped, and what happens before and after the loop has them."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from handler.web import event_streams
from handler.web.connection import ClientConnection, Collected, EventStream
from handler.web.event_streams import HEARTBEAT, OF_VISITOR, SAID, UNSENT, EventStreams


class Loop:
    """A loop that sends as much as it is let."""

    def __init__(self) -> None:
        self.takes = 10**9
        self.sent = b""
        self.watched: list[int] = []
        self.closed = 0
        self.deferred = 0
        self.streams = EventStreams(lambda conn, events, then: self.watched.append(events), self._send, self._defer, 30)
        self._pairs: list[tuple[socket.socket, socket.socket]] = []

    def open(self, visitor: str = "ada", life: float = 60.0) -> EventStream | None:
        return self.streams.open({"gunicorn.socket": Collected(self.streams)}, visitor, time.time() + life, self._closed)

    def adopted(self) -> EventStream:
        stream = self.open()
        assert stream
        self.adopt(stream)
        return stream

    def adopt(self, stream: EventStream) -> None:
        self._pairs.append(socket.socketpair())
        sock = self._pairs[-1][0]
        sock.setblocking(False)
        reader: Any = None  # the request is read
        self.streams.adopt(ClientConnection(sock, ("127.0.0.1", 1), None, reader, 0.0, lambda _: None), stream)

    def end(self) -> None:
        for pair in self._pairs:
            pair[0].close()
            pair[1].close()

    def client(self) -> socket.socket:
        return self._pairs[-1][1]

    def _send(self, conn: ClientConnection, data: bytes | memoryview) -> int:
        taken = min(self.takes, len(data))
        self.takes -= taken
        self.sent += data[:taken]
        return taken

    def _defer(self, call: object, *given: object) -> None:
        self.deferred += 1
        assert callable(call)
        call(*given)

    def _closed(self) -> None:
        self.closed += 1


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.end()


def test_what_comes_before_the_loop_has_the_stream_follows_its_head(loop: Loop) -> None:
    stream = loop.open()
    assert stream
    loop.streams.publish([(stream, b"data: 1\n\n")])
    assert loop.sent == b""
    loop.adopt(stream)
    assert loop.sent.startswith(b"HTTP/1.1 200 OK\r\n")
    assert loop.sent.endswith(b"\n\ndata: 1\n\n")


def test_a_batch_is_one_call_of_the_loop(loop: Loop) -> None:
    streams = [loop.adopted() for _ in range(3)]
    before, sent = loop.deferred, len(loop.sent)
    loop.streams.publish((stream, b"data: 1\n\n") for stream in streams)
    assert (loop.deferred - before, loop.sent[sent:]) == (1, b"data: 1\n\n" * 3)


def test_what_the_client_doesnt_take_waits_and_beyond_the_limit_it_is_dropped(loop: Loop) -> None:
    stream = loop.adopted()
    loop.takes = 5
    loop.streams.publish([(stream, b"x" * UNSENT)])
    assert (stream.over, stream.behind, loop.watched[-1]) == (False, UNSENT - 5, selectors.EVENT_READ | selectors.EVENT_WRITE)
    loop.streams.publish([(stream, b"y" * 6)])
    assert stream.over is False
    loop.streams.publish([(stream, b"z")])
    assert (stream.over, loop.closed) == (True, 1)
    loop.streams.publish([(stream, b"z")])
    assert loop.sent.endswith(b"xxxxx")


def test_what_a_page_is_sent_on_opening_is_beside_the_limit(loop: Loop) -> None:
    stream = loop.open()
    assert stream
    loop.streams.publish([(stream, b"x" * 3 * UNSENT)])
    loop.takes = 0
    loop.adopt(stream)
    loop.streams.publish([(stream, b"y")])
    assert stream.over is False


def test_of_one_visitor_and_in_all_there_are_only_so_many_until_one_ends(loop: Loop) -> None:
    opened = [loop.open("ada") for _ in range(OF_VISITOR)]
    assert all(opened)
    assert loop.open("ada") is None
    assert all(loop.open("grace") for _ in range(30 - OF_VISITOR))
    assert loop.open("edsger") is None
    assert opened[0]
    loop.streams.end(opened[0])
    loop.streams.end(opened[0])
    assert loop.open("ada")
    assert (loop.open("edsger"), loop.closed) == (None, 1)


def test_a_stream_ends_after_its_life_and_silence_is_broken(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = loop.adopted()
    sent, now = len(loop.sent), time.monotonic()
    loop.streams.look(now + HEARTBEAT / 2)
    assert len(loop.sent) == sent
    loop.streams.look(now + HEARTBEAT + 1)
    assert loop.sent[sent:] == b":\n\n"
    loop.streams.look(stream.ends + 1)
    assert stream.over
    monkeypatch.setattr(event_streams, "LIFE", 3600.0)
    before = time.monotonic()
    long, short = loop.open(life=36_000.0), loop.open(life=600.0)
    after = time.monotonic()
    assert long
    assert short
    assert short.ends < after + 600.0
    assert before + 1800.0 < long.ends <= after + 3600.0
    assert loop.open(life=0.0) is None


@pytest.mark.parametrize("said", [b"", b"x" * SAID])
def test_a_client_that_hangs_up_or_goes_on_talking_is_closed(loop: Loop, said: bytes) -> None:
    stream = loop.adopted()
    client = loop.client()
    client.sendall(b"x" if said else b"")
    for start in range(0, len(said), 1000):
        client.sendall(said[start : start + 1000])
        if not stream.over:
            loop.streams._ready(stream.conn)  # type: ignore[arg-type]  # adopted
    if not said:
        client.close()
        loop.streams._ready(stream.conn)  # type: ignore[arg-type]  # adopted
    assert stream.over


def test_once_closed_nothing_is_opened_and_the_loop_is_left_alone(loop: Loop) -> None:
    stream = loop.adopted()
    loop.streams.close()
    before = loop.deferred
    loop.streams.publish([(stream, b"data: 1\n\n")])
    assert (stream.over, loop.open(), loop.deferred) == (True, None, before)


def test_one_request_opens_one_stream(loop: Loop) -> None:
    environ = {"gunicorn.socket": Collected(loop.streams)}
    until = time.time() + 60
    assert loop.streams.open(environ, "ada", until, lambda: None)
    assert loop.streams.open(environ, "ada", until, lambda: None) is None
