"""Where kustomize and helm come from: one build of go.mod's tools, kept in a cache of its own.

They are built apart from the control plane, so that their dependencies can't move Kubernetes'. Standard library only.
"""

from __future__ import annotations

from pathlib import Path

from infra.gobuild import Build, Log, report

MODULE = Path(__file__).resolve().parent
HELM = "v3.22.0"
KUSTOMIZE = "v5.8.1"
KUBERNETES = "36"
"""The minor version that charts are rendered for, as the control plane's; without it helm takes a cluster for v1.20."""
LINKER = " ".join(
    (
        "-s -w",
        f"-X helm.sh/helm/v3/internal/version.version={HELM}",
        *(
            f"-X helm.sh/helm/v3/pkg/{package}.k8sVersion{part}={value}"
            for package in ("chartutil", "lint/rules")
            for part, value in (("Major", "1"), ("Minor", KUBERNETES))
        ),
        f"-X sigs.k8s.io/kustomize/api/provenance.version={KUSTOMIZE}",
    )
)


def binaries(*, log: Log = report) -> Path:
    """Return the directory that holds `kustomize` and `helm`, built first when the cache doesn't hold them. Raises BuildError."""
    return BUILD.ensure(log) / "bin"


BUILD = Build(
    name="renderers",
    module=MODULE,
    what="kustomize and helm",
    linker=LINKER,
)


if __name__ == "__main__":
    print(binaries())
