"""What a target may decrypt SOPS' files with: the port between the app, which has the keys, and a render."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


class DecryptionKeys(Protocol):
    """The keys of one target, asked for at each render. Nothing of git chooses one."""

    def age(self) -> tuple[str, ...]:
        """Return the texts of its age secrets, as they are now. Raises SecretUnavailable."""

    def kms(self, arn: str, wrapped: bytes, context: Mapping[str, str], place: str) -> bytes:
        """Unwrap a data key by a listed KMS key, under the handler's own identity. `place`: the file, for errors. Raises AnnealError."""


@dataclass(frozen=True, slots=True)
class Decryption:
    """`target`: for messages; `arns`: the KMS keys that it lists; `verify`: files whose MAC is another are refused.

    `keys`: None where no key is to be had: values are placeholders then, and nothing is asked.
    """

    target: str
    keys: DecryptionKeys | None = field(default=None, repr=False)
    arns: tuple[str, ...] = ()
    verify: bool = True
