"""What isn't reached is reported in our own words, in every room that asks over the network; no vendor's text leaves any of them."""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3

from handler.aws.clients import translated
from handler.cli import server_client
from handler.cli.server_client import ServerClient
from handler.cluster.api import Api
from handler.cluster.connect import connect
from handler.config.git_settings import Repository, Revision
from handler.config.secrets import Secrets
from handler.config.settings import Cluster, PrometheusSettings
from handler.model.errors import AnnealError, ClusterUnavailable
from handler.prometheus import client
from handler.prometheus.client import PrometheusClient
from handler.queues.sqs_client import refusal
from handler.source.git_host import GitHost
from handler.source.host_limits import HostLimits
from tests.patience import PATIENCE
from tests.rooms.source.certificates import Authority

SOON = 0.4
"""Seconds after which what never answers is given up here."""
VENDORS = re.compile(r"HTTPS?Connection|Pool\b|urllib3|botocore|object at 0x|Max retries|Errno|Traceback|_ssl\.c")


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Let each connection be served; yield the port."""
    kept: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                found, _ = listener.accept()
            except OSError:
                return
            kept.append(found)
            serve(found)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)
    for each in kept:
        each.close()


def hangs(_connection: socket.socket) -> None:
    """Answer nothing."""


def resets(connection: socket.socket) -> None:
    """Read what is asked, and reset the connection."""
    connection.recv(65536)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def breaks_off(connection: socket.socket) -> None:
    """Answer half of what was promised."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{")
    connection.close()


def no_tls(connection: socket.socket) -> None:
    """Speak plain HTTP where TLS is expected."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    connection.close()


@contextmanager
def nobody() -> Iterator[int]:
    """Yield a port at which no process listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


WAYS: dict[str, tuple[str, Any]] = {
    "refused": ("http://127.0.0.1", nobody),
    "no such name": ("http://no-such-host.invalid", nobody),
    "hangs": ("http://127.0.0.1", lambda: listening(hangs)),
    "resets": ("http://127.0.0.1", lambda: listening(resets)),
    "breaks off": ("http://127.0.0.1", lambda: listening(breaks_off)),
    "TLS hangs": ("https://127.0.0.1", lambda: listening(hangs)),
    "no TLS": ("https://127.0.0.1", lambda: listening(no_tls)),
    "TLS resets": ("https://127.0.0.1", lambda: listening(resets)),
}


def ask_cluster(url: str, directory: Path, seconds: float = PATIENCE) -> None:
    file = directory / "kubeconfig"
    users = "users: [{name: u, user: {token: t}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n"
    file.write_text(f"apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: '{url}'}}}}]\n{users}")
    Api(connect(Cluster(), kubeconfig=str(file), environ={}), deadline=seconds, silence=seconds).get("/version")


def ask_git(url: str, _directory: Path, seconds: float = PATIENCE) -> None:
    GitHost(Repository(url=f"{url}/shop"), limits=HostLimits(connect=seconds, read=seconds, total=PATIENCE)).head(Revision())


def ask_prometheus(url: str, _directory: Path, _seconds: float = PATIENCE) -> None:
    PrometheusClient([PrometheusSettings(url)], Secrets()).query("", "1")


def ask_server(url: str, _directory: Path, _seconds: float = PATIENCE) -> None:
    ServerClient(url, "t" * 40, insecure_http=True).get("api", "targets")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ask", [ask_cluster, ask_git, ask_prometheus, ask_server])
def test_a_failed_connection_is_told_in_our_own_words(
    way: str, ask: Callable[[str, Path, float], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (client, server_client):
        monkeypatch.setattr(module, "TIMEOUT", urllib3.Timeout(connect=SOON, read=SOON))
    beginning, opened = WAYS[way]
    with opened() as port, pytest.raises(AnnealError) as raised:
        ask(f"{beginning}:{port}", tmp_path, SOON)
    told = str(raised.value)
    assert not VENDORS.search(told), told
    assert any(word in told for word in ("host", "certificate", "connection")), told


@pytest.mark.parametrize("ask", [ask_cluster, ask_git, ask_prometheus, ask_server])
def test_a_name_that_no_host_can_have_is_not_blamed_on_a_host(ask: Callable[[str, Path], None], tmp_path: Path) -> None:
    with pytest.raises(AnnealError, match=r"isn't a URL|no host has such a name or port") as raised:
        ask("http://a..b", tmp_path)
    assert raised.value.who == "operator" or ask in (ask_prometheus, ask_server)


@pytest.mark.parametrize("ask", [ask_cluster, ask_git, ask_prometheus, ask_server])
def test_a_certificate_that_isnt_trusted_says_why_in_openssls_reason_alone(ask: Callable[[str, Path], None], tmp_path: Path) -> None:
    import ssl  # noqa: PLC0415 - nothing else here needs it

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Authority(tmp_path, "strange").certificate("host"))

    def shakes_hands(connection: socket.socket) -> None:
        try:
            context.wrap_socket(connection, server_side=True).close()
        except OSError:
            connection.close()

    with listening(shakes_hands) as port, pytest.raises(AnnealError) as raised:
        ask(f"https://127.0.0.1:{port}", tmp_path)
    told = str(raised.value)
    assert not VENDORS.search(told), told
    assert "certificate" in told


def test_what_amazons_client_says_of_a_connection_is_repeated_nowhere() -> None:
    from botocore.exceptions import HTTPClientError  # noqa: PLC0415 - few tests load it

    pool = urllib3.HTTPSConnectionPool("sqs.eu-west-1.amazonaws.com", 443)
    vendors = HTTPClientError(error=urllib3.exceptions.ReadTimeoutError(pool, "/", "Read timed out."))
    asked = translated(vendors, "EKS cluster prod", {}, ClusterUnavailable)
    queue = refusal("https://sqs.eu-west-1.amazonaws.com/1/anneal.fifo", "receive_message", vendors)
    for told in (str(asked), "; ".join([str(queue), *getattr(queue, "__notes__", ())])):
        assert not VENDORS.search(told), told
