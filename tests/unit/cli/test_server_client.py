"""`anneal replay` against a server that isn't what it should be: explained, ended in time, nothing of it typed or followed."""

from __future__ import annotations

import contextlib
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from handler.cli import server_client
from tests.unit.cli.scripted import ENDED, HELD, RUN, TAKEN, Server, replay

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("run", [None, 5, "", "a b", "x; rm -rf ~", "\x1b[31m", "\ud800", "a" * 400, {"a": 1}])
def test_a_run_id_of_a_server_is_checked_before_it_is_followed(server: Server, run: Any) -> None:
    server.answers["/replay/shop"] = [(202, TAKEN | {"run": run})]
    result = replay(server)
    assert (result.exit_code, isinstance(result.exception, SystemExit)) == (1, True)
    assert "names no id" in result.output
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"changed": 5},
        {"counts": {"created": float("inf")}},
        {"counts": []},
        {"duration": "soon"},
        {"problems": {"a": 1}},
        {"outcome": "splendid"},
        {"target": "shop; rm -rf ~"},
        {"held": {"id": "h1"}},
        {"held": HELD | {"reasons": 5}},
        {"held": HELD | {"changes": {"items": [5]}}},
        {"held": HELD | {"id": "h1; rm -rf ~"}},
    ],
    ids=str,
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_an_end_in_another_form_is_a_refusal_and_no_command_to_type(server: Server, odd: dict[str, Any], form: tuple[str, ...]) -> None:
    server.answers[f"/api/runs/{RUN}"] = [(200, ENDED | odd)]
    result = replay(server, *form)
    assert result.exit_code == 1
    assert "in a form that this version doesn't know" in result.output or "names no id" in result.output
    assert "--approve" not in result.output


def test_an_answer_that_never_ends_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_client, "LONGEST", 0.3)
    ended = threading.Event()

    def endless(self: BaseHTTPRequestHandler) -> None:
        self.send_response(202)
        self.end_headers()
        with contextlib.suppress(OSError):
            while not ended.wait(0.02):
                self.wfile.write(b" ")

    monkeypatch.setattr(server.handler, "do_POST", endless)
    try:
        result = replay(server)
    finally:
        ended.set()
    assert result.exit_code == 1
    assert "its answer hasn't ended after 0.3 s" in result.output
