"""Makes what a release consists of, all of it from one commit, each file with the same bytes wherever and whenever it is made."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from datetime import UTC, datetime
from pathlib import Path

from handler import __version__
from infra.release.source import exported, repacked
from infra.release.version import section
from infra.renderers.build import binaries

WHEEL = f"anneal_gitops-{__version__}-py3-none-any.whl"
SDIST = f"anneal_gitops-{__version__}.tar.gz"
CHART = f"anneal-{__version__}.tgz"
SBOM = f"anneal-{__version__}.cdx.json"
NOTES = "notes.md"
SUMS = "SHA256SUMS"
SUMMED = (WHEEL, SDIST, CHART, SBOM)
"""What a release offers; the notes are its text."""
_DYNAMIC = 'dynamic = ["version", "dependencies"]'


def build(target: Path, epoch: int, uv: str) -> None:
    """Fill a directory that is there. Raises subprocess.CalledProcessError: a tool has failed."""
    os.umask(0o022)  # the wheel keeps modes
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        source = exported(work / "source", epoch)
        _distributions(source, work / "dist", target, epoch, uv)
        _chart(source, work / "chart", target, epoch)
        _sbom(source, work / "venv", target, epoch, uv)
    (target / NOTES).write_text(notes())
    sums = (f"{hashlib.sha256((target / name).read_bytes()).hexdigest()}  {name}\n" for name in SUMMED)
    (target / SUMS).write_text("".join(sums))


def notes() -> str:
    """Return the text of the release: the version's section of the changelog; before it has one, what is unreleased."""
    _, text = section(__version__)
    return f"{text or section('Unreleased')[1]}\n"


def _run(*command: str, epoch: int = 0, **environ: str) -> str:
    """Run a tool with nothing of this machine's settings that would show in what it makes."""
    surrounding = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0", "TZ": "UTC", **environ}
    return subprocess.run(command, env=surrounding, check=True, capture_output=True, text=True).stdout


def absolute(readme: str, home: str) -> str:
    """Return README as an index shows it, where no file lies beside it: links and pictures lead to those of this version's tag."""
    page, picture = (f"{home}/{kind}/v{__version__}/" for kind in ("blob", "raw"))
    readme = re.sub(r'(\b(?:src|srcset)=")(?!https?:)', rf"\g<1>{picture}", readme)
    readme = re.sub(r"(!\[[^\]]*\]\()(?!https?:)", rf"\g<1>{picture}", readme)
    return re.sub(r"(\]\()(?!https?:|#)", rf"\g<1>{page}", readme)


def _distributions(source: Path, made: Path, target: Path, epoch: int, uv: str) -> None:
    """Build sdist and wheel by the setuptools of the lock file; the wheel from the sdist, as an index would."""
    readme = source / "README.md"
    readme.write_text(absolute(readme.read_text(), tomllib.loads((source / "pyproject.toml").read_text())["project"]["urls"]["Repository"]))
    os.utime(readme, (epoch, epoch))
    _run(uv, "build", "--quiet", "--no-build-isolation", "--python", sys.executable, "-o", str(made), str(source), epoch=epoch)
    shutil.copyfile(made / WHEEL, target / WHEEL)
    repacked(made / SDIST, target / SDIST, epoch)


def _chart(source: Path, made: Path, target: Path, epoch: int) -> None:
    helm, chart = str(binaries() / "helm"), str(source / "infra" / "kubernetes" / "chart")
    _run(helm, "lint", "--quiet", "--strict", chart)
    _run(helm, "package", "--destination", str(made), chart)
    repacked(made / CHART, target / CHART, epoch)


def _sbom(source: Path, venv: Path, target: Path, epoch: int, uv: str) -> None:
    """Describe the environment that requirements.lock makes, as in the image, and us as what depends on it."""
    python = str(venv / "bin" / "python")
    _run(uv, "venv", "--quiet", "--python", sys.executable, str(venv))
    _run(uv, "pip", "sync", "--quiet", "--python", python, "--require-hashes", str(source / "requirements.lock"))
    project = venv / "pyproject.toml"
    project.write_text(_static((source / "pyproject.toml").read_text(), (source / "requirements.txt").read_text()))
    settings = ("--output-reproducible", "--pyproject", str(project), "--mc-type", "application", "--sv", "1.6")
    found = json.loads(_run(sys.executable, "-m", "cyclonedx_py", "environment", *settings, python))
    found["metadata"]["timestamp"] = datetime.fromtimestamp(epoch, UTC).isoformat()
    found["metadata"]["component"]["purl"] = f"pkg:pypi/anneal-gitops@{__version__}"
    (target / SBOM).write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")


def _static(pyproject: str, requirements: str) -> str:
    """Return pyproject.toml with version and dependencies written out, which setuptools reads from elsewhere."""
    lines = (line.partition("#")[0].strip() for line in requirements.splitlines())
    dependencies = json.dumps([line for line in lines if line])
    return pyproject.replace(_DYNAMIC, f'version = "{__version__}"\ndependencies = {dependencies}')


def push(source: Path, registry: str, *, plain_http: bool) -> str:
    """Push the chart to `oci://host/path`; return its reference with the digest by which it is signed and installed."""
    command = [str(binaries() / "helm"), "push", str(source / CHART), registry, *(["--plain-http"] if plain_http else [])]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    said = dict(line.split(": ", 1) for line in (done.stdout + done.stderr).splitlines() if ": " in line)
    return f"{said['Pushed'].rpartition(':')[0]}@{said['Digest']}"
