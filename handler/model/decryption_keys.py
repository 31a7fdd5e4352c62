"""The keys that a target's encrypted files are opened with: the port between the app, which has them, and a render."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class DecryptionKeys(Protocol):
    """The keys of one target, asked for at each render. Nothing of git chooses one."""

    def age(self) -> tuple[str, ...]:
        """Return the texts of its age secrets, as they are now. Raises SecretUnavailable."""

    def kms(self, arn: str, wrapped: bytes, context: Mapping[str, str], place: str) -> bytes:
        """Unwrap a data key by a listed KMS key, under the handler's own identity. `place`: the file, for errors. Raises AnnealError."""
