"""A server beside the command line: its configuration, and `anneal serve` on a free port."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.cli.conftest import Shop
from tests.patience import PATIENCE


def configure(shop: Shop, *targets: dict[str, Any], **top: Any) -> None:
    """Write a configuration of these targets; each follows the shop's repository unless it says otherwise."""
    made = [
        {
            "repository": {"url": shop.host.url_of(shop.work.directory.name)},
            "path": "deploy",
            "namespaces": [shop.namespace],
            "namespace": shop.namespace,
            **target,
        }
        for target in targets
    ]
    head = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "stateNamespace": shop.namespace, **top}
    shop.cli.config.write_text(json.dumps({**head, "targets": made}))


@contextmanager
def server(shop: Shop, *arguments: str) -> Iterator[Path]:
    """Run a server; yield its log."""
    log = shop.cli.config.parent / "server.log"
    env = {**os.environ, "ANNEAL_CONFIG": str(shop.cli.config), "KUBECONFIG": str(shop.cli.kubeconfig)}
    with log.open("wb") as said, subprocess.Popen([sys.executable, "-m", "handler", *arguments], stderr=said, env=env) as running:
        try:
            yield log
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(PATIENCE)
