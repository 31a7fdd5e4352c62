"""SSH signatures of commits (OpenSSH: PROTOCOL.sshsig, PROTOCOL.u2f; keys: RFC 4253 6.6, 5656 3.1, 8332, 8709).

The frame is read here, without I/O; `cryptography` computes. Refused by construction: any namespace but `git`, SHA-1 (`ssh-rsa` as the
signature's algorithm), DSA, certificates, RSA below 2048 bits, security keys without their owner's touch.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512, HashAlgorithm

from handler.source.signatures.signed_commit import ANEW, Octets, Unproven
from handler.source.ssh.known_hosts import fingerprint

_MAGIC = b"SSHSIG"
_VERSION = 1
_NAMESPACE = b"git"
_TOUCHED = 0x01
_LEAST_RSA = 2048
_CURVES: dict[bytes, tuple[type[ec.EllipticCurve], HashAlgorithm]] = {
    b"nistp256": (ec.SECP256R1, SHA256()),
    b"nistp384": (ec.SECP384R1, SHA384()),
    b"nistp521": (ec.SECP521R1, SHA512()),
}
_RSA: dict[bytes, HashAlgorithm] = {b"rsa-sha2-256": SHA256(), b"rsa-sha2-512": SHA512()}
_MALFORMED = "has a malformed SSH signature"

Check = Callable[[bytes, bytes, "_Wire", bytes], None]
"""Checks (algorithm, signature, what follows it, data); raises InvalidSignature or ValueError."""


@dataclass(frozen=True, slots=True)
class SshKey:
    """A public key. `blob`: as it goes over the wire; `fingerprint`: as ssh-keygen -l prints it."""

    blob: bytes = field(repr=False)
    fingerprint: str
    check: Check = field(repr=False, compare=False)


class _Wire(Octets):
    """SSH's binary forms (RFC 4251 5)."""

    def string(self) -> bytes:
        return self.take(self.number(4))

    def mpint(self) -> int:
        """Read a positive integer, short enough for any key."""
        raw = self.string()
        if not raw or raw[0] & 0x80 or len(raw) > 2049:
            raise ValueError("not a positive number")
        return int.from_bytes(raw, "big")


def read_key(line: str) -> SshKey:
    """Read a public key as authorized_keys has it. Raises ValueError, which says why: it isn't one, or isn't accepted."""
    kind, _, rest = line.strip().partition(" ")
    if kind not in _KEYS and any(f" {each} " in line for each in _KEYS):
        raise ValueError("has something before the key's type: neither options nor a principal, valid-before among them, hold here")
    try:
        blob = base64.b64decode(rest.split(" ", 1)[0], validate=True)
        wire = _Wire(blob)
        if wire.string() != kind.encode():
            raise ValueError("holds a key of another type than it says")
        make = _KEYS.get(kind)
        if make is None:
            raise ValueError(f"keys of type {kind} are not accepted")
        check = make(wire)
        wire.end()
    except binascii.Error:
        raise ValueError("is not base64") from None
    return SshKey(blob, fingerprint(blob), check)


def verify(payload: bytes, armored: bytes, keys: Collection[SshKey]) -> SshKey:
    """Return the configured key that signed the payload. Raises Unproven: none did."""
    try:
        key, data, algorithm, signature, tail = _opened(dearmored(armored), payload, {key.blob: key for key in keys})
        key.check(algorithm, signature, tail, data)
        tail.end()
    except InvalidSignature:
        raise Unproven(f"has a bad signature: {key.fingerprint} did not sign this content", ANEW) from None
    except ValueError:
        raise Unproven(_MALFORMED, ANEW) from None
    return key


def dearmored(signature: bytes) -> bytes:
    """Return the bytes of a signature (PROTOCOL.sshsig, "Armored format"). Raises ValueError."""
    lines = [line.strip() for line in signature.strip().split(b"\n")]
    if (lines[0], lines[-1]) != (b"-----BEGIN SSH SIGNATURE-----", b"-----END SSH SIGNATURE-----"):
        raise ValueError("not armored")
    return base64.b64decode(b"".join(lines[1:-1]), validate=True)


