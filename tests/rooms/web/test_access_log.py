"""The access log, the health check, and how both are asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from handler.cli import serve as serving
from handler.cli.commands.serve import serve
from handler.web import BIND, MAX_REQUESTS
from tests.fakes.signed_webhooks import SECRETS
from tests.rooms.web.conftest import CONFIG, ROOT, Serving, served


def requests(server: Serving) -> list[dict[str, Any]]:
    return [line for line in server.lines() if line["logger"] == "anneal.access"]


def test_each_request_is_a_line_that_holds_nothing_the_client_chose(tmp_path: Path) -> None:
    with served(tmp_path, CONFIG, ANNEAL_ACCESS_LOG="1") as server:
        token = SECRETS["ALL"]
        assert server.push() == 202
        assert server.read("/api/deliveries?limit=7")[0] == 200
        assert server.request("GET", f"/private/{token}?token={token}", headers={"Authorization": f"Bearer {token}"})[0] == 404
        assert server.request("X-MADE-UP", "/api/targets")[0] == 405
        assert server.request("GET", "/healthz")[0] == 200
        with server.connect() as connection:
            connection.sendall(b"GET / HTTP/9.9\r\n\r\n")
            assert connection.recv(100).split()[1] == b"400"
        server.wait(lambda: len(requests(server)) == 5)
        seen = {(line["method"], line["route"], line["status"]) for line in requests(server)}  # logged after the answer
        expected = {("POST", "/webhooks/github", 202), ("GET", "/api/deliveries", 200), ("GET", "other", 404), ("other", "other", 405)}
        assert seen == expected | {("other", "other", 400)}
        for line in requests(server):
            assert set(line) == {"time", "level", "logger", "message", "method", "route", "status", "bytes", "seconds", "remote"}
            assert (line["remote"], line["bytes"] > 10, 0 <= line["seconds"] < 60) == ("127.0.0.1", True, True)
        assert not [word for word in (token, "limit", "private") if word in server.log.read_text()]


def test_without_the_flag_there_is_no_access_log(serving: Serving) -> None:
    assert serving.request("GET", "/nowhere")[0] == 404
    assert serving.push() == 202
    serving.wait(lambda: any(line["message"] == "delivery" for line in serving.lines()))
    assert requests(serving) == []


@pytest.mark.parametrize(
    ("arguments", "environment", "bind", "web"),
    [
        ([], {}, BIND, {"ANNEAL_ACCESS_LOG": "", "ANNEAL_MAX_REQUESTS": str(MAX_REQUESTS)}),
        (["--access-log", "--max-requests", "0"], {}, BIND, {"ANNEAL_ACCESS_LOG": "1", "ANNEAL_MAX_REQUESTS": "0"}),
        (
            [],
            {"ANNEAL_BIND": "0.0.0.0:80", "ANNEAL_ACCESS_LOG": "true", "ANNEAL_MAX_REQUESTS": "9"},
            "0.0.0.0:80",
            {"ANNEAL_ACCESS_LOG": "1", "ANNEAL_MAX_REQUESTS": "9"},
        ),
        (
            ["--no-access-log", "--bind", "[::1]:1"],
            {"ANNEAL_ACCESS_LOG": "1", "ANNEAL_BIND": "0.0.0.0:80"},
            "[::1]:1",
            {"ANNEAL_ACCESS_LOG": "", "ANNEAL_MAX_REQUESTS": str(MAX_REQUESTS)},
        ),
    ],
)
def test_flags_win_over_the_environment_and_both_reach_the_web_process(
    arguments: list[str], environment: dict[str, str], bind: str, web: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    called: list[Any] = []

    def supervised(_config: Path, bind: str, _engine: Any, door: Callable[[Mapping[str, str]], int], *_: Any) -> int:
        called.append(bind)
        return door({"ANNEAL_ACCESS_LOG": "of the environment"})

    def became(_program: str, command: list[str], environ: Mapping[str, str]) -> None:
        called.extend((command[1:], {name: value for name, value in environ.items() if name != "PYTHONPATH"}))
        raise SystemExit

    monkeypatch.setattr(serving, "supervised", supervised)
    monkeypatch.setattr(os, "execve", became)
    for name in ("ANNEAL_BIND", "ANNEAL_ACCESS_LOG", "ANNEAL_MAX_REQUESTS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "anneal.yaml").write_text(CONFIG)
    done = CliRunner().invoke(serve, ["-c", str(tmp_path / "anneal.yaml"), *arguments], env=environment)
    assert done.exit_code == 0, done.output
    assert called == [bind, ["-P", "-m", "handler.web"], web]


def healthy(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "handler.web.healthcheck", *arguments]
    return subprocess.run(program, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_the_health_check_asks_where_the_server_listens(serving: Serving) -> None:
    assert healthy(f"127.0.0.1:{serving.port}").returncode == 0
    assert healthy(ANNEAL_BIND=f"0.0.0.0:{serving.port}").returncode == 0
    os.kill(serving.pid(), signal.SIGSTOP)
    done = healthy(f"127.0.0.1:{serving.port}")
    os.kill(serving.pid(), signal.SIGCONT)
    assert (done.returncode, "503" in done.stderr, "unreachable" in done.stderr) == (1, True, True)


@pytest.mark.parametrize("bind", ["127.0.0.1:1", "nonsense", "127.0.0.1:http", "[::1]:1"])
def test_the_health_check_fails_where_no_server_listens(bind: str) -> None:
    done = healthy(bind)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{bind}: ")
    assert len(done.stderr.splitlines()) == 1


def test_the_health_check_loads_nothing_of_the_door() -> None:
    heavy = {"flask", "gunicorn", "yaml", "handler.config", "handler.web.app"}
    program = f"import sys, handler.web.healthcheck; print(sorted({heavy!r} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True).stdout == "[]\n"
