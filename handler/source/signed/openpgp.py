"""OpenPGP signatures of commits (RFC 9580), checked by Sequoia (pysequoia) under its standard policy, and then more strictly.

Sequoia takes a key as it was when the signature was made. A commit's date is whatever its maker says, and a key that ended is a key
nobody guards any more: so a key must also be valid now, as `git verify-commit` with gpg demands. Sequoia's own words, with backtraces,
stay here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pysequoia import Cert, Sig
from pysequoia import verify as sequoia_verify
from pysequoia.packet import HashAlgorithm, Packet, PacketPile, SignatureType, Tag

from handler.source.signed.signature import Unproven

_STRONG = (HashAlgorithm.SHA256, HashAlgorithm.SHA384, HashAlgorithm.SHA512, HashAlgorithm.SHA3_256, HashAlgorithm.SHA3_512)
_KEYS = (Tag.PublicKey, Tag.PublicSubkey)
_SECRET = (Tag.SecretKey, Tag.SecretSubkey)
_REVOCATIONS = (SignatureType.KeyRevocation, SignatureType.SubkeyRevocation)
_MOST = 16  # signatures of one commit; two people signing one is already rare
_WEAK = "; one that signed itself over SHA-1 is renewed by gpg --quick-set-expire and exported anew"
_MALFORMED = "has a malformed OpenPGP signature"


@dataclass(frozen=True, slots=True)
class Certificate:
    """A configured public key with its subkeys. `ends`: by fingerprint, when each stops being valid; None: never. `revoked`: of those."""

    cert: Cert = field(repr=False)
    fingerprint: str
    ends: dict[str, datetime | None]
    revoked: frozenset[str]
    expires: datetime | None

    def complaint(self, key: str, now: datetime) -> str:
        """Say why one of its keys doesn't count now; empty: it does."""
        if key in self.revoked:
            return "is revoked"
        ends = min((end for end in (self.expires, self.ends.get(key)) if end), default=None)
        return f"expired on {ends:%Y-%m-%d}" if ends and ends <= now else ""


def read_certificates(armored: str) -> tuple[Certificate, ...]:
    """Read the certificates of one armored block; expired and revoked ones too, so that old ones may stay in a rotation.

    Raises:
        ValueError: there is none, or one that can't be used; says why.
    """
    try:
        secret = any(packet.tag in _SECRET for packet in PacketPile.from_bytes(armored.encode()))
        certificates = () if secret else tuple(_read(cert) for cert in Cert.split_bytes(armored.encode()))
    except (RuntimeError, ValueError, TypeError):
        raise ValueError(f"is not an OpenPGP public key that can be used{_WEAK}") from None
    if secret:
        raise ValueError("holds a private key; export the public one: gpg --armor --export KEY")
    if not certificates:
        raise ValueError("holds no OpenPGP public key")
    return certificates


def merged(certificates: Iterable[Certificate]) -> tuple[Certificate, ...]:
    """Join the copies of each certificate into one, as a keyring does: what any copy says counts, in whatever order they stand."""
    whole: dict[str, Cert] = {}
    for each in certificates:
        known = whole.get(each.fingerprint)
        whole[each.fingerprint] = known.merge(each.cert) if known else each.cert
    return tuple(_read(cert) for cert in whole.values())


def _read(cert: Cert) -> Certificate:
    """Note what Sequoia doesn't tell of single keys: when each ends, and which are revoked."""
    key, created = "", datetime.now(UTC)
    revoked: set[str] = set()
    ends: dict[str, datetime | None] = {}
    latest: dict[str, datetime] = {}
    for packet in PacketPile.from_bytes(bytes(cert)):
        if packet.tag in _KEYS:
            key, created = packet.fingerprint or "", packet.key_created or created
            ends[key] = None
        elif packet.tag == Tag.Signature and packet.signature_type in _REVOCATIONS:
            revoked.add(key)
        elif packet.tag == Tag.Signature and packet.signature_type == SignatureType.SubkeyBinding:
            made = packet.signature_created or created
            if made >= latest.get(key, made):
                latest[key] = made
                ends[key] = created + packet.key_validity_period if packet.key_validity_period else None
    revoked |= ends.keys() if cert.is_revoked else set()
    return Certificate(cert, cert.fingerprint, ends, frozenset(revoked), cert.expiration)


def verify(payload: bytes, armored: bytes, certificates: Sequence[Certificate], now: datetime | None = None) -> str:
    """Return the fingerprint of the configured key that signed the payload. `now`: another time than the clock's.

    Raises:
        Unproven: none did, or none that counts now; the first signature's trouble is told.
    """
    troubles: list[Unproven] = []
    for packet in _signatures(armored):
        try:
            return _signer(payload, packet, certificates, now or datetime.now(UTC))
        except Unproven as trouble:
            troubles.append(trouble)
    raise troubles[0] if troubles else Unproven(_MALFORMED)


def _signatures(armored: bytes) -> list[Packet]:
    """Return the signature packets; anything else among them, and a tag that pysequoia doesn't know, makes the whole malformed."""
    try:
        packets = list(PacketPile.from_bytes(armored))
        if len(packets) <= _MOST and all(packet.tag == Tag.Signature for packet in packets):
            return packets
    except (RuntimeError, ValueError):
        pass
    raise Unproven(_MALFORMED, "sign it anew: git commit --amend -S")


def _signer(payload: bytes, packet: Packet, certificates: Sequence[Certificate], now: datetime) -> str:
    """Return whose signature one packet is. Raises Unproven."""
    issuer = "that it doesn't name"
    try:
        signature = Sig.from_bytes(bytes(packet))
        issuer = signature.issuer_fingerprint or signature.issuer_key_id or issuer
        _refuse_weak(signature, now)
        found = sequoia_verify(payload, store=lambda _: [each.cert for each in certificates], signature=signature).valid_sigs
    except (RuntimeError, ValueError):
        found = []
    for good in found:
        certificate = next((each for each in certificates if each.fingerprint == good.certificate), None)
        complaint = certificate.complaint(good.signing_key, now) if certificate else "is not configured"
        if not complaint:
            return str(good.signing_key)
        raise Unproven(f"is signed by the OpenPGP key {good.signing_key}, which {complaint}", _OTHER)
    raise _explained(issuer, certificates, now)


_OTHER = "sign it by a configured key, or add the new key to the target's verify.pgp"


def _refuse_weak(signature: Sig, now: datetime) -> None:
    if signature.signature_type != SignatureType.Binary or signature.version < 4:
        raise Unproven("has an OpenPGP signature of another kind than git's", "sign it anew: git commit --amend -S")
    if signature.hash_algorithm not in _STRONG:
        raise Unproven("has an OpenPGP signature over a weak hash", "sign it with SHA-256 or better: gpg's personal-digest-preferences")
    if signature.expiration and signature.expiration <= now:
        raise Unproven(f"has a signature that expired on {signature.expiration:%Y-%m-%d}", "sign it anew: git commit --amend -S")


def _explained(issuer: str, certificates: Sequence[Certificate], now: datetime) -> Unproven:
    """Say what was wrong with a signature that nothing vouches for; the issuer is only what it says of itself."""
    for certificate in certificates:
        key = next((key for key in certificate.ends if key.endswith(issuer)), None)
        if key is not None:
            complaint = certificate.complaint(key, now)
            if complaint:
                return Unproven(f"is signed by the OpenPGP key {key}, which {complaint}", _OTHER)
            return Unproven(f"has a bad signature: {key} did not sign this content")
    return Unproven(f"is signed by the OpenPGP key {issuer}, which is not among the configured ones", _OTHER)
