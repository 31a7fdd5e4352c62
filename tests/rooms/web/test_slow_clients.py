"""Five hundred sockets that send next to nothing: a signed delivery is answered while they are open, and what is whole is never dropped."""

from __future__ import annotations

import contextlib
import resource
import select
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from handler.web import gunicorn_worker
from handler.web.connection_limits import Bounds
from tests.fakes.signed_webhooks import SECRETS, github_headers, github_push
from tests.patience import PATIENCE
from tests.rooms.web.conftest import CONFIG, Serving, served

SOCKETS = 500
OF_PEER = Bounds().of_peer
ONE, MANY = ["127.0.0.1"], [f"127.0.0.{number}" for number in range(2, 12)]
HEAD = b"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
KINDS = {
    "idle": b"",
    "head": HEAD + b"X-Slow: a",
    "body": HEAD + b"Content-Length: 1000\r\n\r\n{",
    "chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n1000\r\n{",
}


@pytest.fixture(scope="module", autouse=True)
def descriptors() -> Iterator[None]:
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now < 2 * SOCKETS:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(2 * SOCKETS, most), most))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (now, most))


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server that never finds a client late, so that no test depends on how fast it opens its sockets."""
    with served(tmp_path_factory.mktemp("door"), CONFIG, PATIENT="1") as server:
        yield server


def opened(stack: ExitStack, server: Serving, peers: Sequence[str], begun: bytes, count: int = SOCKETS) -> list[socket.socket]:
    """Open connections from these addresses in turn, each of which sends the beginning of a request."""
    found = []
    for number in range(count):
        address = peers[number % len(peers)], 0
        connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE, source_address=address))
        with contextlib.suppress(OSError):  # it gave way already
            connection.sendall(begun)
        found.append(connection)
    return found


def still_open(connections: Sequence[socket.socket]) -> list[socket.socket]:
    """Return those that the server has neither answered nor closed."""
    look = select.poll()
    for each in connections:
        look.register(each, select.POLLIN)
    ended = {descriptor for descriptor, _ in look.poll(0)}
    return [each for each in connections if each.fileno() not in ended]


def drip(connections: Sequence[socket.socket]) -> None:
    for each in connections:
        with contextlib.suppress(OSError):
            each.sendall(b"b")


@pytest.mark.parametrize("kind", KINDS)
def test_a_delivery_is_answered_while_slow_sockets_of_many_peers_are_open(patient: Serving, kind: str) -> None:
    with ExitStack() as stack:
        slow = opened(stack, patient, MANY, KINDS[kind])
        for _ in range(3):
            drip(slow if KINDS[kind] else ())
            assert patient.push() == 202
        assert patient.request("GET", "/readyz")[0] == 200
        assert len(still_open(slow)) == SOCKETS, "they were open all the time"


def test_a_request_that_lacks_only_its_last_byte_is_answered_when_that_comes(patient: Serving) -> None:
    body = github_push()
    lines = "".join(f"{name}: {value}\r\n" for name, value in github_headers(body).items())
    whole = f"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{lines}\r\n".encode() + body
    with ExitStack() as stack:
        opened(stack, patient, MANY, KINDS["body"], 200)
        late = opened(stack, patient, MANY, whole[:-1], 20)
        opened(stack, patient, MANY, KINDS["head"], 200)
        for each in late:
            each.sendall(whole[-1:])
        assert [each.recv(100).split()[1] for each in late] == [b"202"] * len(late)


def test_a_client_that_waits_for_100_continue_gets_it_and_its_answer(patient: Serving) -> None:
    body = github_push()
    lines = "".join(f"{name}: {value}\r\n" for name, value in github_headers(body).items())
    with patient.connect() as connection:
        connection.sendall(
            f"POST /webhooks/github HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n{lines}\r\n".encode()
        )
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(100).startswith(b"HTTP/1.1 202 ")


def test_an_answer_that_nobody_takes_holds_no_thread(patient: Serving) -> None:
    """More of them than there are threads: each has sent a whole request and never reads."""
    request = f"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SECRETS['SCRAPER']}\r\n\r\n".encode()
    with ExitStack() as stack:
        opened(stack, patient, MANY, request, 4 * gunicorn_worker.THREADS)
        assert patient.push() == 202


def test_connection_limits_count_clients_behind_a_trusted_proxy_by_their_address(tmp_path: Path) -> None:
    text = CONFIG.replace("webhooks:\n", "webhooks:\n  trustedProxies: [127.0.0.1, 127.0.1.0/24]\n")
    with served(tmp_path, text, PATIENT="1", ANNEAL_ACCESS_LOG="1") as server, ExitStack() as stack:
        idle = opened(stack, server, ["127.0.0.1"], b"", 2 * OF_PEER)
        forwarded = HEAD + b"X-Forwarded-For: 203.0.113.9, 192.0.2.1, 127.0.1.7\r\nContent-Length: 1000\r\n\r\n{"
        slow = opened(stack, server, ["127.0.0.1"], forwarded, OF_PEER + 10)
        direct = opened(stack, server, ["127.0.0.9"], forwarded, 10)
        assert server.push() == 202
        server.wait(lambda: len(still_open(slow)) == OF_PEER)
        assert len(still_open(idle)) == 2 * OF_PEER
        assert len(still_open(direct)) == 10
        server.wait(lambda: len([line for line in server.lines() if line["logger"] == "anneal.access"]) == 11)
        told = {(line["remote"], line["status"]) for line in server.lines() if line["logger"] == "anneal.access"}
        assert told == {("192.0.2.1", 503), ("127.0.0.1", 202)}


@pytest.mark.parametrize(
    "path",
    [
        "//replay/shop-prod",
        "///replay/shop-prod",
        "/./replay/shop-prod",
        "/replay//shop-prod",
        "/replay/./shop-prod",
        "/replay/../replay/shop-prod",
        "/replay/shop-prod/",
        "/replay%2Fshop-prod",
        "/%2Freplay/shop-prod",
        "/%72eplay/shop-prod",
        "/replay/shop%2Dprod",
        "/%2e/replay/shop-prod",
        "http://x//replay/shop-prod",
        "http://x/replay%2fshop-prod",
    ],
)
def test_no_other_spelling_of_a_path_leads_anywhere(patient: Serving, path: str) -> None:
    token = f"Authorization: Bearer {SECRETS['OPS']}\r\n"
    for spelt in (path, path.replace("replay/shop-prod", "webhooks/github").replace("replay", "webhooks")):
        with patient.connect() as connection:
            connection.sendall(f"POST {spelt} HTTP/1.1\r\nHost: x\r\n{token}\r\n".encode())
            assert connection.recv(100).split()[1] == b"404", spelt
    assert not [run for run in patient.runs() if run.get("trigger") == "replay"]
