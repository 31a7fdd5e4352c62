"""One SSH connection to a pinned host, signed in with one key: no agent, no password, no ~/.ssh.

Bytes are metered below paramiko, which would take a line or a packet of any length. Its texts never leave this module: a host may have
chosen them.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import paramiko
from paramiko.ssh_exception import AuthenticationException, IncompatiblePeer, SSHException

from handler.model.advice import advice
from handler.model.errors import AccessDenied, AnnealError, ConfigInvalid, GitUnavailable, SourceRefused
from handler.source.bounded_connections import Deadline
from handler.source.host_limits import MIB, HostLimits
from handler.source.ssh.known_hosts import Pinned, fingerprint, host_name

logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)  # what it has to say is in our errors, without a host's own words

# Of what paramiko 5 speaks (no SHA-1 key exchange, no ssh-rsa, no DSA any more): no CBC, no 3DES, no MD5, no SHA-1.
CIPHERS = ("aes256-gcm@openssh.com", "aes128-gcm@openssh.com", "aes256-ctr", "aes192-ctr", "aes128-ctr")
DIGESTS = ("hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com", "hmac-sha2-256", "hmac-sha2-512")
HOST_KEYS = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "rsa-sha2-512", "rsa-sha2-256")
_SIGNED_BY = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
_BEFORE_SIGN_IN = MIB
_ENDING = 5.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where a repository is, and as whom."""

    user: str
    host: str
    port: int
    path: str


class _Metered(socket.socket):
    """A socket that ends after `left` more bytes; `passed`: the host sent more."""

    left = _BEFORE_SIGN_IN
    passed = False

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        data = super().recv(min(size, 65536), flags)
        self.left -= len(data)
        if self.left < 0:
            self.passed = True
            return b""
        return data


class SshConnection:
    """A connection that is signed in. Make it by `connected`; it belongs to one operation."""

    def __init__(self, used: _Metered, transport: paramiko.Transport) -> None:
        self._socket = used
        self._transport = transport

    def open(self, command: str, most: int, limits: HostLimits) -> paramiko.Channel:
        """Run a command; from now on the host may send `most` bytes and what wraps them."""
        self._socket.left = most + most // 8 + 4 * MIB
        channel = self._transport.open_session(timeout=limits.read)
        channel.settimeout(limits.read)
        channel.set_environment_variable("GIT_PROTOCOL", "version=2")  # a host that doesn't take it speaks version 0
        channel.exec_command(command)
        return channel

    @property
    def passed(self) -> bool:
        """Say whether the host sent more than was agreed."""
        return self._socket.passed

    def close(self) -> None:
        """Close it and wait for its thread."""
        _end(self._socket, self._transport)


def connected(address: Address, pins: Pinned, key: paramiko.PKey, subject: str, deadline: Deadline, limits: HostLimits) -> SshConnection:
    """Connect, compare the host's key, sign in.

    Raises ConfigInvalid: the host's key isn't a pinned one, or it speaks nothing safe; AccessDenied: it refuses our key;
    GitUnavailable: it doesn't answer, or breaks off.
    """
    with translated(subject, deadline):
        plain = socket.create_connection((address.host, address.port), timeout=deadline.left(limits.connect))
        used = _Metered(plain.family, plain.type, plain.proto, fileno=plain.detach())
        deadline.watch(used)
        transport = paramiko.Transport(used)
        try:
            _greet(transport, pins, address, deadline, limits)
            _sign_in(transport, address, key)
        except BaseException as error:
            _end(used, transport)
            if used.passed and isinstance(error, Exception):
                raise SourceRefused.of(subject, f"sends more than {_BEFORE_SIGN_IN} bytes before we signed in") from None
            raise
    return SshConnection(used, transport)


