"""Commands on a terminal that ask `[y/N]`, answered by the test."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping

from tests.e2e.cli.conftest import Shop
from tests.e2e.serve_process import PATIENCE


def typed(shop: Shop, answer: str, *arguments: str, environ: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a command on a terminal, type `answer` when it asks, and return the exit code and all that was shown."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "ANNEAL_CONFIG": str(shop.cli.config), "KUBECONFIG": str(shop.cli.kubeconfig), "TERM": "xterm", **(environ or {})}
    with subprocess.Popen([sys.executable, "-m", "handler", *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=env) as command:
        os.close(theirs)
        shown, end = b"", time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                part = os.read(ours, 65536) if select.select([ours], [], [], 1)[0] else b""
            except OSError:  # the other end is closed
                break
            shown += part
            if answer and shown.rstrip().endswith(b"[y/N]:"):
                os.write(ours, answer.encode() + b"\n")
                answer = ""
        os.close(ours)
        return command.wait(PATIENCE), shown.decode(errors="replace").replace("\r\n", "\n")
