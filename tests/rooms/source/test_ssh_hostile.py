"""URLs that mean more than they say, and hosts that never become one: each ends, within its limit, before anything of ours is sent."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from handler.config.git_settings import Repository, RepositoryAuth, SecretRef, SshAuth
from handler.config.load import load
from handler.model.errors import ConfigInvalid, GitUnavailable, SourceRefused
from handler.source.git_host import GitHost
from handler.source.ssh.ssh_upload_pack import address_of
from infra.sshhost import SshHost
from tests.rooms.source.open_repository import PATIENT, following

HOSTILE_URLS = (
    "ssh://-oProxyCommand=touch%20x/shop.git",
    "ssh://-oProxyCommand=x/shop.git",
    "ssh://git@-oProxyCommand=x/shop.git",
    "ssh://git@/shop.git",
    "ssh://git@host:0/shop.git",
    "ssh://git@host:99999/shop.git",
    "ssh://git:secret@host/shop.git",
    "ssh://host/-shop.git",
    "ssh://host/sh'op.git",
    "ssh://host/sh%27op.git",
    "ssh://host/sh%0Aop.git",
    "ssh://host/sh%00op.git",
    "ssh://host/%2Dshop.git",
    "ssh://host/$(id)",
    "ssh://host/`id`",
    "ssh://host/a%5Cb",
    "ssh://host/../shop.git",
    "ssh://host/a/%2E%2E/shop.git",
    "ssh://host/shop.git?x=1",
    "ssh://host/shop.git#x",
    "ssh://host/",
    "ssh://host",
    "ssh://ho st/shop.git",
    "ssh://host/sh\u202eop.git",
    "-oProxyCommand=x:shop.git",
    "git@host:shop.git",
    "git+ssh://host/shop.git",
    "ext::sh -c id",
)


@pytest.mark.parametrize("url", [*HOSTILE_URLS, "ssh://-l@host/shop.git"])
def test_an_ssh_url_with_option_injection_is_refused(url: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        address_of(url)
    assert "secret" not in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("url", "user", "host", "port", "path"),
    [
        ("ssh://git.example.com/acme/shop.git", "git", "git.example.com", 22, "/acme/shop.git"),
        ("ssh://ann@Git.example.com:2222/acme/shop", "ann", "git.example.com", 2222, "/acme/shop"),
        ("ssh://git@[2001:db8::1]:2222/acme/shop", "git", "2001:db8::1", 2222, "/acme/shop"),
        ("ssh://host/~ann/shop.git", "git", "host", 22, "~ann/shop.git"),
    ],
)
def test_a_url_names_user_host_port_and_path(url: str, user: str, host: str, port: int, path: str) -> None:
    found = address_of(url)
    assert (found.user, found.host, found.port, found.path) == (user, host, port, path)


@pytest.mark.parametrize(
    "url", ["ssh://-oProxyCommand=x/shop.git", "ssh://git@-oProxyCommand=x/shop.git", "ssh://git:secret@host/shop.git"]
)
def test_the_configuration_refuses_what_looks_like_an_option(tmp_path: Path, url: str) -> None:
    (tmp_path / "key").write_text("x")
    file = tmp_path / "anneal.yaml"
    file.write_text(
        "apiVersion: anneal.dev/v1alpha1\nkind: Config\ntargets:\n- name: shop\n  namespaces: [shop]\n  repository:\n"
        f"    url: {url}\n    auth: {{ssh: {{privateKey: {{file: {tmp_path}/key}}, knownHosts: {tmp_path}/key}}}}\n"
    )
    with pytest.raises(ConfigInvalid, match="url") as caught:
        load(file)
    assert "secret" not in str(caught.value)


@contextmanager
def speaking(say: Callable[[socket.socket], None]) -> Iterator[int]:
    """Listen on a free port and run `say` with each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stop = threading.Event()

        def serve() -> None:
            while not stop.is_set():
                with suppress(OSError):
                    connection, _ = listener.accept()
                    with connection:
                        say(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            stop.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def silent(connection: socket.socket) -> None:
    while connection.recv(1024):
        pass


def endless_greeting(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"x" * 65536)


def endless_lines(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"welcome\r\n" * 1000)


def greeting_only(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-host\r\n")
    silent(connection)


def huge_packet(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-host\r\n" + (0xFFFFFFF4).to_bytes(4, "big"))
    endless_greeting(connection)


def noise(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-host\r\n" + os.urandom(4096))


def web(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.fixture
def key() -> Iterator[Path]:
    with SshHost() as host:
        yield host.new_key("deployer")


@pytest.mark.parametrize(
    ("say", "error", "words"),
    [
        (silent, GitUnavailable, "in time|longer"),
        (greeting_only, GitUnavailable, "in time|longer"),
        (noise, GitUnavailable, "broke off"),
        (web, GitUnavailable, "doesn't speak SSH"),
        (endless_lines, GitUnavailable, "doesn't speak SSH"),
        (endless_greeting, SourceRefused, "sends more than 1048576 bytes before we signed in"),
        (huge_packet, SourceRefused, "sends more than 1048576 bytes before we signed in"),
    ],
)
def test_an_ssh_banner_without_end_ends_within_the_size_and_time_limits(
    say: Callable[[socket.socket], None], error: type[Exception], words: str, key: Path, tmp_path: Path
) -> None:
    known = tmp_path / "known_hosts"
    known.touch()
    auth = RepositoryAuth(ssh=SshAuth(SecretRef(file=str(key)), str(known)))
    with speaking(say) as port:
        repository = Repository(f"ssh://git@127.0.0.1:{port}/shop.git", auth=auth)
        limits = replace(PATIENT, total=3) if say in (silent, greeting_only) else PATIENT
        with closing(GitHost(repository, limits=limits)) as git, pytest.raises(error, match=words):
            git.head(following("refs/heads/main"))
    assert [thread for thread in threading.enumerate() if type(thread).__module__.startswith("paramiko")] == []
