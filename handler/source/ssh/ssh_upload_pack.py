"""SSH to one git host: `git-upload-pack` on a channel, in one connection an operation; over SSH the host speaks first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO
from urllib.parse import SplitResult, unquote, urlsplit

import paramiko
from dulwich.errors import GitProtocolError
from dulwich.protocol import Protocol

from handler.config.git_settings import Repository
from handler.model.errors import AccessDenied, AnnealError, ConfigInvalid, GitUnavailable, SourceRefused
from handler.source.bounded_connections import Deadline
from handler.source.host_limits import HostLimits
from handler.source.signin import ReadSecret
from handler.source.ssh.known_hosts import pinned
from handler.source.ssh.private_key import load_key
from handler.source.ssh.ssh_connection import Address, SshConnection, connected, translated
from handler.source.upload_pack import by_hand, counted, shown_url

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*|[0-9A-Fa-f:.]+")
_PATH = re.compile(r"/(?!-)[^\x00-\x1f\x7f'\"\\!`$]+")
_DENIED = (
    b"not found",
    b"could not be found",
    b"not appear to be a git repository",
    b"denied",
    b"no access",
    b"access rights",
    b"not exist",
)
_SAID = 2000


class SshUploadPack:
    """One repository on a host reached by SSH (`upload_pack.UploadPack`)."""

    def __init__(self, repository: Repository, read: ReadSecret, limits: HostLimits, again: ReadSecret | None = None) -> None:
        """Prepare; nothing is asked yet. `again` re-reads a refused key. Raises ConfigInvalid: an unusable URL, or no key."""
        self._address = address_of(repository.url)
        self.subject, self.by_hand = f"repository {shown_url(repository.url)}", by_hand(repository.url)
        if repository.auth.ssh is None:
            raise ConfigInvalid.of(shown_url(repository.url), "an ssh:// URL needs a key", fix=_KEY)
        self._auth = repository.auth.ssh
        self._read = read
        self._again = again or read
        self._limits = limits
        self.asks = f"git-upload-pack '{self._address.path}'"

    @contextmanager
    def advertisement(self, deadline: Deadline, most: int) -> Iterator[BinaryIO]:
        """Open a channel with the host's advertisement; the operation's next command continues there."""
        session = deadline.keep(self._session)
        with session.exchange() as channel:
            yield channel.stream(most)
        session.waiting = channel

    @contextmanager
    def command(self, deadline: Deadline, request: bytes, most: int) -> Iterator[BinaryIO]:
        """Send one request on the waiting channel, or on a new one past its advertisement."""
        session = deadline.keep(self._session)
        with session.exchange() as channel:
            if session.waiting is not channel:
                for _ in Protocol(channel.stream(self._limits.refs).read, lambda _: None).read_pkt_seq():
                    pass
            session.waiting = None
            channel.send(request)
            yield channel.stream(most)
        channel.close()

    def close(self) -> None:
        """Do nothing: connections end with their operations."""

    def _session(self, deadline: Deadline) -> _Session:
        """Connect by the present known_hosts file and key."""
        auth, address = self._auth, self._address
        pins = pinned(auth.known_hosts, address.host, address.port)

        def signed_in(texts: tuple[str, str | None]) -> SshConnection:
            return connected(address, pins, load_key(*texts, str(auth.private_key)), self.subject, deadline, self._limits)

        texts = self._texts(self._read)
        try:
            connection = signed_in(texts)
        except AccessDenied:
            newer = self._texts(self._again)
            if newer == texts:
                raise
            connection = signed_in(newer)
        return _Session(connection, self, deadline, self._limits)

    def _texts(self, read: ReadSecret) -> tuple[str, str | None]:
        auth = self._auth
        passphrase = read(auth.passphrase).reveal() if auth.passphrase else None
        return read(auth.private_key).reveal(), passphrase


class _Session:
    """The connection of one operation. `waiting`: a channel on which the host has spoken and we haven't."""

    def __init__(self, connection: SshConnection, repository: SshUploadPack, deadline: Deadline, limits: HostLimits) -> None:
        self._connection = connection
        self._repository = repository
        self._subject = repository.subject
        self._deadline = deadline
        self._limits = limits
        self.waiting: _Channel | None = None

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def exchange(self) -> Iterator[_Channel]:
        """Yield the waiting channel or a new one, and translate its errors."""
        most = self._limits.pack + self._limits.refs
        channel = self.waiting
        with translated(self._subject, self._deadline):
            channel = channel or _Channel(self._connection.open(self._repository.asks, most, self._limits), self._repository)
            try:
                yield channel
            except (GitProtocolError, EOFError, OSError, ValueError, IndexError, paramiko.SSHException) as error:
                if self._deadline.expired:
                    raise TimeoutError from None
                if self._connection.passed:
                    raise SourceRefused.of(self._subject, f"sends more than {most} bytes") from None
                raise channel.refusal(error) from None


