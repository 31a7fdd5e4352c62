"""`anneal replay` against a server on loopback: what is sent, what is printed, what it exits with, where the token never goes."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from handler.cli import replay as replaying
from handler.cli.server_client import ServerClient
from handler.model.errors import ConfigInvalid
from tests.unit.cli.scripted import ENDED, HELD, QUEUED, RUN, TAKEN, TOKEN, Answer, Server, refusal, replay
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow


def test_a_run_is_asked_for_and_followed_to_its_end(server: Server) -> None:
    result = replay(server)
    assert result.exit_code == 0, result.output
    assert result.output == f"shop: run {RUN}\n  ConfigMap/shop/a create\nshop: applied {'a' * 12} in 0.5 s: 1 created\n"
    assert [(method, path) for method, path, _, _ in server.seen] == [("POST", "/replay/shop")] + [("GET", f"/api/runs/{RUN}")] * 2
    assert {headers["Authorization"] for _, _, headers, _ in server.seen} == {f"Bearer {TOKEN}"}
    assert server.seen[0][3] == {}


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (("--commit", "b" * 40), {"commit": "b" * 40}),
        (("--dry-run", "--force"), {"dryRun": True, "force": True}),
        (("--approve", "h1"), {"approve": "h1"}),
        (("--unpin",), {"unpin": True}),
        (("--rollback",), {"rollback": True}),
    ],
)
def test_flags_of_replay_become_its_request_body(server: Server, arguments: tuple[str, ...], asked: dict[str, Any]) -> None:
    assert replay(server, *arguments, "--no-wait").exit_code == 0
    assert [body for *_, body in server.seen] == [asked]


def test_without_waiting_the_run_is_named_and_nothing_more_asked(server: Server) -> None:
    assert replay(server, "--no-wait").output == f"shop: run {RUN}\n"
    assert json.loads(replay(server, "--no-wait", "--json").output) == TAKEN
    assert {method for method, *_ in server.seen} == {"POST"}


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        *((good, 0) for good in ("applied", "unchanged", "planned", "drifted")),
        ("held", 3),
        *((bad, 1) for bad in ("failed", "pruning")),
        *((other, 4) for other in ("busy", "superseded", "suspended")),
    ],
)
def test_replay_exits_as_apply_does(server: Server, outcome: str, code: int) -> None:
    server.answers[f"/api/runs/{RUN}"] = [(200, ENDED | {"outcome": outcome})]
    assert replay(server).exit_code == code
    result = replay(server, "--json")
    assert (result.exit_code, json.loads(result.output)["outcome"]) == (code, outcome)


def test_a_hold_names_the_command_that_approves_it_here(server: Server) -> None:
    server.answers[f"/api/runs/{RUN}"] = [(200, ENDED | {"outcome": "held", "held": HELD})]
    assert "allow exactly that: anneal replay shop --approve h1\n" in replay(server).output


def test_a_failure_shows_its_problems(server: Server) -> None:
    problem = {"subject": "Deployment/shop/api", "message": "\x1b[31mis wrong", "place": "deploy/api.yaml:3", "fix": "write it right"}
    server.answers[f"/api/runs/{RUN}"] = [
        (200, ENDED | {"outcome": "failed", "problems": [problem], "code": "plan-refused", "who": "author"})
    ]
    output = replay(server).output
    assert "deploy/api.yaml:3: Deployment/shop/api: \\x1b[31mis wrong\n    write it right" in output


@pytest.mark.parametrize(
    ("answer", "seen", "code"),
    [
        ((401, refusal("bad-signature", "token: missing")), "doesn't accept the token", 1),
        ((403, refusal("forbidden", "token ci: may not touch this target")), "may not touch this target", 1),
        ((404, refusal("not-found", "target shop: isn't configured")), "isn't configured", 1),
        ((400, refusal("bad-payload", "payload: commit is not a commit id")), "is not a commit id", 1),
        ((503, refusal("worker-unavailable", "worker: doesn't answer")), "503: worker: doesn't answer", 1),
        ((429, refusal("too-many-requests", "100 requests wait")), "429: 100 requests wait", 1),
        ((502, b"<html>bad gateway"), "answers 502, and not as Anneal does", 1),
        ((200, b"[]"), "answers 200, and not as Anneal does", 1),
        ((307, b"", {"Location": "https://elsewhere.example.com/"}), "307: it redirects elsewhere, where the token doesn't belong", 1),
    ],
)
def test_a_refusal_is_explained_and_not_followed_anywhere(server: Server, answer: Answer, seen: str, code: int) -> None:
    server.answers["/replay/shop"] = [answer]
    result = replay(server)
    assert result.exit_code == code
    assert seen in result.output
    assert len(server.seen) == 1


def test_a_server_that_isnt_there_is_said_to_be_away(server: Server) -> None:
    result = replay(server, ANNEAL_SERVER="http://127.0.0.1:9")
    assert result.exit_code == 1
    assert "can't be reached" in result.output


def test_a_server_that_restarts_meanwhile_is_waited_for(server: Server) -> None:
    away = (503, refusal("worker-unavailable", "worker: doesn't answer"))
    unknown = (404, refusal("not-found", "run: is neither waiting nor remembered"))
    server.answers[f"/api/runs/{RUN}"] = [away, unknown, (200, QUEUED), (200, ENDED)]
    assert replay(server).exit_code == 0


UNKNOWN = QUEUED | {"status": "unknown", "trigger": "", "actor": "", "source": "record"}


def test_a_run_that_waits_in_a_queue_nobody_sees_into_is_waited_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "UNKNOWN_SECONDS", 0.0)  # which is how long an answer of 404 would be believed in
    server.answers[f"/api/runs/{RUN}"] = [(200, UNKNOWN), (200, UNKNOWN), (200, ENDED)]
    assert replay(server).exit_code == 0


def test_replay_reports_a_queued_run_at_its_timeout(server: Server) -> None:
    server.answers[f"/api/runs/{RUN}"] = [(200, UNKNOWN)]
    result = replay(server, "--timeout", "1s")
    assert result.exit_code == 1
    assert f"run {RUN}: isn't recorded after 1 s: it waits in the queue or runs, and its end will be" in result.output


def test_a_run_that_stays_unknown_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "UNKNOWN_SECONDS", 0.0)
    server.answers[f"/api/runs/{RUN}"] = [(404, refusal("not-found", "run: is neither waiting nor remembered"))]
    result = replay(server)
    assert (result.exit_code, "neither waiting" in result.output) == (1, True)


def test_replay_ends_at_its_timeout(server: Server) -> None:
    server.answers[f"/api/runs/{RUN}"] = [(200, QUEUED)]
    result = replay(server, "--timeout", "0s")
    assert result.exit_code == 1
    assert "hasn't ended within 0 s; it goes on" in result.output


def test_a_token_that_may_not_read_asks_and_doesnt_wait_unless_that_is_wanted(server: Server) -> None:
    server.answers[f"/api/runs/{RUN}"] = [(403, refusal("forbidden", "token ci: may not read"))]
    result = replay(server)
    assert (result.exit_code, "not waited for" in result.output) == (0, True)
    assert replay(server, "--wait").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "environ", "seen"),
    [
        ((), {"ANNEAL_SERVER": ""}, "which server?"),
        ((), {"ANNEAL_TOKEN": " "}, "set ANNEAL_TOKEN"),
        (("--timeout", "soon"), {}, "expected a duration"),
        (("--token", "x"), {}, "No such option"),
    ],
)
def test_replay_names_a_missing_url_or_token(server: Server, arguments: tuple[str, ...], environ: dict[str, str], seen: str) -> None:
    result = replay(server, *arguments, **environ)
    assert (result.exit_code, seen in result.output) == (64, True)
    assert server.seen == []


@each_row(
    "url",
    [
        "http://anneal.example.com",
        "http://10.0.0.1:8080",
        "http://localhost.example.com",
        "ftp://127.0.0.1",
        "https://user:pass@anneal.example.com",
        "https://anneal.example.com?x=1",
        "https://",
        "anneal.example.com",
        "https://[::1",
        "https://host:99999",
    ],
)
def test_a_token_isnt_sent_where_it_doesnt_belong(url: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        ServerClient(url, TOKEN)
    assert TOKEN not in str(refused.value)


@each_row("url", ["http://127.0.0.1:8080", "http://localhost", "http://[::1]:8080/x/", "https://anneal.example.com/anneal"])
def test_replay_sends_its_token_to_localhost_and_over_https(url: str) -> None:
    assert ServerClient(url, TOKEN).url == url.rstrip("/")
    assert ServerClient("http://anneal.example.com", TOKEN, insecure_http=True)


@each_row("token", ["a\nb", "é" * 20, "a\x00b"])
def test_a_token_that_is_no_header_is_refused_without_showing_it(token: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        ServerClient("https://anneal.example.com", token)
    assert token not in str(refused.value)


def test_a_ca_file_that_isnt_one_is_named(server: Server, tmp_path: Path) -> None:
    empty = tmp_path / "ca.pem"
    empty.touch()
    for file, seen in (("/nonexistent/ca.pem", "found none at /nonexistent/ca.pem"), (str(empty), "holds no certificate")):
        result = replay(server, "--ca-file", file, ANNEAL_SERVER="https://127.0.0.1:9")
        assert (result.exit_code, seen in result.output) == (1, True)


def test_only_an_authority_that_was_named_is_trusted(server: Server, tmp_path: Path) -> None:
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", *subject]
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), server.handler) as running:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        running.socket = context.wrap_socket(running.socket, server_side=True)
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        url = f"https://localhost:{running.server_port}"
        refused = replay(server, ANNEAL_SERVER=url)
        trusted = replay(server, "--ca-file", str(certificate), ANNEAL_SERVER=url)
        running.shutdown()
        thread.join()
    assert (refused.exit_code, "its certificate isn't trusted" in refused.output) == (1, True)
    assert trusted.exit_code == 0, trusted.output
