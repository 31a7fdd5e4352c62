"""The functions' package: what scripts/package makes, and the facts beside it that serverless.yml reads.

    package.zip    the handler, its locked libraries, the operator's configuration, and with --renderers the programs that its targets
                   need: no secret, nothing of this machine
    package.json   architecture, runtime, where the zip is, and the policies that the configuration asks for

The same inputs give the same bytes, wherever they are packed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from handler.model.errors import AnnealError, ConfigInvalid
from infra.functions import archive, configured, programs
from infra.functions.libraries import ROOT, Runtime, compiled, interpreter, libraries

_ARCHES = {"aarch64": "arm64", "arm64": "arm64", "x86_64": "x86_64", "amd64": "x86_64"}
_MB = 1_000_000
_LIMITS = {False: 96 * _MB, True: 111 * _MB}
_RARE = {"cel": 17 * _MB, "re2": 3 * _MB}
"""Bytes unpacked, without and with --ssh; and more where the configuration needs these libraries, and for each program.
Lambda's own limit is 250 MB, which all together stay far below; what is smaller starts sooner."""
_SENT = 50 * _MB
"""Bytes that Lambda takes in a request; a larger zip goes by S3, as osls sends each."""
_IMPORTED = (".py", ".pyc", ".so")
_PACKED = {".py", ".json", ".yaml", ".html", ".css", ".js", ".svg"}
_FOREIGN = (
    *("__main__.py", "cli", "library", "wsgi.py"),
    *(f"app/{name}.py" for name in ("overview", "tick_survey")),
    *(f"worker/{name}" for name in ("health_watch", "heartbeat_renewal.py", "sqs_consumer.py", "supervisor.py", "ticks.py", "worker.py")),
    *(
        f"web/{name}.py"
        for name in (
            *("__main__", "bootstrap", "connection", "connection_limits", "event_streams", "gunicorn_settings", "gunicorn_worker"),
            *("page/live_feed", "request_reader"),
        )
    ),
)
"""Of the handler, what no function is: the command line, and the server with its worker."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a package. Returns the exit status."""
    options = _options(arguments)
    try:
        return _package(options)
    except AnnealError as error:
        print("\n".join(f"package: {line}" for line in str(error).splitlines()), file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        print(f"package: {Path(error.cmd[0]).name} failed; what it said is above", file=sys.stderr)
        return 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/package", description="Packs the cloud functions; serverless.yml deploys them.")
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration that goes in, with what it includes")
    parser.add_argument("--ssh", action="store_true", help="with the libraries of ssh:// repositories and signed commits")
    parser.add_argument(
        "--renderers",
        nargs="?",
        choices=(programs.ZIP, programs.IMAGE),
        const=programs.ZIP,
        default="",
        help="with kustomize, helm and sops, as far as the configuration's targets need them; image: the worker is the image that has them",
    )
    parser.add_argument(
        "--platform",
        choices=("arm64", "x86_64", "host"),
        default="arm64",
        help="default: arm64; host: to try it here",
    )
    parser.add_argument("--python", type=_python, default="3.13", help="3.12 to 3.14; default: 3.13")
    parser.add_argument(
        "-o", dest="out", type=Path, default=ROOT / "dist" / "package.zip", metavar="FILE", help="default: dist/package.zip"
    )
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "anneal" / "functions"
    parser.add_argument("--cache", type=Path, default=cache, metavar="DIR", help="where libraries are kept")
    parser.add_argument("--uv", default="uv", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _python(text: str) -> str:
    if not re.fullmatch(r"3\.1[2-4]", text):
        raise argparse.ArgumentTypeError(f"expected 3.12, 3.13 or 3.14, found {text}")
    return text


def _package(options: argparse.Namespace) -> int:
    runtime = _runtime(options)
    facts: dict[str, Any] = {"resources": {}}
    files: dict[str, Path] = {}
    settings, rare = None, frozenset[str]()
    if options.config:
        settings, files = configured.settings_of(options.config)
        if problems := configured.unfit(settings, ssh=options.ssh, renderers=options.renderers, arch=runtime.arch):
            raise ConfigInvalid(*problems)
        if options.renderers and (names := programs.undecided(settings)):
            print(f"package: {', '.join(names)}: a kustomization or a chart there needs `sandbox: weak` on AWS Lambda", file=sys.stderr)
        for function, names in configured.variables(settings).items():
            print(f"package: set below functions.{function}.environment of serverless.yml: {', '.join(names)}", file=sys.stderr)
        rare = configured.rare_libraries(settings)
        facts |= {"configuration": "anneal.yaml", "resources": configured.resources(settings)}
    tools = programs.packed(programs.needed(settings) if options.renderers == programs.ZIP else frozenset(), runtime.arch)
    place = libraries(runtime, rare, ssh=options.ssh, uv=options.uv, cache=options.cache)
    with tempfile.TemporaryDirectory() as temporary:
        own = _own(Path(temporary) / "own", runtime)
        size = archive.write(options.out, together({**_below(place), **_below(own), **tools}, files), tools)
    facts |= {"artifact": os.path.relpath(options.out, ROOT), "runtime": runtime.name, "architecture": runtime.arch}
    options.out.with_suffix(".json").write_text(json.dumps(facts, indent=2, sort_keys=True) + "\n")
    limit = _LIMITS[options.ssh] + sum(_RARE[name] for name in rare) + sum(programs.LARGEST[each.name] for each in tools.values())
    return _told(options, runtime, size, limit)


def _runtime(options: argparse.Namespace) -> Runtime:
    host = options.platform == "host"
    arch = _ARCHES.get(platform.machine().lower(), "") if host else options.platform
    if not arch:
        raise ConfigInvalid.of("--platform host", f"Lambda has no {platform.machine()}", fix="--platform arm64")
    python = f"{sys.version_info.major}.{sys.version_info.minor}" if host else options.python
    runtime = Runtime(arch, python, interpreter(python, options.uv))
    if not runtime.interpreter:
        print(f"package: there is no Python {python} here, so nothing is compiled and a cold start takes two to three", file=sys.stderr)
        print(f"package: times as long; `uv python install {python}` mends that", file=sys.stderr)
    return runtime


def _own(place: Path, runtime: Runtime) -> Path:
    """Copy the handler, without what no function is, and compile it."""
    source = ROOT / "handler"
    for path in source.rglob("*"):
        name = path.relative_to(source)
        if path.suffix in _PACKED and not any(map(name.is_relative_to, _FOREIGN)):
            copy = place / "handler" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    compiled(place, runtime, "the handler")
    return place


def together(code: Mapping[str, Path], configuration: Mapping[str, Path]) -> dict[str, Path]:
    """Return both. Raises ConfigInvalid: a file of the configuration would take the place of code, which Python would then import."""
    tops = {each.partition("/")[0] for each in code}
    ours = tops | {each.removesuffix(".py") for each in tops}
    if odd := sorted(name for name in configuration if name.lower().endswith(_IMPORTED)):
        raise ConfigInvalid.of(odd[0], "would be imported: Python looks for libraries beside the code, too", fix="name it otherwise")
    taken = sorted(name for name in configuration if name in code or name.partition("/")[0] in ours)
    if taken:
        raise ConfigInvalid.of(taken[0], "is the name of code in the package", fix="name the file or its directory otherwise")
    return {**code, **configuration}


def _below(place: Path) -> Mapping[str, Path]:
    return {path.relative_to(place).as_posix(): path for path in place.rglob("*") if path.is_file()}


def _told(options: argparse.Namespace, runtime: Runtime, size: int, limit: int) -> int:
    """Say what was made; 1 when it is larger than it may be."""
    packed = options.out.stat().st_size
    compiled_too = "compiled" if runtime.interpreter else "not compiled"
    print(f"{options.out}: {runtime.name}, {runtime.arch}, {compiled_too}; {packed / _MB:.1f} MB, {size / _MB:.1f} MB unpacked")
    if not options.config:
        print("package: without a configuration; --config FILE packs one", file=sys.stderr)
    if packed > _SENT:
        print(f"package: Lambda takes {_SENT // _MB} MB in a request; scripts/osls sends it by S3", file=sys.stderr)
    if size > limit:
        print(f"package: that is more than {limit // _MB} MB unpacked", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
