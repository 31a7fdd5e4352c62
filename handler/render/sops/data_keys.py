"""A file's data key: unwrapped by the target's age keys in a child, wrapped anew for one call of sops in the worker.

Law: the child gets wrapped keys and age keys by its pipe and says 32 bytes, nothing else; no key is in an error, a name or an argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import pyrage

SIZE = 32
"""Bytes of a data key."""
_AGE = "AGE-SECRET-KEY-1"
_SSH = re.compile(r"-----BEGIN OPENSSH PRIVATE KEY-----.+?-----END OPENSSH PRIVATE KEY-----\n?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class OneTimeKey:
    """An age key for one call of sops. `wrapped`: the data key, for it alone."""

    recipient: str
    wrapped: str
    secret: str = field(repr=False)

    @classmethod
    def holding(cls, data_key: bytes) -> Self:
        """Make one, and wrap a data key for it."""
        identity = pyrage.x25519.Identity.generate()
        recipient = identity.to_public()
        return cls(str(recipient), pyrage.encrypt(data_key, [recipient], armored=True).decode(), str(identity))


def unwrap(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Unwrap data keys. Options: `secrets`: how many parts, the first ones, hold age keys; `tries`: by file, the numbers of wrapped ones.

    Yields, by file, its key; an empty one: none of the age keys opens it; last, the recipients of the age keys.
    """
    identities = [each for part in parts[: options["secrets"]] for each in identities_of(part.decode())]
    for tries in options["tries"]:
        found = (_opened(parts[number], [identity for identity, _ in identities]) for number in tries) if identities else ()
        yield next(filter(None, found), b"")
    yield "\n".join(recipient for _, recipient in identities).encode()


def identities_of(text: str) -> Iterator[tuple[Any, str]]:
    """Yield the age keys of a secret, each with its recipient: those of a keys.txt, comments passed over, and OpenSSH private keys."""
    for armored in _SSH.findall(text):
        try:
            identity = pyrage.ssh.Identity.from_buffer(armored.encode())
        except pyrage.IdentityError:
            continue
        yield identity, "an SSH key"
    for line in map(str.strip, _SSH.sub("", text).splitlines()):
        if line.startswith(_AGE):
            try:
                identity = pyrage.x25519.Identity.from_str(line)
            except pyrage.IdentityError:
                continue
            yield identity, str(identity.to_public())


def _opened(wrapped: bytes, identities: Sequence[Any]) -> bytes:
    """Return the data key; empty: it is for others, or is none."""
    try:
        found = pyrage.decrypt(wrapped, identities)
    except pyrage.DecryptError:
        return b""
    return found if len(found) == SIZE else b""
