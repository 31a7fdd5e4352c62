"""The locked libraries of one platform and Python: installed by uv, trimmed, compiled, and kept in the cache, so that each is made once.

Never the host's wheels: uv takes only wheels that say they are for the platform and Python asked for, and checks their hashes.
Bytecode makes a cold start two to three times as fast: the functions' own disk is read-only, so what isn't compiled now is compiled at each
start. It needs an interpreter of that very Python; without one the libraries go as source, and the packager prints that.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

ROOT = Path(__file__).resolve().parents[2]
PLACE = "/var/task"
"""Where Lambda unpacks a function: the paths in its tracebacks."""
TAGS = {"arm64": "aarch64-manylinux_2_28", "x86_64": "x86_64-manylinux_2_28"}
"""Lambda's Pythons since 3.12 stand on glibc 2.34. With an older tag uv would take dulwich's wheel without its compiled parts."""

_GIT_COMMANDS = (
    *("am", "annotate", "archive", "bisect", "cli", "diff", "diff_tree", "diffstat", "fastexport", "filter_branch", "gc", "lfs_server"),
    *("maintenance", "mbox", "merge", "merge_drivers", "notes", "patch", "range_diff", "rebase", "rerere", "server", "signature", "stash"),
    *("subtree", "trailers", "walk", "web", "whitespace", "worktree"),
)
"""Modules of dulwich that only its commands import, or that change a repository: we fetch."""
_LEFT_OUT = (
    "bin/*",
    "kubernetes/aio/*",  # nothing imports it
    "kubernetes/client/api/*",  # typed APIs and models are loaded when they are named, and we name none
    "kubernetes/client/models/[a-z]*",
    "dulwich/aiohttp/*",  # a server; it needs aiohttp, which is left out, too
    "dulwich/porcelain/*",  # git's commands; we use what is below them
    "dulwich/contrib/*",
    "dulwich/cloud/*",
    *(f"dulwich/{name}.py" for name in _GIT_COMMANDS),
    "dulwich/_diff_tree.*",
    "authlib/integrations/*",  # web frameworks' and HTTP clients' ways to it; we use what is below them
    "authlib/jose/*",  # joserfc has taken its place
    "authlib/oauth1/*",
    "authlib/oidc/registration/*",
    "authlib/oidc/rpinitiated/*",
    "botocore/cacert.pem",  # certifi's are taken
    "dateutil/rrule.py",  # calendars, and time zones by name: what reads times needs neither
    "dateutil/zoneinfo/*",
    "urllib3/contrib/emscripten/*",  # browsers
    "werkzeug/debug/*",  # its server for developers
    "werkzeug/middleware/*",
    "click/testing.py",
    "jsonschema/benchmarks/*",  # its authors' own
    "bazel-project/*",  # samples that its wheels hold by mistake
    "cel_expr_python/ext/*",  # each has the whole of CEL in it once more; the extensions we use are in CEL itself
    "pydantic/mypy.py",
    "pydantic/v1/*",
    "cffi/*",  # makes bindings; what cryptography runs with is _cffi_backend
    "*/tests/*",
    "*/test_*.py",
    "*_test.py",
    "*.pyi",
    "*.pyx",
    "*.pxd",
    "*.c",
    "*.h",
    "*/py.typed",
    "*/__pycache__/*",
    "*.pth",
    ".lock",
)
_RARE = {"cel": ("cel_expr_python/*", "cel_expr_python-*"), "re2": ("re2/*", "google_re2-*")}
"""What few need: CEL, a fifth of the package, `healthCheckExprs`; RE2 `keyTransformations`, which a function only reads."""
_KEPT = ("METADATA", "LICEN", "COPYING", "NOTICE", "AUTHORS", "ENTRY_POINTS")
"""Of what an installer notes about a library: what its licence asks for, and `importlib.metadata` reads."""
_KEPT_FOR = 4 * 24 * 3600
"""Seconds."""
_ENDPOINTS = "botocore/data/endpoints.json"
"""A megabyte of names; botocore reads it compressed, too, as its wheel has the services."""
_SERVICES = {"sqs", "sts", "eks", "secretsmanager", "ssm"}
"""Of the 400 services that botocore describes, those we speak to."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the package is for. `arch`: arm64 or x86_64; `python`: 3.13; `interpreter`: one of that Python, for its bytecode, or empty."""

    arch: str
    python: str
    interpreter: str = ""

    @property
    def name(self) -> str:
        """Return it as Lambda names it."""
        return f"python{self.python}"


