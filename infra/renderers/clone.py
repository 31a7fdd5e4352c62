"""`scripts/anneal`: the command line of a clone, which finds kustomize, helm and sops where scripts/renderers has built them, if it has."""

from __future__ import annotations

import os

from handler.cli import main
from infra.renderers.build import BUILD, VARIABLE

if __name__ == "__main__":
    os.environ.setdefault(VARIABLE, str(BUILD.directory / "bin"))
    main()
