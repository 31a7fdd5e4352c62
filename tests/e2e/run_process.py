"""A run in a process of its own, which can be killed or paused in the middle. The processes are forked from a clean, warm server."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess

from handler.app.build import Handler, Options
from handler.config.secrets import resolve_all
from handler.config.settings import Settings
from handler.model.event import Job
from handler.model.result import Result
from handler.render.sandbox import Sandbox
from tests.patience import PATIENCE

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [__name__, "jsonschema", "handler.source.git_host", "handler.engine.rollout_runner.runner"]  # the last three: what a run imports
)


def work(settings: Settings, kubeconfig: str, pipe: Connection) -> None:
    """Be the process: run the job that comes and send its Result."""
    with Sandbox() as sandbox:
        handler = Handler(settings, resolve_all(settings, os.environ, needs={"git"}), sandbox, os.environ, Options(kubeconfig=kubeconfig))
        pipe.send(handler.run(pipe.recv()))


@dataclass
class Child:
    """A process that runs one job, once `begin` asks for it."""

    process: ForkServerProcess
    pipe: Connection

    @classmethod
    def start(cls, settings: Settings, kubeconfig: str) -> Child:
        ours, theirs = _CONTEXT.Pipe()
        process = _CONTEXT.Process(target=work, args=(settings, kubeconfig, theirs), daemon=True)
        process.start()
        theirs.close()
        return cls(process, ours)

    def begin(self, job: Job) -> Child:
        """Let it run."""
        self.pipe.send(job)
        return self

    def signal(self, number: signal.Signals) -> None:
        """Kill, stop or continue it, if it hasn't ended by itself."""
        assert self.process.pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, number)

    def result(self) -> Result | None:
        """Return how its run ended; None when it was killed."""
        try:
            found = self.pipe.recv() if self.pipe.poll(2 * PATIENCE) else None
        except EOFError:
            found = None
        self.process.join(PATIENCE)
        assert self.process.exitcode is not None, "the child is still there"
        self.pipe.close()
        assert found is None or isinstance(found, Result)
        return found
