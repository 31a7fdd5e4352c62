"""OpenPGP's arithmetic (RFC 9580 5.2, 5.5): did this key sign these bytes? Validity is judged in openpgp. Pure.

By hand: Sequoia's Python binding verifies as of the signature's date, and gpg exports a key's newest self-signature alone, so a renewed key
has none at that date. Sequoia splits the packets; `cryptography` computes. Refused by construction: hashes below SHA-256, RSA and DSA below
2048 bits, unlisted curves, unknown critical subpackets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import dsa, ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA3_256, SHA3_512, SHA256, SHA384, SHA512, Hash, HashAlgorithm

from handler.source.signatures.signed_commit import Octets

_HASHES: dict[int, tuple[HashAlgorithm, int]] = {
    8: (SHA256(), 16),
    9: (SHA384(), 24),
    10: (SHA512(), 32),
    12: (SHA3_256(), 16),
    14: (SHA3_512(), 32),
}
"""By number: the hash, and how much salt a version 6 signature has with it (RFC 9580 9.5)."""
_CURVES: dict[bytes, ec.EllipticCurve] = {
    bytes.fromhex("2a8648ce3d030107"): ec.SECP256R1(),
    bytes.fromhex("2b81040022"): ec.SECP384R1(),
    bytes.fromhex("2b81040023"): ec.SECP521R1(),
}
_LEGACY_ED25519 = bytes.fromhex("2b06010401da470f01")
_LEAST_BITS = 2048
_EMBEDDED = 32
_SUBPACKETS = frozenset({2, 3, 4, 7, 9, 11, 16, 21, 22, 23, 25, 26, 27, 28, 30, 33, 34, 39, _EMBEDDED})
"""Types that openpgp judges by, or that are wishes. Another one that is marked critical makes its signature count for nothing."""
_WIDTHS = {4: 2, 6: 4}  # by version of a packet: octets of the lengths in it

Check = Callable[["_Octets", bytes, HashAlgorithm], None]
"""Checks a signature's numbers over a digest; raises InvalidSignature or ValueError."""


