"""`anneal doctor`'s rows on the programs that render and decrypt: which are here, and which targets lack one."""

from __future__ import annotations

from collections.abc import Iterable

from handler.cli.check_table import Findings
from handler.config.decryption import SOPS
from handler.config.renderer_settings import HELM, JSONNET, KUSTOMIZE, NIX
from handler.config.settings import Target
from handler.model.errors import OperatorError
from handler.render import render_tools
from handler.render.nix import nixpkgs


def look_at_tools(targets: Iterable[Target], findings: Findings) -> None:
    """Note version and path of each program; what is missing is a warning only where one of these targets needs it."""
    targets = tuple(targets)
    needs = {target.name: target.programs for target in targets}
    for name in (KUSTOMIZE, HELM, JSONNET, NIX, SOPS):
        try:
            found = render_tools.find(name)
        except OperatorError as error:
            problem = error.problems[0]
            needed_by = [target for target, programs in needs.items() if name in programs]
            if needed_by:
                findings.warn(name, f"{problem.message}; needed by {', '.join(needed_by)}", problem.fix)
            else:
                findings.skip(name, problem.message)
        else:
            findings.good(name, f"{found.version} ({found.path})")
    for target in targets:
        _look_at_directories(target, findings)


def _look_at_directories(target: Target, findings: Findings) -> None:
    for name, path in nixpkgs.paths(target.renderer.nix_path).items():
        try:
            nixpkgs.locate(name, path)
        except OperatorError as error:
            problem = error.problems[0]
            findings.warn(problem.subject, f"{problem.message}; needed by {target.name}", problem.fix)