def libraries(runtime: Runtime, rare: Collection[str], *, ssh: bool, uv: str, cache: Path) -> Path:
    """Return the directory with all libraries of a runtime. `rare`: with these, of `_RARE`; `ssh`: with those of `--ssh`.

    Raises:
        subprocess.CalledProcessError: uv or the compiler failed; it has said why.
    """
    lock = ROOT / ("requirements-functions-ssh.lock" if ssh else "requirements-functions.lock")
    made_by = f"{runtime.arch} {runtime.python} {_bytecode(runtime)} {sorted(rare)}".encode()
    key = hashlib.sha256(b"\0".join([lock.read_bytes(), Path(__file__).read_bytes(), made_by])).hexdigest()
    place = cache / f"{runtime.name}-{runtime.arch}-{key[:16]}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if place.exists():
            os.utime(place)
        else:
            _forget(cache)
            with tempfile.TemporaryDirectory(dir=cache) as temporary:
                made = Path(temporary) / "libraries"
                _install(lock, runtime, uv, made)
                _trim(made, [pattern for name in _RARE.keys() - set(rare) for pattern in _RARE[name]])
                compiled(made, runtime, "the libraries")
                made.rename(place)
    return place


def _bytecode(runtime: Runtime) -> str:
    """Return which bytecode the interpreter writes, wherever it lies; empty: there is none."""
    if not runtime.interpreter:
        return ""
    asked = "import importlib.util, sys; print(sys.implementation.cache_tag, sys.version_info, importlib.util.MAGIC_NUMBER)"
    return subprocess.run([runtime.interpreter, "-I", "-S", "-c", asked], capture_output=True, text=True, check=True).stdout


def _forget(cache: Path) -> None:
    """Remove what hasn't been used for some days: locks have moved on. The lock is held; the caller has just touched its own."""
    for path in cache.glob("python3*"):
        if path.stat().st_mtime < time.time() - _KEPT_FOR:
            shutil.rmtree(path)


def _install(lock: Path, runtime: Runtime, uv: str, place: Path) -> None:
    """Install what is locked. Its dependencies aren't followed: the lock has them all but those that are left out on purpose."""
    print(f"package: installing the libraries for {runtime.name} on {runtime.arch}", file=sys.stderr)
    wanted = ["--python-version", runtime.python, "--python-platform", TAGS[runtime.arch], "--only-binary", ":all:"]
    kept = ["--require-hashes", "--no-deps", "--no-compile-bytecode", "--link-mode", "hardlink", "--target", str(place)]
    subprocess.run([uv, "pip", "install", "--quiet", *wanted, *kept, "-r", str(lock)], check=True)


def _trim(place: Path, more: Sequence[str]) -> None:
    """Remove what no function needs, and what `more` matches; compress what is read so."""
    for path in sorted(place.rglob("*"), reverse=True):
        if path.is_file() and _unneeded(path.relative_to(place), (*_LEFT_OUT, *more)):
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    endpoints = place / _ENDPOINTS
    endpoints.with_name(f"{endpoints.name}.gz").write_bytes(gzip.compress(endpoints.read_bytes(), mtime=0))
    endpoints.unlink()


def _unneeded(name: PurePath, left_out: Sequence[str]) -> bool:
    match name.parts:
        case ("botocore", "data", service, _, *_):
            return service not in _SERVICES
        case (metadata, *_, last) if metadata.endswith(".dist-info"):
            return not last.upper().startswith(_KEPT) or any(fnmatchcase(str(name), pattern) for pattern in left_out)
    return any(fnmatchcase(str(name), pattern) for pattern in left_out)


def compiled(place: Path, runtime: Runtime, what: str) -> None:
    """Compile every module below a directory, the same bytes each time; nothing without an interpreter of that Python.

    The bytecode names the paths it will have, and is never checked against the source: both are fixed once they are packed (PEP 552).
    """
    if not runtime.interpreter:
        return
    print(f"package: compiling {what} with {runtime.interpreter}", file=sys.stderr)
    how = ["-q", "-j", "1", "--invalidation-mode", "unchecked-hash", "-s", str(place), "-p", PLACE]
    environ = {**os.environ, "PYTHONHASHSEED": "0"}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    bare = "-I", "-S"  # whatever else is loaded shares its strings with the code, and marshal writes that down
    subprocess.run([runtime.interpreter, *bare, "-m", "compileall", *how, str(place)], check=True, env=environ)


def interpreter(python: str, uv: str) -> str:
    """Return an interpreter of a Python that is on this machine; empty: there is none."""
    found = subprocess.run([uv, "python", "find", "--no-python-downloads", python], capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return found.stdout.strip()
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")  # its shims are on PATH, and start only what is selected
    return next((str(path) for path in sorted(pyenv.glob(f"versions/{python}.*/bin/python{python}"))), "")