class _Octets(Octets):
    """Numbers as OpenPGP writes them (RFC 9580 3.2)."""

    def mpi(self) -> int:
        return int.from_bytes(self.take((self.number(2) + 7) // 8), "big")


@dataclass(frozen=True, slots=True)
class Body:
    """A signature packet, opened. `hashed`: what it signs of itself; `numbers`: the key's answer; `inside`: the body of one it holds."""

    version: int
    kind: int
    algorithm: int
    hashing: HashAlgorithm = field(repr=False)
    salt: bytes
    hashed: bytes
    numbers: bytes
    inside: bytes


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key packet, opened. `framed`: as signatures about the key hash it."""

    version: int
    algorithms: frozenset[int]
    framed: bytes = field(repr=False)
    check: Check = field(repr=False)

    def signed(self, signature: Body, data: bytes) -> bool:
        """Whether this key made the signature over these bytes."""
        if signature.version != self.version or signature.algorithm not in self.algorithms:
            return False
        digest = Hash(signature.hashing)
        end = bytes((signature.version, 0xFF)) + len(signature.hashed).to_bytes(4, "big")
        digest.update(signature.salt + data + signature.hashed + end)
        numbers = _Octets(signature.numbers)
        try:
            self.check(numbers, digest.finalize(), signature.hashing)
            numbers.end()
        except (InvalidSignature, ValueError):
            return False
        return True


def read_signature(body: bytes) -> Body:
    """Open the body of a signature packet. Raises ValueError: it isn't one, or never counts."""
    octets = _Octets(body)
    version, kind, algorithm, number = octets.take(4)
    if version not in _WIDTHS or number not in _HASHES:
        raise ValueError("another version or hash")
    hashing, salted = _HASHES[number]
    width = _WIDTHS[version]
    hashed = octets.take(octets.number(width))
    unhashed = octets.take(octets.number(width))
    octets.take(2)  # the digest's first octets prove nothing
    salt = octets.take(octets.number(1)) if version == 6 else b""
    if version == 6 and len(salt) != salted:
        raise ValueError("another salt than its hash has")
    inside = _inside(hashed, critical=True) or _inside(unhashed, critical=False)
    return Body(version, kind, algorithm, hashing, salt, body[: 4 + width + len(hashed)], octets.rest(), inside)


def _inside(area: bytes, *, critical: bool) -> bytes:
    """Return the embedded signature's body (RFC 9580 5.2.3.7). `critical`: refuse unknown critical subpackets."""
    octets, found = _Octets(area), b""
    while octets:
        first = octets.number(1)
        if first == 0xFF:
            first = octets.number(4)
        elif first >= 192:
            first = ((first - 192) << 8) + octets.number(1) + 192
        subpacket = octets.take(first)
        kind = subpacket[0] if subpacket else 0x80
        if critical and kind & 0x80 and kind & 0x7F not in _SUBPACKETS:
            raise ValueError("a critical subpacket that isn't known")
        if kind & 0x7F == _EMBEDDED:
            found = subpacket[1:]
    return found


def read_key(body: bytes) -> PublicKey:
    """Open the body of a public key packet. Raises ValueError, which says why: it isn't one, or not of an accepted kind."""
    octets = _Octets(body)
    version = octets.number(1)
    if version not in _WIDTHS:
        raise ValueError(f"is of version {version}; versions 4 and 6 are accepted")
    octets.take(4)  # when it was made
    algorithm = octets.number(1)
    if version == 6:
        octets.take(4)  # how long the rest is
    make = _KEYS.get(algorithm)
    if make is None:
        raise ValueError(f"is of algorithm {algorithm}, which isn't accepted; gpg --quick-add-key KEY ed25519 sign adds a subkey that is")
    check = make(octets)
    octets.end()
    frame = {4: b"\x99", 6: b"\x9b"}[version] + len(body).to_bytes(_WIDTHS[version], "big")
    return PublicKey(version, frozenset({1, 3} if algorithm in (1, 3) else {algorithm}), frame + body, check)


# --- one function an algorithm: reads the rest of its key packet, returns what checks a signature by it
def _rsa(octets: _Octets) -> Check:
    modulus, exponent = octets.mpi(), octets.mpi()
    _long_enough("an RSA", modulus)
    key = rsa.RSAPublicNumbers(exponent, modulus).public_key()
    length = (modulus.bit_length() + 7) // 8

    def check(numbers: _Octets, digest: bytes, hashing: HashAlgorithm) -> None:
        key.verify(_padded(numbers.mpi(), length), digest, padding.PKCS1v15(), Prehashed(hashing))

    return check


def _dsa(octets: _Octets) -> Check:
    p, q, g, y = (octets.mpi() for _ in range(4))
    _long_enough("a DSA", p)
    key = dsa.DSAPublicNumbers(y, dsa.DSAParameterNumbers(p, q, g)).public_key()

    def check(numbers: _Octets, digest: bytes, hashing: HashAlgorithm) -> None:
        key.verify(encode_dss_signature(numbers.mpi(), numbers.mpi()), digest, Prehashed(hashing))

    return check


def _ecdsa(octets: _Octets) -> Check:
    curve = _CURVES.get(octets.take(octets.number(1)))
    if curve is None:
        raise ValueError("is on a curve that isn't accepted: NIST's P-256, P-384 and P-521 are")
    point = octets.mpi()
    key = ec.EllipticCurvePublicKey.from_encoded_point(curve, point.to_bytes((point.bit_length() + 7) // 8, "big"))

    def check(numbers: _Octets, digest: bytes, hashing: HashAlgorithm) -> None:
        key.verify(encode_dss_signature(numbers.mpi(), numbers.mpi()), digest, ec.ECDSA(Prehashed(hashing)))

    return check


def _legacy_ed25519(octets: _Octets) -> Check:
    if octets.take(octets.number(1)) != _LEGACY_ED25519:
        raise ValueError("is on a curve that isn't accepted: Ed25519 is")
    point = _padded(octets.mpi(), 33)
    if point[0] != 0x40:
        raise ValueError("has a point in another form")
    key = Ed25519PublicKey.from_public_bytes(point[1:])

    def check(numbers: _Octets, digest: bytes, _: HashAlgorithm) -> None:
        key.verify(_padded(numbers.mpi(), 32) + _padded(numbers.mpi(), 32), digest)

    return check


def _edwards(read: Callable[[bytes], Ed25519PublicKey | Ed448PublicKey], size: int, octets: _Octets) -> Check:
    key = read(octets.take(size))
    return lambda numbers, digest, _: key.verify(numbers.take(2 * size), digest)


_KEYS: dict[int, Callable[[_Octets], Check]] = {
    1: _rsa,
    3: _rsa,
    17: _dsa,
    19: _ecdsa,
    22: _legacy_ed25519,
    27: partial(_edwards, Ed25519PublicKey.from_public_bytes, 32),
    28: partial(_edwards, Ed448PublicKey.from_public_bytes, 57),
}


def _long_enough(kind: str, number: int) -> None:
    if number.bit_length() < _LEAST_BITS:
        raise ValueError(f"is {kind} key of {number.bit_length()} bits; at least {_LEAST_BITS} are needed")


def _padded(number: int, length: int) -> bytes:
    if number.bit_length() > 8 * length:
        raise ValueError("a number that is too large")
    return number.to_bytes(length, "big")
