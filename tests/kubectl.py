"""kubectl of the server's own version, for tests to look at a cluster, and change it, with another's eyes than Anneal's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Kubectl:
    """`kubectl("get", "cm", "-n", ns)` returns the parsed answer; `run` the text; `apply` hands documents over."""

    program: Path
    kubeconfig: Path

    def __call__(self, *arguments: str) -> Any:
        """Run a command that can print JSON and return it parsed."""
        return json.loads(self.run(*arguments, "-o", "json"))

    def run(self, *arguments: str, given: str | None = None) -> str:
        """Run a command and return its output; it must succeed."""
        done = self.tried(*arguments, given=given)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def tried(self, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command that may fail."""
        # kubectl caches discovery by address, and another cluster may have had this port before.
        cache = self.kubeconfig.parent / "kubectl-cache"
        command = [str(self.program), f"--kubeconfig={self.kubeconfig}", f"--cache-dir={cache}", *arguments]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=120)

    def apply(self, *documents: Mapping[str, Any], options: Sequence[str] = ()) -> str:
        """Apply documents the client-side way, as people do by hand."""
        return self.run("apply", *options, "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
