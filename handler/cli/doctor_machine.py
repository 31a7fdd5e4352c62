"""Rows of `doctor` about the machine: Python, libraries, the render child and what keeps it in, clocks."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

import yaml

from handler import __version__
from handler.cli.check_table import Findings
from handler.cli.check_target import reached
from handler.cli.session import Session
from handler.cluster.api import Api
from handler.cluster.connect import connect
from handler.config.settings import Cluster, Target
from handler.model.errors import AnnealError, ConfigInvalid, Problem, RenderFailed
from handler.model.render import RenderRequest
from handler.render import RENDERERS
from handler.render.walls import SandboxWalls
from handler.source.local_tree import open_local

_PACKAGES = ("click", "dulwich", "kubernetes", "urllib3", "PyYAML", "jsonschema", "Flask", "gunicorn", "rich")
_OLDEST = (3, 11)
_SKEW = 5.0
"""Seconds that clocks may differ: a Lease allows as much (`handler.state.lease`)."""
_SAMPLE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: doctor}\ndata: {a: b}\n"
_WALLS_FIX = (
    "on Linux on x86_64 or aarch64, let the container's seccomp profile allow prctl (PR_SET_NO_NEW_PRIVS and PR_SET_SECCOMP; the"
    " runtime's default does); AWS Lambda refuses it, and its virtual machine is the wall (SECURITY.md)"
)


def look(session: Session, findings: Findings) -> None:
    """Look at Python, libraries and the render child."""
    findings.good("anneal", f"{__version__} on {platform.system()} {platform.machine()}")
    findings.step("python", _python)
    findings.step("packages", _packages)
    _yaml(findings)
    if findings.step("sandbox", lambda: _sandbox(session)):
        _walls(session, findings)


# --- the machine
def _python() -> str:
    if sys.version_info < _OLDEST:
        seen = f"is {platform.python_version()}, {'.'.join(map(str, _OLDEST))} or newer is needed"
        raise ConfigInvalid.of("python", seen, fix=f"install a newer one; this is {sys.executable}")
    return f"{platform.python_version()} ({sys.executable})"


def _packages() -> str:
    """Return what is installed. Raises ConfigInvalid naming each library that isn't."""
    found, missing = [], []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(Problem(name, "isn't installed", fix="pip install -r requirements.txt"))
    if missing:
        raise ConfigInvalid(*missing)
    return ", ".join(found)


def _yaml(findings: Findings) -> None:
    if hasattr(yaml, "CSafeLoader"):
        findings.good("yaml", "the C loader is there")
    else:
        findings.warn(
            "yaml", "PyYAML has no C loader: rendering is about ten times slower", "install PyYAML from a wheel, or with libyaml's headers"
        )


def _sandbox(session: Session) -> str:
    """Render one object in a child, as a run would."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="anneal-doctor-") as directory:
        (Path(directory) / "sample.yaml").write_text(_SAMPLE)
        tree, _ = open_local(Path(directory))
        rendered = RENDERERS["file"].render(tree, RenderRequest(""), session.sandbox)
    if len(rendered.manifests) != 1:
        raise RenderFailed.of("render child", f"made {len(rendered.manifests)} objects of one")
    return f"a child rendered in {(time.monotonic() - started) * 1000:.0f} ms, its start included"


def _walls(session: Session, findings: Findings) -> None:
    """Say what keeps a child in here; it has tried to get out."""
    limits = session.sandbox.limits
    about = {"worker": os.getpid(), "memory": limits.memory}
    try:
        (found,) = session.sandbox.run("walls", about, [], SandboxWalls.read, subject="render child")
    except AnnealError as error:
        findings.bad("walls", error.problems)
        return
    standing = [
        "seccomp" if found.seccomp else "no seccomp filter",
        *(["a uid of its own"] if os.geteuid() == 0 else []),
        *([] if "open files" in found.can else ["no descriptors"]),
        *([] if "take more memory" in found.can else [f"{limits.memory >> 20:,} MiB of memory"]),
    ]
    text = f"of a render child: {', '.join(standing)}"
    if found.can:
        findings.warn("walls", f"{text}. It can {', '.join(found.can)}", _WALLS_FIX)
    else:
        findings.good("walls", text)


# --- clusters
def bare_cluster(session: Session, findings: Findings) -> None:
    """Look at the cluster that flags and environment name, when nothing is configured."""
    try:
        given = session.options
        way = connect(Cluster(), kubeconfig=given.kubeconfig, context=given.context, environ=session.environ, terminal=given.terminal)
        api = Api(way)
    except AnnealError as error:
        findings.warn("cluster", str(error.problems[0].message), error.problems[0].fix)
        return
    if findings.step("cluster", lambda: reached(api)):
        _clock(api, findings)


class MachineClocks:
    """Compares this machine's clock with those of clusters, each once."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._seen: set[Cluster] = set()

    def compare(self, target: Target, api: Api) -> None:
        """Note whether they agree."""
        if target.cluster not in self._seen:
            self._seen.add(target.cluster)
            _clock(api, self._findings)


def _clock(api: Api, findings: Findings) -> None:
    """Compare clocks; the server's `Date` has whole seconds, so up to one is no difference."""
    ahead = time.time() - api.server_time()
    if abs(ahead) > _SKEW:
        findings.warn("clock", f"differs from the API server's by {ahead:+.0f} s", "synchronize it: timedatectl set-ntp true")
    else:
        findings.good("clock", "agrees with the API server's")
