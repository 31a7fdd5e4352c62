"""OpenPGP signatures: any bytes end in a name, and only a signature of exactly these bytes by a configured key counts."""

from __future__ import annotations

import bz2
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pysequoia import CipherSuite, Profile, Sig, SignatureMode, Tsk, sign

from handler.source.signatures.openpgp import Certificate, read_certificates, verify
from handler.source.signatures.signed_commit import Unproven
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

PAYLOAD = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nSubject\n"


def made(**options: object) -> tuple[Tsk, Certificate]:
    key = Tsk.generate("release@example.com", **options)  # type: ignore[arg-type]  # a mixed dict of options
    return key, read_certificates(str(key.extract_certificate()))[0]


def fingerprints(certificate: Certificate) -> set[str]:
    return {key.fingerprint for key in certificate.keys}


RELEASE, CERTIFICATE = made()
OTHER, OTHERS = made()
GOOD = sign(RELEASE.signer(), PAYLOAD, mode=SignatureMode.DETACHED, armor=False)


@pytest.mark.parametrize("suite", [CipherSuite.Cv25519, CipherSuite.P384, CipherSuite.RSA3k])
@pytest.mark.parametrize("profile", [Profile.RFC4880, Profile.RFC9580])
def test_each_kind_of_key_signs_this_payload_and_no_other(suite: CipherSuite, profile: Profile) -> None:
    key, certificate = made(cipher_suite=suite, profile=profile)
    signature = sign(key.signer(), PAYLOAD, mode=SignatureMode.DETACHED)
    assert verify(PAYLOAD, signature, [OTHERS, certificate]) in fingerprints(certificate)
    with pytest.raises(Unproven, match="did not sign this content"):
        verify(PAYLOAD + b" ", signature, [OTHERS, certificate])


def test_an_inline_or_clear_text_message_is_no_detached_signature() -> None:
    for mode in (SignatureMode.INLINE, SignatureMode.CLEAR):
        with pytest.raises(Unproven):
            verify(PAYLOAD, sign(RELEASE.signer(), PAYLOAD, mode=mode), [CERTIFICATE])


def test_several_certificates_may_stand_in_one_block() -> None:
    both = bytes(RELEASE.extract_certificate()) + bytes(OTHER.extract_certificate())
    assert [each.fingerprint for each in read_certificates_of(both)] == [CERTIFICATE.fingerprint, OTHERS.fingerprint]


def read_certificates_of(raw: bytes) -> tuple[Certificate, ...]:
    from pysequoia import ArmorKind, armor  # noqa: PLC0415 - this test alone writes armor

    return read_certificates(armor(raw, ArmorKind.PublicKey))


def test_a_bad_signature_before_a_good_one_doesnt_hide_it_and_seventeen_exceed_the_limit() -> None:
    stranger = bytes(Sig.from_bytes(sign(OTHER.signer(), PAYLOAD, mode=SignatureMode.DETACHED)))
    assert verify(PAYLOAD, stranger + GOOD, [CERTIFICATE]) in fingerprints(CERTIFICATE)
    with pytest.raises(Unproven, match="malformed"):
        verify(PAYLOAD, stranger * 16 + GOOD, [CERTIFICATE])


def test_a_compressed_packet_is_not_unpacked() -> None:
    literal = b"b\0\0\0\0\0" + bytes(64 << 20)
    packet = b"\xcb\xff" + len(literal).to_bytes(4, "big") + literal
    packed = b"\x03" + bz2.compress(packet)
    with pytest.raises(Unproven, match="malformed"):
        verify(PAYLOAD, b"\xc8\xff" + len(packed).to_bytes(4, "big") + packed, [CERTIFICATE])


@each_row("tag", range(64))
def test_any_other_packet_makes_it_malformed(tag: int) -> None:
    if tag != 2:
        with pytest.raises(Unproven, match="malformed"):
            verify(PAYLOAD, bytes([0xC0 | tag, 1, 4]) + GOOD, [CERTIFICATE])


@given(st.integers(0), st.integers(1, 255))
def test_an_altered_signature_is_refused_by_name_or_is_still_one_of_this_payload(place: int, flipped: int) -> None:
    """Its unhashed part isn't protected (RFC 9580 5.2.3), so an alteration there changes nothing of whose it is."""
    altered = bytearray(GOOD)
    altered[place % len(GOOD)] ^= flipped
    for payload in (PAYLOAD, PAYLOAD + b" "):
        try:
            signer = verify(payload, bytes(altered), [CERTIFICATE])
        except Unproven:
            continue
        assert payload == PAYLOAD
        assert signer in fingerprints(CERTIFICATE)


@given(st.integers(0), st.integers(1, 255))
def test_an_altered_certificate_is_refused_by_name_or_vouches_for_nothing_else(place: int, flipped: int) -> None:
    altered = bytearray(bytes(CERTIFICATE.cert))
    altered[place % len(altered)] ^= flipped
    try:
        certificates = read_certificates_of(bytes(altered))
    except ValueError:
        return
    signer = {key.fingerprint for each in certificates for key in each.keys} & fingerprints(CERTIFICATE)
    with contextlib.suppress(Unproven):
        assert verify(PAYLOAD, GOOD, certificates) in signer
    with pytest.raises(Unproven):
        verify(PAYLOAD + b" ", GOOD, certificates)


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_by_name(data: bytes) -> None:
    for text in (data, GOOD[:20] + data, b"\xc2\xff" + len(data).to_bytes(4, "big") + data, GOOD[: len(data) % len(GOOD)]):
        with pytest.raises(Unproven):
            verify(PAYLOAD, text, [CERTIFICATE])


@given(st.text(max_size=200), st.binary(max_size=200))
def test_any_key_is_read_or_refused_by_name(text: str, data: bytes) -> None:
    for armored in (text, "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n" + text + "\n-----END PGP PUBLIC KEY BLOCK-----\n"):
        with pytest.raises(ValueError, match=r"OpenPGP|private"):
            read_certificates(armored)
    with pytest.raises(ValueError, match=r"OpenPGP|private"):
        read_certificates_of(data)
