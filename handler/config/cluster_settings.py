"""The configuration's half about clusters, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass

from handler.config.secret_ref import SecretRef
from handler.config.settings_shape import doc as _doc


@dataclass(frozen=True, slots=True)
class Eks:
    """A cluster of Amazon EKS, signed in to by AWS credentials: its address and authority are asked, its token is made anew in time."""

    cluster: str = _doc("Name of the cluster.", kind="eksCluster")
    region: str = _doc("Region; empty: the environment's.", "", kind="region")
    role: str = _doc("ARN of a role to assume first; empty: the handler's own.", "", kind="roleArn")

    def __str__(self) -> str:
        return f"EKS cluster {self.cluster}" + (f" in {self.region}" if self.region else "") + (f" as {self.role}" if self.role else "")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Which cluster. Order: flag, this, KUBECONFIG, ~/.kube/config, in-cluster."""

    kubeconfig: SecretRef | None = _doc("Where a kubeconfig lies: the path of a file, or a secret that holds one.", None)
    context: str = _doc("Context of the kubeconfig; empty: its current one.", "")
    in_cluster: bool = _doc("Use the pod's own service account.", False)
    eks: Eks | None = _doc("A cluster of Amazon EKS.", None)
    server: str = _doc("Pin: refuse any other API server address.", "", kind="server")

    @property
    def name(self) -> str:
        """How messages, tables and metrics call this cluster: what the configuration says of it."""
        held = f"kubeconfig {self.kubeconfig.file or self.kubeconfig}" if self.kubeconfig else ""
        place = str(self.eks) if self.eks else "in-cluster" if self.in_cluster else held
        return ", ".join(part for part in (place, f"context {self.context}" if self.context else "") if part) or "default"
