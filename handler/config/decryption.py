"""What may open a target's encrypted files, as a frozen value: its age keys and keys of AWS KMS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from handler.config.git_settings import SecretRef
from handler.config.settings_shape import doc as _doc

SOPS = "sops"
"""The program that decrypts, whatever renders."""


@dataclass(frozen=True, slots=True)
class Decryption:
    """The keys that files encrypted by SOPS are opened with; git chooses none, and no other is ever used."""

    age: tuple[SecretRef, ...] = _doc(
        "Secrets that hold age keys (AGE-SECRET-KEY-1…, several lines, comments) or an OpenSSH private key.", factory=tuple
    )
    kms: tuple[str, ...] = _doc("ARNs of keys of AWS KMS; the handler's own identity asks them.", kind="kmsArn", factory=tuple)
    mac: Literal["verify", "ignore"] = _doc("ignore: take also files whose MAC is another, as Flux does.", "verify")


def decryption_references(decryption: Decryption | None) -> Iterator[tuple[str, SecretRef]]:
    """Yield what opens a target's encrypted files, each with its place below `decryption`."""
    for number, ref in enumerate(decryption.age if decryption else ()):
        yield f"age[{number}]", ref
