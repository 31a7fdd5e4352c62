"""OpenPGP signatures of commits (RFC 9580), judged as gpg's `git verify-commit` does: by what the key is now.

A commit's date is its maker's claim: an expired or revoked key counts for nothing, also not for earlier commits; a prolonged key counts for
all of them. The newest self-signature decides, over SHA-256 or better; a revocation is never taken back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pysequoia import Cert
from pysequoia.packet import HashAlgorithm, Packet, PacketPile, SignatureType, Tag

from handler.model.advice import advice, together
from handler.source.signatures.pgp_arithmetic import Body, PublicKey, read_key, read_signature
from handler.source.signatures.signed_commit import ANEW, Unproven

_SECRET = (Tag.SecretKey, Tag.SecretSubkey)
_WITHDRAWN = SignatureType.CertificationRevocation
_CERTIFICATIONS = (
    SignatureType.GenericCertification,
    SignatureType.PersonaCertification,
    SignatureType.CasualCertification,
    SignatureType.PositiveCertification,
)
_BACK = b"\x19"  # the type of a primary key binding signature
_LONGEST_NAME = 100
_UNREADABLE = "is not an OpenPGP public key that can be used; export it: gpg --armor --export KEY"
_WEAK = "; one that signed itself over SHA-1 is renewed by gpg --quick-set-expire and exported anew"
_UNBOUND = "isn't bound for signing over SHA-256 or better (gpg --quick-set-expire {} 1y {} binds a subkey anew)"


@dataclass(frozen=True, slots=True)
class Key:
    """A primary key or a subkey. `public` None: `unusable` says why it can't sign. `ends`, `revoked`: when; None: never."""

    fingerprint: str
    key_id: str
    created: datetime
    public: PublicKey | None = field(repr=False)
    unusable: str
    ends: datetime | None = None
    revoked: datetime | None = None


@dataclass(frozen=True, slots=True)
class Certificate:
    """A configured public key with its subkeys; the first of `keys` is the primary one. `owner`: its first user id."""

    cert: Cert = field(repr=False)
    owner: str
    keys: tuple[Key, ...]

    @property
    def fingerprint(self) -> str:
        """The primary key's."""
        return self.keys[0].fingerprint


@dataclass(frozen=True, slots=True)
class _Part:
    """A key or a user id, and its signatures."""

    packet: Packet
    signatures: list[Packet]


def read_certificates(armored: str) -> tuple[Certificate, ...]:
    """Read the certificates of an armored block, also expired and revoked ones. Raises ValueError: none, or an unusable one."""
    try:
        secret = any(packet.tag in _SECRET for packet in PacketPile.from_bytes(armored.encode()))
        certs = [] if secret else Cert.split_bytes(armored.encode())
    except (RuntimeError, ValueError, TypeError):
        raise ValueError(_UNREADABLE) from None
    if secret:
        raise ValueError("holds a private key; export the public one: gpg --armor --export KEY")
    if not certs:
        raise ValueError("holds no OpenPGP public key")
    try:
        return tuple(_read(cert) for cert in certs)
    except RuntimeError:  # pysequoia's, at a number that it doesn't know
        raise ValueError(_UNREADABLE) from None


def merged(certificates: Iterable[Certificate]) -> tuple[Certificate, ...]:
    """Join the copies of each certificate, as a keyring does: what any copy says counts, in any order."""
    whole: dict[str, Cert] = {}
    for each in certificates:
        known = whole.get(each.fingerprint)
        whole[each.fingerprint] = known.merge(each.cert) if known else each.cert
    return tuple(_read(cert) for cert in whole.values())


def _read(cert: Cert) -> Certificate:
    parts: list[_Part] = []
    for packet in PacketPile.from_bytes(bytes(cert)):
        if packet.tag == Tag.Signature:
            parts[-1].signatures.append(packet)  # never before a key: Sequoia took it as a certificate
        else:
            parts.append(_Part(packet, []))
    try:
        public = read_key(parts[0].packet.body)
    except ValueError as error:
        raise ValueError(f"holds the OpenPGP key {cert.fingerprint}, which {error}") from None
    binding = _binding_of_primary(public, parts)
    if binding is None:
        raise ValueError(f"is not an OpenPGP public key that can be used: no self-signature of {cert.fingerprint} counts{_WEAK}")
    everywhere = _Part(parts[0].packet, [signature for part in parts for signature in part.signatures])
    primary = _key(everywhere, public, binding, SignatureType.KeyRevocation)
    keys = [primary, *(_subkey(part, primary, public) for part in parts if part.packet.tag == Tag.PublicSubkey)]
    users = [part.packet.user_id or "" for part in parts if part.packet.tag == Tag.UserID]
    return Certificate(cert, _printable(users[0]) if users else "", tuple(keys))


