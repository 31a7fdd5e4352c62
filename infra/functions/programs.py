"""kustomize and helm in the functions' package: which of them a configuration needs, and what keeps a target from being rendered there.

Law: what a target's tree decides (`type: auto`) isn't known here; such a target gets both.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from handler.config.renderer_settings import AUTO, HELM, KUSTOMIZE
from handler.config.settings import Settings, Target
from handler.model.errors import ConfigInvalid, Problem
from handler.render.tools import IN_PACKAGE
from infra.gobuild import BuildError
from infra.renderers.build import binaries

ZIP, IMAGE = "zip", "image"
"""What has the programs: the package itself, or the image that the worker is."""
BOTH = frozenset({KUSTOMIZE, HELM})
LARGEST = {KUSTOMIZE: 14_000_000, HELM: 64_000_000}
"""Bytes unpacked, for either processor."""
_PROCESSORS = {"arm64": "arm64", "x86_64": "amd64"}
_ABSENT = "scripts/package --renderers; or --renderers image, where the worker is deployed as an image"
_WEAK = "sandbox: weak, which lets them run without these walls (SECURITY.md); or run this target in a container"


def of_target(target: Target) -> frozenset[str]:
    """Return the programs that a target's renderer may run."""
    if target.renderer.chosen == KUSTOMIZE:
        return BOTH if target.renderer.helm_charts else frozenset({KUSTOMIZE})
    return {AUTO: BOTH, HELM: frozenset({HELM})}.get(target.renderer.chosen, frozenset())


def needed(settings: Settings | None) -> frozenset[str]:
    """Return the programs of all targets; without a configuration, both."""
    return frozenset().union(*map(of_target, settings.targets)) if settings else BOTH


def unfit(target: Target, where: str) -> Iterator[Problem]:
    """Yield what keeps a target from being rendered in a function. `where`: ZIP, IMAGE; empty: nothing has programs."""
    if target.renderer.chosen == AUTO or not of_target(target):
        return
    names = " and ".join(sorted(of_target(target)))
    if not where:
        yield Problem(f"targets[{target.name}].renderer", f"needs {names}, which isn't packed", fix=_ABSENT)
    if target.sandbox != "weak":
        seen = f"is strict, and AWS Lambda refuses the walls that {names} would run behind, in the zip and in the image form"
        yield Problem(f"targets[{target.name}].sandbox", seen, fix=_WEAK)


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
