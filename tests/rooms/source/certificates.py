"""A private certificate authority for tests: right certificates and wrong ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)


class Authority:
    """An authority; `file`: what trusts it."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = directory / f"{name}-ca.pem"
        now = datetime.now(UTC)
        built = self._builder(self._name, self._key, now - _DAY, now + _DAY)
        built = built.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.file.write_bytes(built.sign(self._key, SHA256()).public_bytes(Encoding.PEM))

    def certificate(self, name: str, address: str = "127.0.0.1", *, days: int = 1, since: int = -2) -> Path:
        """Make a host's certificate for an IP address; key and certificate in one file."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        built = self._builder(subject, key, now + since * _DAY, now + days * _DAY)
        built = built.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
        made = built.sign(self._key, SHA256()).public_bytes(Encoding.PEM)
        file = self._directory / f"{name}.pem"
        file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + made)
        return file

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, since: datetime, until: datetime) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number(), since, until)
        return builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