def _greet(transport: paramiko.Transport, pins: Pinned, address: Address, deadline: Deadline, limits: HostLimits) -> None:
    options = transport.get_security_options()
    options.ciphers = CIPHERS
    options.digests = DIGESTS
    options.key_types = _algorithms(pins) or HOST_KEYS
    step = deadline.left(limits.read)
    transport.banner_timeout = transport.handshake_timeout = transport.auth_timeout = step
    since = time.monotonic()
    try:
        transport.start_client(timeout=step)
        seen = transport.get_remote_server_key().asbytes()
    except IncompatiblePeer as error:
        if "host key" not in str(error):
            raise
        raise _stranger(pins, address, f"offers no host key of the pinned types ({', '.join(sorted(pins.kinds))})") from None
    except (SSHException, EOFError):  # also when time is over
        if time.monotonic() - since >= step:
            raise TimeoutError from None
        raise
    if seen in pins.revoked:
        raise _stranger(pins, address, f"shows the host key {fingerprint(seen)}, which is marked @revoked")
    if not pins.trusts(seen):
        shown = ", ".join(sorted(fingerprint(key.blob) for key in pins.trusted))
        known = f"pinned for it is {shown}" if shown else "none is pinned for it"
        raise _stranger(pins, address, f"shows the host key {fingerprint(seen)}; {known}")


def _algorithms(pins: Pinned) -> tuple[str, ...]:
    wanted = {name for kind in pins.kinds for name in _SIGNED_BY.get(kind, (kind,))}
    return tuple(name for name in HOST_KEYS if name in wanted)


def _stranger(pins: Pinned, address: Address, what: str) -> ConfigInvalid:
    where = [*([] if address.port == 22 else ["-p", address.port]), address.host]
    fix = advice("compare it with what the host's owner publishes; `ssh-keyscan{words}` prints lines for {text}", where, pins.file)
    return ConfigInvalid.of(host_name(address.host, address.port), what, place=pins.file, fix=fix)


def _sign_in(transport: paramiko.Transport, address: Address, key: paramiko.PKey) -> None:
    try:
        more = transport.auth_publickey(address.user, key)
    except AuthenticationException as error:
        if "timeout" in str(error):
            raise TimeoutError from None
        if "transport shut down" in str(error):
            raise EOFError from None
        more = [""]
    if more:
        raise AccessDenied.of(
            f"user {address.user} on {host_name(address.host, address.port)}",
            f"the host doesn't take the key {key.fingerprint}",
            fix="add its public half to the host (`ssh-keygen -y -f` prints it), or correct auth.ssh.privateKey or the URL's user",
        )


def _end(used: socket.socket, transport: paramiko.Transport) -> None:
    """Close, and wait for paramiko's thread: it ends when its socket does."""
    transport.close()
    with suppress(OSError):
        used.shutdown(socket.SHUT_RDWR)
    if transport.is_alive():
        transport.join(_ENDING)
    used.close()


@contextmanager
def translated(subject: str, deadline: Deadline) -> Iterator[None]:
    """Translate errors into ours, which stay as they are."""
    try:
        yield
    except (AnnealError, SSHException, OSError, EOFError, ValueError) as error:
        if deadline.expired:
            raise GitUnavailable.of(subject, f"took longer than {deadline.seconds:g} s") from None
        if isinstance(error, AnnealError):
            raise
        if isinstance(error, IncompatiblePeer):
            fix = "update the host: key exchange needs SHA-2, ciphers AES-CTR or AES-GCM, digests SHA-2"
            raise ConfigInvalid.of(subject, "the host speaks nothing that is safe by now", fix=fix) from None
        raise GitUnavailable.of(subject, _words(error)) from None


def _words(error: Exception) -> str:
    for kind, words in (
        (socket.gaierror, "its host name doesn't resolve"),
        (ConnectionRefusedError, "its host refuses connections"),
        (TimeoutError, "its host doesn't answer in time"),
    ):
        if isinstance(error, kind):
            return words
    return "the host broke off the connection or doesn't speak SSH"