def _binding_of_primary(public: PublicKey, parts: list[_Part]) -> Packet | None:
    """Return a primary key's newest self-signature, by itself or with a user id; withdrawn user ids count last."""
    direct = _newest(public, (SignatureType.DirectKey,), parts[0], public.framed)
    kept: list[Packet] = [direct] if direct else []
    withdrawn: list[Packet] = []
    for part in parts:
        if part.packet.tag == Tag.UserID:
            about = public.framed + b"\xb4" + len(part.packet.body).to_bytes(4, "big") + part.packet.body
            newest = _newest(public, _CERTIFICATIONS, part, about)
            last = _newest(public, (*_CERTIFICATIONS, _WITHDRAWN), part, about)
            if newest:
                (kept if newest is last else withdrawn).append(newest)
    return max(kept or withdrawn, key=_made, default=None)


def _subkey(part: _Part, primary: Key, by: PublicKey) -> Key:
    """Judge a subkey: bound for signing are those that both keys say belong together."""
    bare = _key(part, None, None, SignatureType.SubkeyRevocation)
    try:
        public = read_key(part.packet.body)
    except ValueError as error:
        return replace(bare, unusable=str(error))
    about = by.framed + public.framed
    binding = _newest(by, (SignatureType.SubkeyBinding,), part, about)
    key = _key(part, public, binding, SignatureType.SubkeyRevocation)
    if not binding or (not key.unusable and not _agrees(public, binding, about)):
        return replace(bare, unusable=advice(_UNBOUND, primary.fingerprint, bare.fingerprint))
    return key


def _key(part: _Part, public: PublicKey | None, binding: Packet | None, revocation: SignatureType) -> Key:
    """Apply one self-signature to a key; a revocation counts unproven, too."""
    packet, ends = part.packet, None
    created = packet.key_created or datetime.fromtimestamp(0, UTC)
    if binding:
        period = binding.key_validity_period
        ended = (created + period if period else None, binding.signature_expiration_time)
        ends = min((each for each in ended if each), default=None)
    revoked = [_made(each) for each in part.signatures if each.signature_type == revocation]
    flags = binding.key_flags if binding else None
    unusable = "may not sign, by its newest self-signature" if flags and not flags.signing else ""
    return Key(packet.fingerprint or "", packet.key_id or "", created, public, unusable, ends, min(revoked, default=None))


def _newest(by: PublicKey, kinds: Collection[SignatureType], part: _Part, about: bytes) -> Packet | None:
    """Return the newest signature of these kinds that the key made over these bytes; of two in one second the later one."""
    proven = [each for each in part.signatures if each.signature_type in kinds and _proven(by, each.body, about)]
    return max(reversed(proven), key=_made, default=None)


def _proven(by: PublicKey, body: bytes, about: bytes) -> bool:
    try:
        return by.signed(read_signature(body), about)
    except ValueError:
        return False


def _agrees(public: PublicKey, binding: Packet, about: bytes) -> bool:
    """Return whether a subkey confirms the binding (RFC 9580 5.2.1.10), as gpg demands."""
    inside = read_signature(binding.body).inside
    return inside[1:2] == _BACK and _proven(public, inside, about)


def _made(signature: Packet) -> datetime:
    return signature.signature_created or datetime.fromtimestamp(0, UTC)


def _printable(user: str) -> str:
    return "".join(letter for letter in user if letter.isprintable())[:_LONGEST_NAME]


_STRONG = (HashAlgorithm.SHA256, HashAlgorithm.SHA384, HashAlgorithm.SHA512, HashAlgorithm.SHA3_256, HashAlgorithm.SHA3_512)
_MOST = 16  # signatures of one commit; two people signing one is already rare
_MALFORMED = "has a malformed OpenPGP signature"
_OTHER = "sign it by a configured key, or add the new key to the target's verify.pgp"


def verify(payload: bytes, armored: bytes, certificates: Sequence[Certificate], now: datetime | None = None) -> str:
    """Return the fingerprint of the configured key that signed the payload. Raises Unproven, with the first signature's trouble."""
    troubles: list[Unproven] = []
    for packet in _signatures(armored):
        try:
            return _signer(payload, packet, certificates, now or datetime.now(UTC))
        except Unproven as trouble:
            troubles.append(trouble)
    raise troubles[0] if troubles else Unproven(_MALFORMED, ANEW)


def _signatures(armored: bytes) -> list[Packet]:
    """Return the signature packets; anything else among them makes the whole malformed."""
    try:
        packets = list(PacketPile.from_bytes(armored))
        if len(packets) <= _MOST and all(packet.tag == Tag.Signature for packet in packets):
            return packets
    except (RuntimeError, ValueError):
        pass
    raise Unproven(_MALFORMED, ANEW)


def _signer(payload: bytes, packet: Packet, certificates: Sequence[Certificate], now: datetime) -> str:
    """Return whose signature a packet is; its issuer is only a claim until the arithmetic agrees. Raises Unproven."""
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
    """Return why a key doesn't count now for what it signed, and the way out; empty: it does."""
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
    primary = certificate.fingerprint
    keys = ([primary, "1y", *([key.fingerprint] if key.fingerprint != primary else [])] for key in ended)
    commands = together(" && ", (advice("gpg --quick-set-expire{words}", words) for words in keys))
    way = "its owner prolongs it: {text}; then put what gpg --armor --export {} prints into the target's verify.pgp"
    return advice(way, commands, primary)


def _of(key: Key, certificate: Certificate) -> str:
    return f"{key.fingerprint} of {certificate.owner}" if certificate.owner else key.fingerprint
