"""SSH keys and signatures made by hand, also such as no ssh-keygen makes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA1, SHA256, SHA512
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

PAYLOAD = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nSubject\n"
APPLICATION = b"ssh:"
ED25519 = Ed25519PrivateKey.generate()
P256 = ec.generate_private_key(ec.SECP256R1())
RSA = rsa.generate_private_key(65537, 2048)


def strings(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def mpint(value: int) -> bytes:
    return strings(value.to_bytes(value.bit_length() // 8 + 1, "big"))


def armored(frame: bytes) -> bytes:
    return b"-----BEGIN SSH SIGNATURE-----\n" + base64.encodebytes(frame) + b"-----END SSH SIGNATURE-----\n"


def line(blob: bytes) -> str:
    kind = blob[4 : 4 + int.from_bytes(blob[:4], "big")].decode()
    return f"{kind} {base64.b64encode(blob).decode()} release"


def raw(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def point(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


ED25519_BLOB = strings(b"ssh-ed25519", raw(ED25519))
P256_BLOB = strings(b"ecdsa-sha2-nistp256", b"nistp256", point(P256))
RSA_BLOB = strings(b"ssh-rsa") + mpint(65537) + mpint(RSA.public_key().public_numbers().n)
SK_ED25519_BLOB = strings(b"sk-ssh-ed25519@openssh.com", raw(ED25519), APPLICATION)
SK_P256_BLOB = strings(b"sk-ecdsa-sha2-nistp256@openssh.com", b"nistp256", point(P256), APPLICATION)


def ecdsa(data: bytes) -> bytes:
    r, s = decode_dss_signature(P256.sign(data, ec.ECDSA(SHA256())))
    return mpint(r) + mpint(s)


def device(sign: Callable[[bytes], bytes], kind: bytes, flags: int = 1) -> Callable[[bytes], bytes]:
    """Sign as a security key does (OpenSSH: PROTOCOL.u2f)."""
    tail = bytes([flags]) + (7).to_bytes(4, "big")
    hashed = hashlib.sha256(APPLICATION).digest()
    return lambda data: strings(kind, sign(hashed + tail + hashlib.sha256(data).digest())) + tail


def frame(
    blob: bytes,
    sign: Callable[[bytes], bytes],
    *,
    namespace: bytes = b"git",
    hashing: bytes = b"sha512",
    version: int = 1,
    magic: bytes = b"SSHSIG",
    reserved: bytes = b"",
    payload: bytes = PAYLOAD,
) -> bytes:
    """Make an SSH signature (OpenSSH: PROTOCOL.sshsig)."""
    digest = hashlib.new(hashing.decode(), payload).digest()
    signature = sign(b"SSHSIG" + strings(namespace, reserved, hashing, digest))
    return magic + version.to_bytes(4, "big") + strings(blob, namespace, reserved, hashing, signature)


def ed25519(data: bytes) -> bytes:
    return strings(b"ssh-ed25519", ED25519.sign(data))


def rsa_with(algorithm: bytes, hashing: SHA1 | SHA256 | SHA512) -> Callable[[bytes], bytes]:
    return lambda data: strings(algorithm, RSA.sign(data, padding.PKCS1v15(), hashing))
