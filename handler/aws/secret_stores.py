"""Secrets of Secrets Manager, parameters of Systems Manager and data keys that KMS has wrapped, one request each; nothing is cached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handler.aws.clients import AwsClients, asked
from handler.config.git_settings import SecretRef
from handler.model.errors import DecryptionRefused, SecretUnavailable

CURRENT = "AWSCURRENT"  # the stage that every secret with a value has


class AwsSecretStores:
    """Reads whole secrets and parameters. Safe to share between threads."""

    def __init__(self, aws: AwsClients) -> None:
        self._aws = aws

    def secret(self, ref: SecretRef) -> str | None:
        """Return a secret's text, or its bytes as text; None: it has no version of that stage. Raises SecretUnavailable."""
        wanted = ref.aws_secrets_manager
        if wanted is None:
            raise SecretUnavailable.of(str(ref), "is no secret of AWS Secrets Manager")

        def ask() -> Any:
            client = self._aws.client("secretsmanager", self._aws.region(region_of(wanted.id), str(ref), SecretUnavailable))
            try:
                return client.get_secret_value(SecretId=wanted.id, VersionStage=wanted.stage)
            except client.exceptions.ResourceNotFoundException:
                if wanted.stage == CURRENT:
                    raise
                client.get_secret_value(SecretId=wanted.id, VersionStage=CURRENT)  # the code is the same when there is no such secret
                return {"SecretString": None}

        answer = asked(str(ref), {"GetSecretValue": wanted.id}, ask, SecretUnavailable)
        if "SecretString" in answer:
            text: str | None = answer["SecretString"]
            return text
        return _decoded(answer["SecretBinary"], ref)

    def parameter(self, ref: SecretRef) -> str:
        """Return a parameter's value, decrypted. Raises SecretUnavailable."""
        name = ref.aws_parameter

        def ask() -> Any:
            client = self._aws.client("ssm", self._aws.region(region_of(name), str(ref), SecretUnavailable))
            return client.get_parameter(Name=name, WithDecryption=True)

        return str(asked(str(ref), {"GetParameter": f"parameter {name}"}, ask, SecretUnavailable)["Parameter"]["Value"])


def region_of(name: str) -> str:
    """Return the region that an ARN names (arn:partition:service:region:account:…); of a plain name nothing."""
    parts = name.split(":")
    return parts[3] if parts[0] == "arn" and len(parts) > 5 else ""


def _decoded(raw: bytes, ref: SecretRef) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:  # raised outside below: it holds the bytes
        problem = "is not UTF-8 text"
    raise SecretUnavailable.of(str(ref), problem)


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
