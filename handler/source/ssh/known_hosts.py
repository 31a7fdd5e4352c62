"""Trusted host keys of a known_hosts file (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT). Pure but for reading it.

By hand: paramiko's reader skips `@revoked`, patterns and damaged lines, and keeps one key of a type.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from handler.config.secret_sources import read_regular
from handler.model.errors import ConfigInvalid

LARGEST = 4 << 20  # bytes of the file: what ssh-keyscan writes for ten thousand hosts

_FIX = "set repository.auth.ssh.knownHosts"


@dataclass(frozen=True, slots=True)
class HostKey:
    """One public key: its type as the file names it, and its blob as the host sends it (RFC 4253, 6.6)."""

    kind: str
    blob: bytes


@dataclass(frozen=True, slots=True)
class Pinned:
    """What a file says about one host."""

    file: str
    trusted: frozenset[HostKey]
    revoked: frozenset[bytes]

    @property
    def kinds(self) -> frozenset[str]:
        """Return the types of the trusted keys."""
        return frozenset(key.kind for key in self.trusted)

    def trusts(self, blob: bytes) -> bool:
        """Return whether a host with this key is the pinned one."""
        return blob not in self.revoked and any(key.blob == blob for key in self.trusted)


def fingerprint(blob: bytes) -> str:
    """Return a public key's SHA-256 fingerprint as OpenSSH shows it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def host_name(host: str, port: int) -> str:
    """Return how the file names a host: `host`, or `[host]:port` for another port than 22."""
    return host.lower() if port == 22 else f"[{host.lower()}]:{port}"


def pinned(file: str, host: str, port: int) -> Pinned:
    """Read what a file says about a host, anew each time. Raises ConfigInvalid: it can't be read, or a line is damaged."""
    name = host_name(host, port)
    trusted, revoked = set(), set()
    for place, line in _lines(file):
        marker, names, key = _entry(place, line)
        if marker == "@revoked" and (_matches(names, name) or _matches(names, host.lower())):
            revoked.add(key.blob)
        elif not marker and _matches(names, name):
            trusted.add(key)
    return Pinned(file, frozenset(trusted), frozenset(revoked))


def _lines(file: str) -> Iterator[tuple[str, str]]:
    try:
        raw = read_regular(file, LARGEST + 1)
    except OSError as error:
        raise ConfigInvalid.of(file, f"can't be read: {error.strerror}", fix=_FIX) from None
    if len(raw) > LARGEST:
        raise ConfigInvalid.of(file, f"is larger than {LARGEST} bytes", fix=_FIX)
    for number, line in enumerate(raw.decode(errors="replace").splitlines(), 1):
        text = line.strip()
        if text and not text.startswith("#"):
            yield f"{file}:{number}", text


def _entry(place: str, line: str) -> tuple[str, str, HostKey]:
    fields = line.split(None, 4)
    marker = fields.pop(0) if fields[0].startswith("@") else ""
    if marker not in ("", "@revoked", "@cert-authority"):
        raise ConfigInvalid.of("known_hosts", "has a marker that isn't @revoked or @cert-authority", place=place)
    blob = _blob(fields[2]) if len(fields) > 2 else b""
    if len(fields) < 3 or not blob.startswith(len(fields[1]).to_bytes(4, "big") + fields[1].encode()):
        fix = "write it as ssh-keyscan does: <host> <key type> <key>"
        raise ConfigInvalid.of("known_hosts", "this line names no host and key", place=place, fix=fix)
    return marker, fields[0], HostKey(fields[1], blob)


def _blob(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _matches(names: str, name: str) -> bool:
    """Say whether a line's names cover a host: any pattern does and no `!pattern` does."""
    found = False
    for pattern in names.split(","):
        if pattern.startswith("|"):
            found = found or _is_hash_of(pattern, name)
        elif _covers(pattern.removeprefix("!"), name):
            if pattern.startswith("!"):
                return False
            found = True
    return found


def _covers(pattern: str, name: str) -> bool:
    """Compare by `*` and `?` alone: brackets belong to `[host]:port`."""
    return fnmatchcase(name, re.sub(r"\[", "[[]", pattern.lower()))


def _is_hash_of(hashed: str, name: str) -> bool:
    """Compare with `|1|salt|hash` (HMAC-SHA1 with the salt as its key: what HashKnownHosts writes)."""
    fields = hashed.split("|")
    if len(fields) != 4 or fields[1] != "1":
        return False
    return hmac.compare_digest(hmac.new(_blob(fields[2]), name.encode(), hashlib.sha1).digest(), _blob(fields[3]))
