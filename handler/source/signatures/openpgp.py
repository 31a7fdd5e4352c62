"""OpenPGP signatures of commits (RFC 9580), judged as `git verify-commit` with gpg does: by what the key is now.

A commit's date is whatever its maker says, and a key that ended isn't guarded any more: an expired or revoked key counts for nothing,
also not for what it signed before. And a key that was prolonged counts for all that it signed, whatever its newest self-signature's date.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from pysequoia.packet import HashAlgorithm, Packet, PacketPile, SignatureType, Tag

from handler.source.signatures.pgp_arithmetic import Body, read_signature
from handler.source.signatures.pgp_certificate import Certificate, Key
from handler.source.signatures.signed_commit import ANEW, Unproven

_STRONG = (HashAlgorithm.SHA256, HashAlgorithm.SHA384, HashAlgorithm.SHA512, HashAlgorithm.SHA3_256, HashAlgorithm.SHA3_512)
_MOST = 16  # signatures of one commit; two people signing one is already rare
_MALFORMED = "has a malformed OpenPGP signature"
_OTHER = "sign it by a configured key, or add the new key to the target's verify.pgp"


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
    raise troubles[0] if troubles else Unproven(_MALFORMED, ANEW)


def _signatures(armored: bytes) -> list[Packet]:
    """Return the signature packets; anything else among them, and a tag that pysequoia doesn't know, makes the whole malformed."""
    try:
        packets = list(PacketPile.from_bytes(armored))
        if len(packets) <= _MOST and all(packet.tag == Tag.Signature for packet in packets):
            return packets
    except (RuntimeError, ValueError):
        pass
    raise Unproven(_MALFORMED, ANEW)


def _signer(payload: bytes, packet: Packet, certificates: Sequence[Certificate], now: datetime) -> str:
    """Return whose signature one packet is. The issuer is only what it says of itself, until the arithmetic agrees. Raises Unproven."""
    signature, made = _opened(packet, now)
    issuer = packet.issuer_fingerprint or packet.issuer_key_id or "that it doesn't name"
    named = [(each, key) for each in certificates for key in each.keys if issuer in (key.fingerprint, key.key_id)]
    if not named:
        raise Unproven(f"is signed by the OpenPGP key {issuer}, which is not among the configured ones", _OTHER)
    for certificate, key in named:
        if key.public is None:
            raise Unproven(f"names the OpenPGP key {_of(key, certificate)} as its signer, which {key.unusable}", _OTHER)
        if key.public.signed(signature, payload):
            found, fix = _complaint(key, certificate, made, now)
            if found:
                raise Unproven(f"is signed by the OpenPGP key {_of(key, certificate)}, which {found}", fix)
            return key.fingerprint
    raise Unproven(f"has a bad signature: {_of(named[0][1], named[0][0])} did not sign this content", ANEW)


def _opened(packet: Packet, now: datetime) -> tuple[Body, datetime]:
    """Return a signature of the kind that git makes, and its date. Raises Unproven."""
    try:
        made, ends = packet.signature_created, packet.signature_expiration_time
        usual, strong = packet.signature_type == SignatureType.Binary, packet.hash_algorithm in _STRONG
        body = read_signature(packet.body) if usual and strong else None
    except (RuntimeError, ValueError):  # pysequoia's: at a number that it doesn't know
        raise Unproven(_MALFORMED, ANEW) from None
    if not usual or made is None:
        raise Unproven("has an OpenPGP signature of another kind than git's", ANEW)
    if not body:
        raise Unproven("has an OpenPGP signature over a weak hash", "sign it with SHA-256 or better: gpg's personal-digest-preferences")
    if ends and ends <= now:
        raise Unproven(f"has a signature that expired on {ends:%Y-%m-%d}", ANEW)
    return body, made


def _complaint(key: Key, certificate: Certificate, made: datetime, now: datetime) -> tuple[str, str]:
    """Say why a key doesn't count now for what it signed, and the way out; empty: it does."""
    both = dict.fromkeys((certificate.keys[0], key))  # a subkey ends with its primary key
    revoked = [each.revoked for each in both if each.revoked]
    ended = {each: each.ends for each in both if each.ends and each.ends <= now}
    if revoked:
        return f"is revoked since {min(revoked):%Y-%m-%d}", _OTHER
    if ended:
        return f"expired on {min(ended.values()):%Y-%m-%d}", _prolonged(ended, certificate)
    if key.unusable:
        return key.unusable, _OTHER
    if key.created > made:
        return f"was made on {key.created:%Y-%m-%d}, after the signature's date {made:%Y-%m-%d}", f"set the signer's clock, and {ANEW}"
    return "", ""


def _prolonged(ended: Iterable[Key], certificate: Certificate) -> str:
    """Say how the owner of keys that expired makes them count again."""
    primary = certificate.fingerprint
    commands = [f"gpg --quick-set-expire {primary} 1y {key.fingerprint}".removesuffix(f" {primary}") for key in ended]
    return (
        f"its owner prolongs it: {' && '.join(commands)}; then put what gpg --armor --export {primary} prints into the target's verify.pgp"
    )


def _of(key: Key, certificate: Certificate) -> str:
    return f"{key.fingerprint} of {certificate.owner}" if certificate.owner else key.fingerprint
