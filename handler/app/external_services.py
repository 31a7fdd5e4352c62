"""Stores of secrets, a cloud's keys and its list of clusters: a row each, whose library is loaded at its first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from handler.aws.clients import AwsClients
from handler.aws.eks import EksClusters
from handler.aws.secret_stores import AwsKms, AwsSecretStores
from handler.config.decryption import Decryption
from handler.config.git_settings import SecretRef
from handler.config.remote_secrets import Fetch, nowhere
from handler.config.secrets import Reading
from handler.model.advice import advice
from handler.model.errors import DecryptionRefused


class ExternalServices:
    """The ways to them, made at first use. Safe to share between threads, not across a fork."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    @cached_property
    def _aws(self) -> AwsClients:
        return AwsClients(self._environ)

    @cached_property
    def aws(self) -> AwsSecretStores:
        """Amazon's stores of secrets."""
        return AwsSecretStores(self._aws)

    @cached_property
    def eks(self) -> EksClusters:
        """Clusters of EKS."""
        return EksClusters(self._aws)

    @cached_property
    def kms(self) -> AwsKms:
        """Amazon's keys."""
        return AwsKms(self._aws)

    @cached_property
    def secrets(self) -> Fetch:
        """Secrets of the handler's own cluster."""
        from handler.cluster.own_secrets import OwnSecrets

        return OwnSecrets(self._environ)

    def fetch(self, ref: SecretRef) -> str | None:
        """Ask the place that a reference names. Raises SecretUnavailable."""
        ask = next((way for place, way in PLACES.items() if getattr(ref, place)), None)
        return ask(self)(ref) if ask else nowhere(ref)


PLACES: Mapping[str, Callable[[ExternalServices], Fetch]] = {
    "aws_secrets_manager": lambda services: services.aws.secret,
    "aws_parameter": lambda services: services.aws.parameter,
    "kubernetes_secret": lambda services: services.secrets,
}
"""By the field of a reference that names the place: what asks it."""


def fetcher(environ: Mapping[str, str]) -> Fetch:
    """Return what asks the stores that references name."""
    return ExternalServices(environ).fetch


UnwrapKey = Callable[[str, bytes, Mapping[str, str], str], bytes]


@dataclass(frozen=True, slots=True)
class TargetKeys:
    """`handler.render.sops.decryptor.DecryptionKeys` of one target: the keys that it lists, no other's. `unwrap`: asks KMS."""

    settings: Decryption
    secrets: Reading = field(repr=False)
    unwrap: UnwrapKey = field(repr=False)

    def age(self) -> tuple[str, ...]:
        """Return the texts of its age secrets, as they are now. Raises SecretUnavailable."""
        return tuple(self.secrets.read(ref).reveal() for ref in self.settings.age)

    def kms(self, arn: str, wrapped: bytes, context: Mapping[str, str], place: str) -> bytes:
        """Unwrap a data key. Raises DecryptionRefused: the target doesn't list this one; else as `AwsKms.unwrap`."""
        if arn not in self.settings.kms:
            fix = advice("decryption: {kms: {yaml}}", [arn])
            raise DecryptionRefused.of(place, f"would be opened by {arn}, which isn't listed", fix=fix)
        return self.unwrap(arn, wrapped, context, place)
