"""The process whose memory is measured: two drift runs that find nothing changed, then its peak resident memory in MB."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from handler.app.build import Handler
from handler.config.secrets import Secrets
from handler.config.settings import Settings
from handler.model.event import Job
from handler.render.sandbox import Sandbox
from infra.bench.bed import target


def main() -> None:
    """Run, and print the peak."""
    facts = json.loads(sys.argv[1])
    with Sandbox() as sandbox:
        exclusive = tuple(filter(None, [facts["exclusive"]]))
        settings = Settings(targets=(target(facts["name"], facts["url"], {"exclusive": exclusive, "orphan_grace": 86_400.0}),))
        handler = Handler(settings, Secrets(), sandbox, {"KUBECONFIG": facts["kubeconfig"]})
        for _ in range(2):
            result = handler.run(Job(facts["name"], "drift"))
            counts = {**result.counts}
            counts.pop("unchanged", 0)
            if result.problems or counts != ({"skipped": facts["undeclared"]} if facts["undeclared"] else {}):
                raise RuntimeError(f"{result.counts} {result.problems}")
    print(_peak())


def _peak() -> float:
    """Return the peak resident memory in MB; `ru_maxrss` would still show what the parent had before the exec."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
