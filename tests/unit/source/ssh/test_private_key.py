"""Private keys that can't sign in, and why."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from handler.model.errors import ConfigInvalid
from handler.source.ssh.private_key import load_key

Made = rsa.RSAPrivateKey | dsa.DSAPrivateKey | ed448.Ed448PrivateKey | ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey


def pem(key: Made) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (rsa.generate_private_key(65537, 1024), "file key: this RSA key has 1024 bits; at least 2048 are needed; make one with"),
        (dsa.generate_private_key(1024), "file key: this is not an Ed25519, ECDSA or RSA key; make one with"),
        (ed448.Ed448PrivateKey.generate(), "file key: this is not an Ed25519, ECDSA or RSA key; make one with"),
        (ec.generate_private_key(ec.SECP256K1()), "file key: this is not an Ed25519, ECDSA or RSA key; make one with"),
    ],
    ids=["short", "dsa", "ed448", "other curve"],
)
def test_a_key_that_is_weak_or_of_another_kind_is_refused(key: Made, words: str) -> None:
    with pytest.raises(ConfigInvalid, match=words):
        load_key(pem(key), None, "file key")


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()], ids=lambda curve: curve.name)
def test_ecdsa_curves_are_accepted_also_with_crlf_line_ends(curve: ec.EllipticCurve) -> None:
    text = pem(ec.generate_private_key(curve)).replace("\n", "\r\n").rstrip()
    assert load_key(text, "not needed", "file key").get_name() == f"ecdsa-sha2-nistp{curve.key_size}"


@pytest.mark.parametrize("text", ["", "-----BEGIN OPENSSH PRIVATE KEY-----", "-----BEGIN OPENSSH PRIVATE KEY-----\n?\n", "x" * 65536])
def test_a_text_without_a_private_key_is_refused(text: str) -> None:
    with pytest.raises(ConfigInvalid, match="is not a private key"):
        load_key(text, None, "file key")
