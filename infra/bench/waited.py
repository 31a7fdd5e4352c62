"""The process whose wait is measured: one run of a target that waits, its CPU time between the begin of the wait and its end."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from handler.app.build import Handler
from handler.config.secrets import Secrets
from handler.config.settings import Settings, Wait
from handler.model.event import Job
from handler.render.sandbox import Sandbox
from infra.bench.bed import target


@dataclass
class Clocked:
    """What goes on around the run: no request comes, and its rest is timed."""

    seconds: float = 0.0
    cpu: float = 0.0

    def asked(self) -> tuple[Job, ...]:
        """Return nothing."""
        return ()

    @contextmanager
    def resting(self) -> Iterator[float]:
        """Time one wait, and say when it begins."""
        print("waiting", flush=True)
        seconds, cpu = time.monotonic(), time.process_time()
        yield 3600.0
        self.seconds, self.cpu = self.seconds + time.monotonic() - seconds, self.cpu + time.process_time() - cpu


def main() -> None:
    """Run, and print how long the wait took, what it cost, and when the commit was recorded."""
    facts = json.loads(sys.argv[1])
    with Sandbox() as sandbox:
        settings = Settings(targets=(target(facts["name"], facts["url"], {"wait": Wait(3600.0, 3600.0)}),))
        handler = Handler(settings, Secrets(), sandbox, {"KUBECONFIG": facts["kubeconfig"]})
        clocked = Clocked()
        result = handler.run(Job(facts["name"], "push"), queue_view=clocked)
        at = time.time()
        if result.problems:
            raise RuntimeError(str(result.problems))
    print(json.dumps({"seconds": clocked.seconds, "cpu": clocked.cpu, "at": at, "outcome": result.outcome}))


if __name__ == "__main__":
    main()