class _Channel:
    """A running `git-upload-pack`; its standard error is kept up to a bound, to judge an error by, and never quoted."""

    def __init__(self, channel: paramiko.Channel, repository: SshUploadPack) -> None:
        self._channel = channel
        self._subject, self._by_hand = repository.subject, repository.by_hand
        self._said = b""
        self._late = False  # dulwich takes a time-out for an end

    def close(self) -> None:
        self._channel.close()

    def send(self, request: bytes) -> None:
        self._channel.sendall(request)

    def stream(self, most: int) -> BinaryIO:
        return counted(self._read1, most, self._subject)

    def refusal(self, error: Exception) -> AnnealError:
        """Return the error for a stream that ended early or makes no sense."""
        if self._late or isinstance(error, TimeoutError):
            return GitUnavailable.of(self._subject, "its host doesn't answer in time")
        self._channel.status_event.wait(1.0)  # set by the exit status, or when the connection breaks
        self._listen()
        said, code = self._said.lower(), self._channel.exit_status
        if any(words in said for words in _DENIED):
            fix = f"check repository.url, and that the key may read it; {self._by_hand}"
            return AccessDenied.of(self._subject, "not found, or no access", fix=fix)
        seen = f"the host's git-upload-pack ended with exit code {code}" if code > 0 else "the host broke off its answer"
        return GitUnavailable.of(self._subject, seen, fix=self._by_hand)

    def _read1(self, size: int) -> bytes:
        try:
            data = self._channel.recv(size)
        except TimeoutError:
            self._late = True
            raise
        self._listen()
        return data

    def _listen(self) -> None:
        """Drain standard error, so that the host never blocks on it."""
        while self._channel.recv_stderr_ready():
            heard = self._channel.recv_stderr(65536)
            if not heard:
                return
            self._said = (self._said + heard)[:_SAID]


_KEY = "add to the repository: auth: {ssh: {privateKey: {file: /run/secrets/key}, knownHosts: /etc/anneal/known_hosts}}"


def address_of(url: str) -> Address:
    """Read an ssh:// URL (git-clone(1), GIT URLS); refuse signs that a shell or option parser reads. Raises ConfigInvalid."""
    try:
        parts = urlsplit(url)
        port = 22 if parts.port is None else parts.port
    except ValueError:
        raise _refused(url, "is not an ssh:// URL") from None
    host, user, path = parts.hostname or "", parts.username or "git", unquote(parts.path)
    if parts.scheme != "ssh" or not _HOST.fullmatch(host) or not port:
        raise _refused(url, "is not an ssh:// URL")
    if parts.password is not None or parts.query or parts.fragment or not _USER.fullmatch(user):
        raise _refused(url, "has a password, a query, a fragment or an unusual user in it")
    if not _PATH.fullmatch(path) or not _plain(parts, path):
        raise _refused(url, "has a path that begins with '-' or holds a quote, a backslash or another sign that shells read")
    return Address(user, host, port, path[1:] if path.startswith("/~") else path)


def _plain(parts: SplitResult, path: str) -> bool:
    return path.isprintable() and not any(part in (".", "..") for part in path.split("/")) and "%00" not in parts.path


def _refused(url: str, what: str) -> ConfigInvalid:
    return ConfigInvalid.of(shown_url(url), what, fix="set repository.url to ssh://git@<host>/<path>")
