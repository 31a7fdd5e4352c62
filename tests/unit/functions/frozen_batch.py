"""A worker function's process, as Lambda holds one: each line of its input is an event, each line of its output what came of it.

It renders in the real sandbox, which is started by the first event that needs it.
"""

from __future__ import annotations

import sys
import threading

from handler.app.run_events import RunEvents
from handler.functions.batch import Batch
from handler.model.event import Job
from handler.queues import Queue
from handler.render import Sandbox
from tests.fakes.aws_events import Context, messages
from tests.fakes.engine import cluster, engine, pushed, state_of
from tests.fakes.git_host import GitHost


class Unasked(Queue):
    """A queue that nothing is asked of."""

    def put(self, job: Job) -> str:
        raise AssertionError(job)

    def postpone(self, *_: object) -> None:
        """Keep no time."""


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    host = GitHost()
    handler = engine(cluster(), host, sandbox=Sandbox())
    worker = Batch(Unasked(), handler.run, RunEvents())
    threading.Thread(target=threading.Event().wait, name="the runtime's own", daemon=True).start()
    tell("ready")
    for number, line in enumerate(sys.stdin):
        sha = pushed(host, line.strip())
        answer = worker(messages(Job("shop", "push", hint=sha, run=f"shop.{number:012x}")), Context())
        tell(f"{answer['batchItemFailures']} {state_of(handler).commit == sha}")


if __name__ == "__main__":
    main()
