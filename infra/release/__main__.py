"""`scripts/release`: builds what a release consists of, checks that a tag may be one, pushes the chart."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from infra.gobuild import BuildError
from infra.release import build, source, version


def commands() -> argparse.ArgumentParser:
    """Return what the script may be given."""
    parser = argparse.ArgumentParser(prog="scripts/release", allow_abbrev=False)
    parser.add_argument("--uv", default="uv", help=argparse.SUPPRESS)
    kinds = parser.add_subparsers(dest="command", required=True)
    building = kinds.add_parser("build", help="wheel, sdist, chart, SBOM, notes and checksums")
    building.add_argument("directory", type=Path)
    building.add_argument("--uncommitted", action="store_true", help="build what differs from the commit, too: no release, to try it")
    checking = kinds.add_parser("check", help="whether code, chart and changelog agree with a tag")
    checking.add_argument("tag")
    checking.add_argument("--home", default="", metavar="URL", help="of the repository that releases: pages and metadata must name it")
    checking.add_argument("--clean", action="store_true", help="nothing may differ from the commit")
    pushing = kinds.add_parser("push", help="the chart to a registry of OCI artifacts")
    pushing.add_argument("directory", type=Path)
    pushing.add_argument("registry", help="oci://host/path")
    pushing.add_argument("--plain-http", action="store_true")
    return parser


def main(arguments: list[str]) -> int:
    """Run one command; 1: the tag may not be released, or a tool has failed."""
    options = commands().parse_args(arguments)
    try:
        return _run(options)
    except (BuildError, subprocess.CalledProcessError) as error:
        print(f"release: {getattr(error, 'stderr', None) or error}", file=sys.stderr)
        return 1


def _unwritable(directory: Path) -> str:
    """Say, before minutes of work, why nothing can be put into a directory, which is made if it isn't there; empty: it can."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _run(options: argparse.Namespace) -> int:
    if options.command == "build":
        if not options.uncommitted and (differs := version.uncommitted()):
            print(*(f"release: not committed: {line}" for line in differs), sep="\n", file=sys.stderr)
            print("release: commit or stash it; to try a build of it: scripts/release build --uncommitted DIR", file=sys.stderr)
            return 1
        if complaint := _unwritable(options.directory):
            print(f"release: {options.directory}: {complaint}; name a directory that may be written", file=sys.stderr)
            return 1
        build.build(options.directory, source.committed(), options.uv)
        print(*sorted(str(path) for path in options.directory.iterdir()), sep="\n")
        return 0
    if options.command == "push":
        if not (options.directory / build.CHART).is_file():
            print(f"release: there is no {build.CHART} in {options.directory}; make it: scripts/release build DIR", file=sys.stderr)
            return 1
        print(build.push(options.directory, options.registry, plain_http=options.plain_http))
        return 0
    found = list(version.disagreements(options.tag, options.home))
    if options.clean:
        found += [f"not committed: {line}" for line in version.uncommitted()]
    print(*(f"release: {each}" for each in found), sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
