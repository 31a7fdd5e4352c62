"""Commands on a terminal that ask `[y/N]`, answered by the test."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from tests import terminal
from tests.e2e.cli.conftest import Shop


def typed(shop: Shop, answer: str, *arguments: str, environ: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a command on a terminal, type `answer` when it asks (empty: it doesn't), and return exit code and all that was written."""
    env = {"ANNEAL_CONFIG": str(shop.cli.config), "KUBECONFIG": str(shop.cli.kubeconfig), **(environ or {})}
    dialogue = [("[y/N]", answer)] if answer else []
    return terminal.typed([sys.executable, "-m", "handler", *arguments], dialogue, environ=env, styled=True)
