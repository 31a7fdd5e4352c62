"""SSH signatures made by hand: what no ssh-keygen would make, security keys, and anything at all."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA1, SHA256, SHA512
from hypothesis import given
from hypothesis import strategies as st

from handler.source.signatures.signed_commit import Unproven, split
from handler.source.signatures.sshsig import read_key, verify
from tests.unit.source.signatures.ssh_signatures import (
    ED25519,
    ED25519_BLOB,
    P256,
    P256_BLOB,
    PAYLOAD,
    RSA_BLOB,
    SK_ED25519_BLOB,
    SK_P256_BLOB,
    armored,
    device,
    ecdsa,
    ed25519,
    frame,
    line,
    mpint,
    point,
    rsa_with,
    strings,
)

pytestmark = pytest.mark.slow

GOOD = {
    "ed25519": frame(ED25519_BLOB, ed25519),
    "sha256": frame(ED25519_BLOB, ed25519, hashing=b"sha256"),
    "reserved": frame(ED25519_BLOB, ed25519, reserved=b"later"),
    "ecdsa": frame(P256_BLOB, lambda data: strings(b"ecdsa-sha2-nistp256", ecdsa(data))),
    "rsa-sha2-256": frame(RSA_BLOB, rsa_with(b"rsa-sha2-256", SHA256())),
    "rsa-sha2-512": frame(RSA_BLOB, rsa_with(b"rsa-sha2-512", SHA512())),
    "sk-ed25519": frame(SK_ED25519_BLOB, device(ED25519.sign, b"sk-ssh-ed25519@openssh.com")),
    "sk-ed25519 verified": frame(SK_ED25519_BLOB, device(ED25519.sign, b"sk-ssh-ed25519@openssh.com", 5)),
    "sk-ecdsa": frame(SK_P256_BLOB, device(ecdsa, b"sk-ecdsa-sha2-nistp256@openssh.com")),
}
KEYS = [read_key(line(blob)) for blob in (ED25519_BLOB, P256_BLOB, RSA_BLOB, SK_ED25519_BLOB, SK_P256_BLOB)]


@pytest.mark.parametrize("name", GOOD)
def test_each_kind_of_key_signs_this_payload_and_no_other(name: str) -> None:
    key = verify(PAYLOAD, armored(GOOD[name]), KEYS)
    assert key in KEYS
    with pytest.raises(Unproven, match="did not sign this content"):
        verify(PAYLOAD + b" ", armored(GOOD[name]), KEYS)


UNTOUCHED = frame(SK_ED25519_BLOB, device(ED25519.sign, b"sk-ssh-ed25519@openssh.com", 4))
BAD = {
    "another namespace": (frame(ED25519_BLOB, ed25519, namespace=b"file"), "something else than git"),
    "git and more": (frame(ED25519_BLOB, ed25519, namespace=b"git\0"), "something else than git"),
    "an untouched security key": (UNTOUCHED, "a security key that wasn't touched"),
    "SHA-1": (frame(RSA_BLOB, rsa_with(b"ssh-rsa", SHA1())), "SHA-1"),
    "SHA-1 by another name": (frame(RSA_BLOB, rsa_with(b"rsa-sha2-256", SHA1())), "did not sign"),
    "a weak hash of the message": (frame(ED25519_BLOB, ed25519, hashing=b"sha1"), "malformed"),
    "another version": (frame(ED25519_BLOB, ed25519, version=2), "malformed"),
    "another magic": (frame(ED25519_BLOB, ed25519, magic=b"SSHSIX"), "malformed"),
    "bytes behind": (GOOD["ed25519"] + b"x", "malformed"),
    "bytes behind the inner one": (frame(ED25519_BLOB, lambda data: ed25519(data) + b"x"), "malformed"),
    "an algorithm that isn't the key's": (frame(ED25519_BLOB, lambda data: strings(b"ssh-rsa", ED25519.sign(data))), "malformed"),
    "a security key's without one": (frame(ED25519_BLOB, device(ED25519.sign, b"ssh-ed25519")), "did not sign"),
    "a security key's cut short": (frame(SK_ED25519_BLOB, ed25519), "malformed"),
    "a negative number": (frame(P256_BLOB, lambda _: strings(b"ecdsa-sha2-nistp256", strings(b"\xff", b"\x01"))), "malformed"),
    "no number": (frame(P256_BLOB, lambda _: strings(b"ecdsa-sha2-nistp256", strings(b"", b""))), "malformed"),
    "nothing": (b"", "malformed"),
    "a length beyond the end": (b"SSHSIG\0\0\0\1\xff\xff\xff\xff", "malformed"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_signature_that_isnt_of_the_git_namespace_or_form_is_refused(name: str) -> None:
    made, said = BAD[name]
    with pytest.raises(Unproven, match=said):
        verify(PAYLOAD, armored(made), KEYS)


@pytest.mark.parametrize(
    "text", [b"", b"-----BEGIN SSH SIGNATURE-----", b"-----BEGIN SSH SIGNATURE-----\n#\n-----END SSH SIGNATURE-----\n"]
)
def test_an_ssh_signature_that_isnt_armored_is_refused(text: bytes) -> None:
    with pytest.raises(Unproven, match="malformed"):
        verify(PAYLOAD, text, KEYS)


SMALL = rsa.generate_private_key(65537, 1024).public_key().public_numbers().n
KEY_MISTAKES = {
    "another type inside": ("ssh-rsa " + line(ED25519_BLOB).split()[1], "another type"),
    "a curve that isn't its type's": (line(strings(b"ecdsa-sha2-nistp384", b"nistp256", point(P256))), "another curve"),
    "DSA": (line(strings(b"ssh-dss", b"x")), "not accepted"),
    "a certificate": (line(strings(b"ssh-ed25519-cert-v01@openssh.com", b"x")), "not accepted"),
    "RSA of 1024 bits": (line(strings(b"ssh-rsa") + mpint(65537) + mpint(SMALL)), "1024 bits"),
    "bytes behind": (line(ED25519_BLOB + b"x"), "something follows"),
    "cut short": (line(ED25519_BLOB[:-1]), "ends too early"),
    "options": ('valid-before="20200101" ' + line(ED25519_BLOB), "something before the key's type: neither options"),
    "a principal": ("release@example.invalid " + line(ED25519_BLOB), "something before the key's type"),
    "no base64": ("ssh-ed25519 ####", "base64"),
    "a point on no curve": (line(strings(b"ecdsa-sha2-nistp256", b"nistp256", b"\x04" + bytes(64))), "Invalid EC key"),
}


@pytest.mark.parametrize("name", KEY_MISTAKES)
def test_a_key_that_isnt_one_is_a_mistake_of_the_configuration(name: str) -> None:
    text, said = KEY_MISTAKES[name]
    with pytest.raises(ValueError, match=said):
        read_key(text)


@given(st.sampled_from(sorted(GOOD)), st.integers(0), st.integers(1, 255))
def test_no_altered_signature_counts_and_none_raises_anything_else(name: str, place: int, flipped: int) -> None:
    altered = bytearray(GOOD[name])
    altered[place % len(altered)] ^= flipped
    with pytest.raises(Unproven):
        verify(PAYLOAD, armored(bytes(altered)), KEYS)


@given(st.sampled_from(sorted(GOOD)), st.integers(0, 2000))
def test_no_signature_cut_short_counts(name: str, length: int) -> None:
    cut = GOOD[name][: length % len(GOOD[name])]
    with pytest.raises(Unproven):
        verify(PAYLOAD, armored(cut), KEYS)


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_by_name(data: bytes) -> None:
    for text in (data, armored(data), armored(b"SSHSIG\0\0\0\1" + data)):
        with pytest.raises(Unproven):
            verify(PAYLOAD, text, KEYS)


@given(st.binary(max_size=200))
def test_any_key_is_read_or_refused_by_name(data: bytes) -> None:
    for blob in (data, strings(b"ssh-ed25519") + data, strings(b"ssh-rsa") + data, strings(b"ecdsa-sha2-nistp256", b"nistp256") + data):
        text = "ssh-ed25519 " + base64.b64encode(blob).decode() if blob is data else line(blob)
        try:
            read_key(text)
        except ValueError:
            continue


HEADER_LINES = st.sampled_from(
    [
        b"tree 4b825dc",
        b"parent 1",
        b"gpgsig -----BEGIN SSH SIGNATURE-----",
        b" more",
        b" ",
        b"gpgsig",
        b"gpgsig-sha256 x",
        b"gpgsigx",
        b"\xff",
        b"x y",
    ]
)


@given(st.lists(HEADER_LINES, max_size=8), st.binary(max_size=20))
def test_gpgsig_and_payload_are_together_the_whole_commit(lines: list[bytes], message: bytes) -> None:
    commit = b"\n".join(lines) + b"\n\n" + message
    try:
        signed = split(commit)
    except Unproven:
        return
    assert not any(part.startswith(b"gpgsig") for part in signed.payload.partition(b"\n\n")[0].split(b"\n"))
    assert signed.payload.endswith(message)
    assert len(signed.payload) + len(signed.signature) < len(commit)


@given(st.binary(max_size=400))
def test_any_commit_bytes_are_split_or_refused(data: bytes) -> None:
    with pytest.raises(Unproven):
        split(data)
