"""Where the control plane's programs come from: `KUBEBUILDER_ASSETS`, or one build of go.mod's tools, kept in a cache.

Standard library only.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from infra.gobuild import Build, BuildError, LeftOut, Log, locked

__all__ = ["ControlPlaneError", "Log", "Tools", "cache", "ensure_built", "kubectl_directory", "locked", "tools"]

MODULE = Path(__file__).resolve().parent
VERSION = "v1.36.3"
VERSION_PACKAGE = "k8s.io/component-base/version"
# Without the version a server reports v0.0.0-master and clients misjudge its features.
LINKER = (
    f"-s -w -X {VERSION_PACKAGE}.gitVersion={VERSION} -X {VERSION_PACKAGE}.gitMajor=1 "
    f"-X {VERSION_PACKAGE}.gitMinor=36 -X {VERSION_PACKAGE}.gitTreeState=clean"
)
KWOK = "sigs.k8s.io/kwok"
STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)
LEFT_OUT = (
    LeftOut("k8s.io/apiserver", "pkg/admission/plugin/policy/generic/policy_test_context.go"),
    LeftOut("k8s.io/kubernetes", "pkg/scheduler/backend/queue/testing.go"),
    LeftOut("k8s.io/kubernetes", "pkg/kubelet/eviction/*.go", instead="eviction/eviction.go"),
)
"""Two helpers of Kubernetes' own tests, for which client-go's fakes are compiled, and the kubelet: 190 of 2,800 packages."""
ASSETS = ("etcd", "kube-apiserver", "kubectl")
PROGRAMS = (*ASSETS, "kube-controller-manager", "kube-scheduler", "kwok")
HYPERKUBE = "hyperkube"
"""The program that is all of them but kubectl, by the name that it is called by; it lies beside this file."""
OTHERWISE = f", or set KUBEBUILDER_ASSETS to a directory that holds all of\n  {', '.join(PROGRAMS)}; kwok's stages still need `go`"


class ControlPlaneError(Exception):
    """What went wrong and what helps, ready to be shown."""


@dataclass(frozen=True)
class Tools:
    """The programs by name, and kwok's stages."""

    programs: dict[str, Path]
    stages: Path


def cache() -> Path:
    """Return the directory of builds and of the default instance."""
    return _BUILD.cache


def tools(log: Log) -> Tools:
    """Return the programs to start, built first when the cache doesn't hold them.

    `KUBEBUILDER_ASSETS` gives etcd, kube-apiserver and kubectl, and whatever else lies there; the rest is the build's.
    """
    assets = _assets()
    built = ensure_built(log)
    return Tools({name: assets.get(name, built / "bin" / name) for name in PROGRAMS}, built / "stages.yaml")


def kubectl_directory(log: Log) -> Path:
    """Return the directory that holds kubectl of the server's own version."""
    return (_assets().get("kubectl") or ensure_built(log) / "bin" / "kubectl").parent


def ensure_built(log: Log) -> Path:
    """Return the cached build, made now if it is missing. Raises ControlPlaneError."""
    try:
        return _BUILD.ensure(log)
    except BuildError as error:
        raise ControlPlaneError(str(error)) from error


def _assets() -> dict[str, Path]:
    """Return what `KUBEBUILDER_ASSETS` offers, by name."""
    given = os.environ.get("KUBEBUILDER_ASSETS")
    if not given:
        return {}
    directory = Path(given).resolve()
    missing = [name for name in ASSETS if not os.access(directory / name, os.X_OK)]
    if missing:
        raise ControlPlaneError(f"KUBEBUILDER_ASSETS is {given}, but {', '.join(missing)} can't be run there. Unset it to build them.")
    return {name: directory / name for name in PROGRAMS if os.access(directory / name, os.X_OK)}


def _finish(go: str, work: Path) -> None:
    """Give hyperkube the names of its servers, and lay kwok's stages beside the programs."""
    for name in PROGRAMS:
        if name != "kubectl":
            (work / "bin" / name).symlink_to(HYPERKUBE)
    (work / "stages.yaml").write_text(_stages(go))


def _stages(go: str) -> str:
    """Return kwok's stages, shipped in its module, as one stream of documents."""
    listed = subprocess.run([go, "list", "-m", "-f", "{{.Dir}}", KWOK], cwd=MODULE, capture_output=True, text=True, check=False)
    if listed.returncode:
        raise BuildError(f"`go list -m {KWOK}` failed:\n  {listed.stderr.strip()}")
    directory = Path(listed.stdout.strip()) / "kustomize" / "stage"
    return "---\n".join((directory / name).read_text().rstrip() + "\n" for name in STAGES)


_BUILD = Build(
    name="controlplane",
    module=MODULE,
    what="the control plane",
    otherwise=OTHERWISE,
    linker=LINKER,
    packages=(f"./{HYPERKUBE}", "tool"),
    left_out=LEFT_OUT,
    parts=(" ".join(STAGES),),
    finish=_finish,
)
