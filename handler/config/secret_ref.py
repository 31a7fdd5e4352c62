"""Where a secret value is found, as frozen values: references live in the configuration, values never."""

from __future__ import annotations

from dataclasses import dataclass

from handler.config.settings_shape import doc as _doc


@dataclass(frozen=True, slots=True)
class AwsSecret:
    """A secret of AWS Secrets Manager."""

    id: str = _doc("Name or ARN.", kind="awsSecret")
    key: str = _doc("Key of a secret that is a JSON object; empty: the whole text.", "", kind="secretKey")
    stage: str = _doc(
        "Which version; AWSPREVIOUS beside AWSCURRENT in a list: both are valid while one is rotated.", "AWSCURRENT", kind="stage"
    )


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Where a secret value is found: exactly one place."""

    env: str = _doc("Name of an environment variable.", "", kind="env")
    file: str = _doc("Path of a file; a trailing newline is dropped.", "", kind="secretFile")
    aws_secrets_manager: AwsSecret | None = _doc("A secret of AWS Secrets Manager.", None)
    aws_parameter: str = _doc("Name or ARN of a parameter of AWS Systems Manager.", "", kind="awsParameter")
    kubernetes_secret: str = _doc("namespace/name/key of a Secret in the handler's own cluster.", "", kind="kubernetesSecret")

    @property
    def remote(self) -> bool:
        """Whether a store must be asked for it, over the network."""
        return not (self.env or self.file)

    def __str__(self) -> str:
        if aws := self.aws_secrets_manager:
            stage = f", {aws.stage}" if aws.stage != "AWSCURRENT" else ""
            return f"AWS secret {aws.id}" + (f", key {aws.key}" if aws.key else "") + stage
        places = ("environment variable", "file", "AWS parameter", "Secret")
        names = (self.env, self.file, self.aws_parameter, self.kubernetes_secret)
        return next((f"{place} {name}" for place, name in zip(places, names, strict=True) if name), "no place")
