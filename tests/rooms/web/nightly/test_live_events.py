"""Pages get what changes from the event loop of a real server: no thread waits for them, and no viewer holds up another."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from handler.web.event_streams import UNSENT
from handler.web.gunicorn_worker import LOOKS, PAGES, POOLS, READS
from handler.web.responses import HEADERS
from tests.rooms.web.conftest import Serving, alive
from tests.rooms.web.event_source import EventSource
from tests.rooms.web.test_live_events import ALL, commit, live, page, rolls  # noqa: F401 - fixtures, too

REPLACED = "the web process has served enough and is replaced"


def kill(server: Serving, worker: int) -> None:
    """Kill the worker process, and wait for the next."""
    os.kill(worker, signal.SIGKILL)
    server.wait(lambda: server.pid() != worker)


def blocked(server: Serving) -> list[str]:
    return [str(line["blocked"]) for line in server.runs() if "blocked" in line]


def lines(server: Serving) -> list[dict[str, Any]]:
    return [line for line in server.lines() if line["logger"] == "anneal.access" and line["route"] == "/ui/live"]


def test_a_stream_has_a_head_of_its_own_and_shows_what_changes(page: Serving) -> None:
    with EventSource(page, ALL) as source:
        head = source.head.split("\r\n")
        assert head[0] == "HTTP/1.1 200 OK"
        assert {f"{name}: {value}" for name, value in HEADERS.items()} <= set(head)
        assert {"Content-Type: text/event-stream", "X-Accel-Buffering: no", "Connection: close"} <= set(head)
        assert not any(line.lower().startswith(("content-length", "transfer-encoding")) for line in head)
        for number in (1, 2):
            assert page.push(after=commit(number)) == 202
            source.until_row("shop-prod", commit(number))
        assert 2000 <= int(source.blocks[0]["retry"]) < 4000
        assert source.shown.keys() <= {"row-shop-prod", "row-slow"}, "what belongs to no target isn't shown"


def test_events_flow_while_all_threads_are_taken(tmp_path: Path) -> None:
    paths = {"/block": "", "/api/block": READS, "/ui/block": PAGES, "/ui/targets/any/block": LOOKS}
    with live(tmp_path) as server, ExitStack() as stack:
        server.replay("slow")
        source = stack.enter_context(EventSource(server, f"{ALL}&topic=slow"))
        rolls(server, "rendering")
        source.until_live(phase="rendering")
        waiting = [stack.enter_context(server.connect()) for path, pool in paths.items() for _ in range(POOLS[pool])]
        for each, path in zip(waiting, [path for path, pool in paths.items() for _ in range(POOLS[pool])], strict=True):
            each.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        server.wait(lambda: len(blocked(server)) == len(waiting))
        rolls(server, "applying")
        source.until_live(phase="applying")
        server.record.with_suffix(".free").touch()
        assert {each.recv(100).split()[1] for each in waiting} == {b"200"}


def test_pages_and_their_plans_leave_the_threads_of_deliveries_alone(tmp_path: Path) -> None:
    with live(tmp_path) as server, ExitStack() as stack:
        for path, pool in (("/ui/block", PAGES), ("/ui/targets/any/block", LOOKS)):
            for _ in range(POOLS[pool] + 5):
                stack.enter_context(server.connect()).sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        server.wait(lambda: len(blocked(server)) == POOLS[PAGES] + POOLS[LOOKS])
        assert (server.push(), server.request("GET", "/readyz")[0], server.read("/api/targets")[0]) == (202, 200, 200)
        server.record.with_suffix(".free").touch()


def test_who_finds_no_thread_reads_a_page_of_the_page_and_json_elsewhere(tmp_path: Path) -> None:
    kinds = {("/ui/block", PAGES): b"text/html; charset=utf-8", ("/api/block", READS): b"application/json"}
    with live(tmp_path) as server, ExitStack() as stack:
        for (path, pool), kind in kinds.items():
            before = len(blocked(server))
            for _ in range(POOLS[pool]):
                stack.enter_context(server.connect()).sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            server.wait(lambda: len(blocked(server)) == before + POOLS[pool])  # noqa: B023 - called at once
            one_more = stack.enter_context(server.connect())
            one_more.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            head = one_more.recv(4096).partition(b"\r\n\r\n")[0].split(b"\r\n")
            assert (head[0], b"Content-Type: " + kind in head) == (b"HTTP/1.1 503 Too Many Reads At Once", True)
        server.record.with_suffix(".free").touch()


def test_a_reader_that_falls_behind_is_dropped_and_the_others_go_on(tmp_path: Path) -> None:
    with live(tmp_path, FAT=str(2 * UNSENT)) as server, ExitStack() as stack:
        server.replay("slow")
        lazy = stack.enter_context(EventSource(server, f"{ALL}&topic=slow", receive=4096))
        source = stack.enter_context(EventSource(server, f"{ALL}&topic=slow"))
        assert lazy.status == 200
        turn = 0
        while not lines(server):  # the line of a stream comes at its end
            turn += 1
            rolls(server, f"phase {turn}")
            source.until_live(phase=f"phase {turn}")
            assert turn < 200, "as much as the system's own buffers hold, and then a few"
        lazy.to_end()
        assert f"phase {turn}" not in lazy.raw.decode()
        rolls(server, "applying")
        source.until_live(phase="applying")


def test_streams_take_no_place_of_requests_and_give_way_to_none(tmp_path: Path) -> None:
    places = 5
    with live(tmp_path, CONNECTIONS=str(places)) as server, ExitStack() as stack:
        sources = []
        for _ in range(2 * places):
            sources.append(stack.enter_context(EventSource(server, ALL)))
            assert sources[-1].status == 200, "one after the other: until then it is a request as any other"
        for _ in range(2 * places):
            stack.enter_context(server.connect()).sendall(b"GET /healthz HTTP/1.1\r\n")
        assert server.push(after=commit(9)) == 202
        for source in sources:
            source.until_row("shop-prod", commit(9))


def test_silence_is_broken_by_heartbeats(tmp_path: Path) -> None:
    with live(tmp_path, HEARTBEAT="0.1") as server, EventSource(server, "sees=") as source:
        source.until(lambda: [block for block in source.blocks if block == {"": ""}][2:])


def test_a_stream_ends_after_its_life_and_has_a_line_in_the_access_log_then(tmp_path: Path) -> None:
    with live(tmp_path, LIFE="1") as server, EventSource(server, ALL, X_Secret="from the client") as source:
        assert source.status == 200
        assert lines(server) == []
        source.to_end()
        server.wait(lambda: lines(server))
        (line,) = lines(server)
        assert (line["method"], line["status"], line["bytes"]) == ("GET", 200, len(source.raw))


def test_at_sigterm_streams_end_at_once_and_a_request_half_sent_is_served(tmp_path: Path) -> None:
    with live(tmp_path) as server, EventSource(server, ALL) as source, server.connect() as half:
        assert source.status == 200
        half.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        assert server.request("GET", "/healthz")[0] == 200, "accepted later, so the half request is in the process"
        server.process.send_signal(signal.SIGTERM)
        source.to_end()
        half.sendall(b"\r\n")
        assert half.recv(100).startswith(b"HTTP/1.1 200")


def test_an_open_stream_doesnt_keep_a_web_process_that_has_served_enough(tmp_path: Path) -> None:
    with live(tmp_path, ANNEAL_MAX_REQUESTS="20") as server, EventSource(server, ALL) as source:
        assert source.status == 200
        before = server.web()
        for _ in range(25):
            assert server.request("GET", "/healthz")[0] == 200
        source.to_end()
        server.wait(lambda: sum(line["message"] == REPLACED for line in server.lines()) == 1)
        server.wait(lambda: not alive(before))
        with EventSource(server, ALL) as again:
            assert server.push(after=commit(6)) == 202
            again.until_row("shop-prod", commit(6))


def test_pages_are_told_that_the_worker_is_away_and_are_healed_by_the_next(tmp_path: Path) -> None:
    with live(tmp_path) as server, EventSource(server, ALL) as source, EventSource(server, "sees=shop-prod&topic=shop-prod") as target:
        assert server.push(after=commit(7)) == 202
        source.until_row("shop-prod", commit(7))
        target.until_live(ended="applied")
        for _ in range(4):  # each time the supervisor waits longer
            kill(server, server.pid())
        assert server.push(after=commit(8)) == 202
        source.until_kind("back")
        target.until_kind("back")
        source.until_row("shop-prod", commit(8))
        target.until_live(commit=commit(8))
        assert "away" in source.kinds[: source.kinds.index("back")]
