"""What stands in for Go's image: the base image's stand-in, with the machine's Go mounted where that image has its own.

The modules are those that infra/renderers has fetched, and what it has compiled is shared: with -trimpath a package is the same wherever
its source lies, so the image's build links what is there. The build itself has no network.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from infra.container import base
from infra.container.tools import ContainerError
from infra.gobuild import BuildError
from infra.renderers import build as renderers

VERSION = "1.26"
IMAGE = f"docker.io/library/golang:{VERSION}-{base.SUITE}"
OFFLINE = ("GOPROXY=off",)
"""Build arguments; GOFLAGS of this machine are none of the image's."""


def dockerfile(base_image: str) -> str:
    """Return what the stand-in is made by; another Go makes it, and all that is built on it, anew."""
    path = "/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return f"FROM {base_image}\nENV GOLANG_VERSION={version()} GOTOOLCHAIN=local GOPATH=/go GOCACHE=/go/build PATH={path}\n"


def version() -> str:
    """Return the machine's Go, e.g. go1.26.8. Raises ContainerError."""
    return _environment()["GOVERSION"]


def volumes() -> tuple[str, ...]:
    """Return what is mounted while the image is built, once modules and compiled packages are there. Raises ContainerError."""
    try:
        renderers.binaries(log=lambda _: None)
    except BuildError as error:
        raise ContainerError(str(error)) from error
    for module in (renderers.MODULE, renderers.SOPS.module):
        _go("list", "-deps", "tool", module=module)  # a build that was kept may have outlived its modules
    found = _environment()
    return (
        f"{found['GOROOT']}:/usr/local/go:ro",
        f"{found['GOMODCACHE']}:/go/pkg/mod:ro",
        f"{found['GOCACHE']}:/go/build",
    )


def _environment() -> dict[str, str]:
    found: dict[str, str] = json.loads(_go("env", "-json", "GOROOT", "GOMODCACHE", "GOCACHE", "GOVERSION"))
    return found


def _go(*arguments: str, module: Path = renderers.MODULE) -> str:
    done = subprocess.run(["go", *arguments], cwd=module, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ContainerError(f"go {' '.join(arguments[:2])}: {done.stderr.strip()[-3000:]}")
    return done.stdout
