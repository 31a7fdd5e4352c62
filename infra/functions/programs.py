"""Programs that render in the functions' package: which a configuration needs, and what keeps a target from being rendered there.

Law: what a target's tree decides (`type: auto`) isn't known here; such a target gets kustomize and helm.
sops comes where a target decrypts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from handler.config.decryption import SOPS
from handler.config.renderer_settings import AUTO, HELM, JSONNET, KUSTOMIZE, NIX
from handler.config.settings import Settings, Target
from handler.model.errors import ConfigInvalid, Problem
from handler.render.render_tools import IN_PACKAGE
from infra.gobuild import BuildError
from infra.renderers.build import binaries

ZIP, IMAGE = "zip", "image"
"""What has the programs: the package itself, or the image that the worker is."""
BOTH = frozenset({KUSTOMIZE, HELM})
LARGEST = {KUSTOMIZE: 14_000_000, HELM: 64_000_000, JSONNET: 7_000_000, SOPS: 55_000_000}
"""Bytes unpacked, for either processor."""
_PROCESSORS = {"arm64": "arm64", "x86_64": "amd64"}
_ABSENT = "scripts/package --renderers; or --renderers image, where the worker is deployed as an image"
_WEAK = "sandbox: weak, if you trust its repository as much as the functions; or run this target in a container"


def needed(settings: Settings | None) -> frozenset[str]:
    """Return the programs of all targets that functions may have; without a configuration, all there are."""
    if not settings:
        return frozenset(LARGEST)
    known = frozenset(name for each in settings.targets for name in each.programs if name in LARGEST and _runs(name, each))
    return known | (BOTH if any(each.renderer.chosen == AUTO for each in settings.targets) else frozenset())


def _runs(name: str, target: Target) -> bool:
    """Whether a function runs a program for a target, or can't render it; instead of jsonnet's a library evaluates."""
    return name != JSONNET or target.sandbox == "weak"


def unfit(target: Target, where: str, arch: str = "") -> Iterator[Problem]:
    """Yield what keeps a target from being rendered in a function. `where`: ZIP, IMAGE; empty: nothing has programs; `arch`: Lambda's."""
    if NIX in target.renderer.programs:
        seen = "needs nix, which isn't packed for functions"
        yield Problem(f"targets[{target.name}].renderer", seen, fix="run this target in a container or a process that has nix")
        return
    needs = [name for name in target.programs if name != JSONNET]
    names = " and ".join(needs)
    if names and not where:
        yield Problem(f"targets[{target.name}].renderer", f"needs {names}, which isn't packed", fix=_ABSENT)
    if names and target.sandbox != "weak":
        seen = f"is strict, and AWS Lambda refuses the walls that {names} would run behind, in the zip and in the image form"
        yield Problem(f"targets[{target.name}].sandbox", seen, fix=_WEAK)
    has_program = where and target.sandbox == "weak" and not target.decryption
    if JSONNET in target.programs and arch == "arm64" and not target.is_template and not has_program:
        seen = "needs the program jsonnet, for Google's library of it there is none on arm64; that runs only packed, with `sandbox: weak`"
        yield Problem(f"targets[{target.name}].renderer", seen, fix=f"scripts/package --platform x86_64; or {_WEAK}, with {_ABSENT}")
    given = [name for name in target.renderer.programs if name != JSONNET]
    if target.decryption and given:
        seen = f"would give {' and '.join(given)} decrypted files on disk: AWS Lambda has no directory in memory"
        yield Problem(f"targets[{target.name}].decryption", seen, fix="run this target in a container; plain manifests can be decrypted")


def undecided(settings: Settings) -> tuple[str, ...]:
    """Return the targets that AWS Lambda can't render if their trees turn out to need a program."""
    return tuple(each.name for each in settings.targets if each.renderer.chosen == AUTO and each.sandbox != "weak")


def packed(names: frozenset[str], arch: str) -> dict[str, Path]:
    """Return programs by their place in the package, built first if need be. `arch`: as Lambda names it. Raises ConfigInvalid."""
    try:
        directory = binaries(f"linux/{_PROCESSORS[arch]}") if names else Path()
    except BuildError as error:
        raise ConfigInvalid.of("--renderers", str(error)) from error
    return {f"{IN_PACKAGE}/{name}": directory / name for name in names}
