"""The programs that build and run an image without an engine: debootstrap, buildah and runc, out of Debian's packages.

They are unpacked, not installed. Those that look for their files under /usr are run in a mount namespace where ours lie over the
machine's; nothing of the machine changes.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from infra.debian import unpacked

PACKAGES = (
    "buildah",
    "debootstrap",
    "golang-github-containers-common",
    "golang-github-containers-image",
    "libgpgme11",
    "libsubid4",
    "runc",
)
_OVERLAID = 'mount -t overlay overlay -o "lowerdir=$0/usr:/usr" /usr && exec "$@"'


class ContainerError(Exception):
    """What went wrong, ready to be shown."""


def cache_place() -> Path:
    """Return the directory of everything that is kept."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "anneal" / "container"
    place.mkdir(parents=True, exist_ok=True)
    return place


def missing() -> str:
    """Say why no image can be built and run here; empty: it can."""
    if not sys.platform.startswith("linux"):
        return f"containers need Linux, this is {platform.system()}"
    if os.geteuid() != 0:
        return "mount namespaces and chroots need root"
    if absent := [name for name in ("apt-get", "dpkg", "unshare") if not shutil.which(name)]:
        return f"the tools come out of Debian's packages, and there is no {' and no '.join(absent)}"
    if not shutil.which("go"):
        return "the programs that render are compiled, and there is no go"
    tried = subprocess.run(["unshare", "--mount", "--pid", "--net", "--fork", "true"], capture_output=True, text=True, check=False)
    return f"no namespaces of our own: {tried.stderr.strip()}" if tried.returncode else ""


@cache
def tools() -> Path:
    """Return where the packages are unpacked, for this process."""
    return unpacked("container-tools", PACKAGES)


def overlaid(*command: str, network: bool = False, environment: dict[str, str] | None = None) -> str:
    """Run a program with our /usr over the machine's, in namespaces of its own; return what it printed. Raises ContainerError.

    `network`: whether it may reach any.
    """
    namespaces = ["--mount", "--propagation", "private", *([] if network else ["--net"])]
    whole = ["unshare", *namespaces, "sh", "-c", _OVERLAID, str(tools()), *command]
    done = subprocess.run(whole, capture_output=True, text=True, check=False, env=os.environ | (environment or {}))
    if done.returncode:
        raise ContainerError(f"{' '.join(command[:3])}: {(done.stderr.strip() or done.stdout.strip())[-3000:]}")
    return done.stdout


def runc(*arguments: str) -> list[str]:
    """Return the command line of the runtime: the one that Docker, containerd and Podman use."""
    return [str(tools() / "usr" / "sbin" / "runc"), "--root", str(cache_place() / "runc"), *arguments]
