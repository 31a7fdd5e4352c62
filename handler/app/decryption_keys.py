"""The keys that one target lists for its encrypted files, as the handler has them: age secrets, and KMS under its own identity.

Law: what isn't listed for the target isn't here; another target's keys open nothing of this one's repository.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from handler.config.decryption import Decryption
from handler.config.secrets import Reading
from handler.model.advice import advice
from handler.model.errors import DecryptionRefused

UnwrapKey = Callable[[str, bytes, Mapping[str, str], str], bytes]


@dataclass(frozen=True, slots=True)
class TargetKeys:
    """`handler.model.decryption_keys.DecryptionKeys` of one target. `unwrap`: asks AWS KMS."""

    settings: Decryption
    secrets: Reading = field(repr=False)
    unwrap: UnwrapKey = field(repr=False)

    def age(self) -> tuple[str, ...]:
        """Return the texts of its age secrets, as they are now. Raises SecretUnavailable."""
        return tuple(self.secrets.read(ref).reveal() for ref in self.settings.age)

    def kms(self, arn: str, wrapped: bytes, context: Mapping[str, str], place: str) -> bytes:
        """Unwrap a data key. Raises DecryptionRefused: the target doesn't list this one; else as `AwsKms.unwrap`."""
        if arn not in self.settings.kms:
            raise DecryptionRefused.of(
                place, f"would be opened by {arn}, which isn't listed", fix=advice("decryption: {kms: {yaml}}", [arn])
            )
        return self.unwrap(arn, wrapped, context, place)
