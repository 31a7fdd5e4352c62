"""A private key's text -> the key that signs in over SSH. Errors name its reference, never its content."""

from __future__ import annotations

import base64
import io
from contextlib import suppress

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    load_ssh_private_key,
)

from handler.model.errors import ConfigInvalid

_OPENSSH = "-----BEGIN OPENSSH PRIVATE KEY-----"
_MAGIC = b"openssh-key-v1\0"
_KINDS: tuple[tuple[type, type[paramiko.PKey]], ...] = (
    (ed25519.Ed25519PrivateKey, paramiko.Ed25519Key),
    (ec.EllipticCurvePrivateKey, paramiko.ECDSAKey),
    (rsa.RSAPrivateKey, paramiko.RSAKey),
)
SHORTEST_RSA = 2048


def load_key(text: str, passphrase: str | None, subject: str) -> paramiko.PKey:
    """Load an Ed25519, ECDSA or RSA key (OpenSSH, PEM). `subject`: its reference, for errors. Raises ConfigInvalid."""
    text = text.strip().replace("\r\n", "\n") + "\n"
    encrypted = _is_encrypted(text)
    if encrypted and passphrase is None:
        raise ConfigInvalid.of(subject, "the private key is encrypted", fix="set repository.auth.ssh.passphrase")
    password = passphrase.encode() if encrypted and passphrase is not None else None
    load = load_ssh_private_key if text.startswith(_OPENSSH) else load_pem_private_key
    try:
        key = load(text.encode(), password)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # a vendor's words may show a part of it
        why = "the passphrase is wrong, or the private key is damaged" if encrypted else "is not a private key, or a damaged one"
        raise ConfigInvalid.of(subject, why, fix="check it with `ssh-keygen -y -f FILE`") from None
    return _for_paramiko(key, subject)


def _for_paramiko(key: object, subject: str) -> paramiko.PKey:
    if isinstance(key, rsa.RSAPrivateKey) and key.key_size < SHORTEST_RSA:
        raise ConfigInvalid.of(subject, f"this RSA key has {key.key_size} bits; at least {SHORTEST_RSA} are needed", fix=_NEW)
    wanted = next((wanted for kind, wanted in _KINDS if isinstance(key, kind)), None)
    with suppress(ValueError):  # a curve that SSH has no name for
        if wanted:
            plain = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())  # type: ignore[attr-defined]  # of the table
            return wanted.from_private_key(io.StringIO(plain.decode()))
    raise ConfigInvalid.of(subject, "this is not an Ed25519, ECDSA or RSA key", fix=_NEW)


_NEW = "make one with `ssh-keygen -t ed25519`"


def _is_encrypted(text: str) -> bool:
    """Return whether a key needs a passphrase, by PEM's head or OpenSSH's cipher name (openssh: PROTOCOL.key)."""
    if not text.startswith(_OPENSSH):
        return "ENCRYPTED" in text
    try:
        body = base64.b64decode("".join(text.splitlines()[1:-1]))
    except ValueError:
        return False
    return body.startswith(_MAGIC) and not body.startswith(_MAGIC + b"\0\0\0\4none")