def _opened(frame: bytes, payload: bytes, keys: Mapping[bytes, SshKey]) -> tuple[SshKey, bytes, bytes, bytes, _Wire]:
    wire = _Wire(frame)
    if wire.take(len(_MAGIC)) != _MAGIC or wire.number(4) != _VERSION:
        raise ValueError("not an SSH signature")
    blob, namespace, reserved, hashing, inner = (wire.string() for _ in range(5))
    wire.end()
    if namespace != _NAMESPACE:
        raise Unproven("has an SSH signature that was made for something else than git", ANEW)
    if hashing not in (b"sha256", b"sha512"):
        raise ValueError("another hash")
    key = keys.get(blob)
    if key is None:
        raise Unproven(f"is signed by the SSH key {fingerprint(blob)}, which is not among the configured ones", _ADD_KEY)
    digest = hashlib.new(hashing.decode(), payload).digest()
    data = _MAGIC + b"".join(len(part).to_bytes(4, "big") + part for part in (namespace, reserved, hashing, digest))
    signed = _Wire(inner)
    return key, data, signed.string(), signed.string(), signed


_ADD_KEY = "sign it by a configured key, or add this one to the target's verify.ssh"


# --- one function a type of key: reads the rest of its blob, returns what checks a signature by it
def _ed25519(kind: str, wire: _Wire) -> Check:
    key = Ed25519PublicKey.from_public_bytes(wire.string())
    signed = _signed(kind, wire)

    def check(algorithm: bytes, signature: bytes, tail: _Wire, data: bytes) -> None:
        _same(algorithm, kind)
        key.verify(signature, signed(tail, data))

    return check


def _ecdsa(kind: str, name: bytes, wire: _Wire) -> Check:
    if wire.string() != name:
        raise ValueError("is on another curve than its type says")
    curve, hashing = _CURVES[name]
    key = ec.EllipticCurvePublicKey.from_encoded_point(curve(), wire.string())
    signed = _signed(kind, wire)

    def check(algorithm: bytes, signature: bytes, tail: _Wire, data: bytes) -> None:
        _same(algorithm, kind)
        key.verify(_dss(signature), signed(tail, data), ec.ECDSA(hashing))

    return check


def _rsa(wire: _Wire) -> Check:
    exponent, modulus = wire.mpint(), wire.mpint()
    if modulus.bit_length() < _LEAST_RSA:
        raise ValueError(f"is an RSA key of {modulus.bit_length()} bits; at least {_LEAST_RSA} are needed")
    key = rsa.RSAPublicNumbers(exponent, modulus).public_key()
    length = (modulus.bit_length() + 7) // 8

    def check(algorithm: bytes, signature: bytes, _: _Wire, data: bytes) -> None:
        hashing = _RSA.get(algorithm)
        if hashing is None:
            raise Unproven("is signed by RSA with SHA-1", "sign it with OpenSSH 8.2 or newer, or by an Ed25519 key")
        key.verify(signature.rjust(length, b"\0"), data, padding.PKCS1v15(), hashing)

    return check


_SK_ED25519, _SK_ECDSA = "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"
_ECDSA = {f"ecdsa-sha2-{name.decode()}": name for name in _CURVES} | {_SK_ECDSA: b"nistp256"}
_KEYS: dict[str, Callable[[_Wire], Check]] = {
    "ssh-rsa": _rsa,
    **{kind: partial(_ed25519, kind) for kind in ("ssh-ed25519", _SK_ED25519)},
    **{kind: partial(_ecdsa, kind, name) for kind, name in _ECDSA.items()},
}


def _dss(signature: bytes) -> bytes:
    wire = _Wire(signature)
    r, s = wire.mpint(), wire.mpint()
    wire.end()
    return encode_dss_signature(r, s)


def _signed(kind: str, wire: _Wire) -> Callable[[_Wire, bytes], bytes]:
    """Return what makes the bytes that a key of this type signs, of what follows a signature and the data."""
    return partial(_by_device, wire.string()) if kind in (_SK_ED25519, _SK_ECDSA) else lambda _, data: data


def _by_device(application: bytes, tail: _Wire, data: bytes) -> bytes:
    """Return what a security key signs: the data's hash between the application's and the device's flags and counter."""
    flags, counter = tail.take(1), tail.take(4)
    if not flags[0] & _TOUCHED:
        raise Unproven("is signed by a security key that wasn't touched", "sign it by a key that asks to be touched")
    return hashlib.sha256(application).digest() + flags + counter + hashlib.sha256(data).digest()


def _same(algorithm: bytes, kind: str) -> None:
    if algorithm != kind.encode():
        raise ValueError("another algorithm than the key's")
