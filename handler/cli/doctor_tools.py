"""`anneal doctor`'s rows on the programs that render: which are here, and which targets can't be rendered without one that isn't."""

from __future__ import annotations

from collections.abc import Iterable

from handler.cli.check_table import Findings
from handler.config.renderer_settings import HELM, JSONNET, KUSTOMIZE
from handler.config.settings import Target
from handler.model.errors import OperatorError
from handler.render import render_tools


def look_at_tools(targets: Iterable[Target], findings: Findings) -> None:
    """Note version and path of each program; what is missing is a warning only where one of these targets names its renderer."""
    needs = {target.name: target.renderer.programs for target in targets}
    for name in (KUSTOMIZE, HELM, JSONNET):
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
