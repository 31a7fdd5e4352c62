"""Data keys that AWS KMS has wrapped, one request each, under the handler's own identity; nothing is cached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handler.aws.clients import AwsClients, asked
from handler.aws.secret_stores import region_of
from handler.model.errors import DecryptionRefused


class AwsKms:
    """Unwraps data keys. Safe to share between threads."""

    def __init__(self, aws: AwsClients) -> None:
        self._aws = aws

    def unwrap(self, arn: str, wrapped: bytes, context: Mapping[str, str], place: str) -> bytes:
        """Return a data key. `arn`: of the only key that may have wrapped it; `place`: the file that holds it.

        Raises DecryptionRefused: it isn't this key's, or the key can't be used; AccessDenied, ClusterUnavailable.
        """

        def ask() -> Any:
            client = self._aws.client("kms", region_of(arn))
            return client.decrypt(CiphertextBlob=wrapped, KeyId=arn, EncryptionContext=dict(context))

        return bytes(asked(f"{place}, for {arn}", {"Decrypt": arn}, ask, DecryptionRefused)["Plaintext"])
