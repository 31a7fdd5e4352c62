"""`scripts/anneal`: the command line of a clone, which finds kustomize, helm and nix where scripts/renderers has put them, if it has."""

from __future__ import annotations

import os

from handler.cli import main
from infra.renderers.build import VARIABLE, places

if __name__ == "__main__":
    os.environ.setdefault(VARIABLE, places())
    main()
