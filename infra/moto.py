"""Amazon's services on loopback, as far as moto's server has them: the shapes of requests, answers and errors are theirs.

Used by tests; the handler needs nothing of it. Its FIFO queues don't keep AWS's promises (order on redelivery, one window of
deduplication): those are in `tests/fakes/sqs_fifo.py`.

    with Moto() as moto:
        boto3.client("sqs", **moto.client)     # in this process
        subprocess.run(..., env=moto.environ)  # in another: boto3 reads AWS_ENDPOINT_URL by itself

As a process, which `Moto` starts: `python -m infra.moto` prints `MOTO=<url>` and serves until its standard input ends, so that it
never outlives who started it.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from functools import partialmethod
from pathlib import Path
from typing import IO, Any

from infra.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[1]
REGION = "eu-central-1"
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-not-a-secret"}
ACCOUNT = "123456789012"
"""moto's own."""
CHANGES = ("send_message", "send_message_batch", "delete_message", "delete_message_batch", "change_message_visibility")
POLL = 0.05
"""Seconds from look to look of a long poll."""


class Moto:
    """A server of its own process. `url`: where it listens, once started."""

    def __init__(self) -> None:
        self.url = ""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Moto:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Moto:
        """Start it, and wait until it listens. Raises RuntimeError."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "infra.moto"], cwd=ROOT, env=clean, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        line = _of(self._process.stdout).readline().strip()
        if not line.startswith("MOTO="):
            self.stop()
            raise RuntimeError("moto's server has ended; what it said is above")
        self.url = line.removeprefix("MOTO=")
        return self

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            _of(self._process.stdin).close()
            self._process.wait()
            _of(self._process.stdout).close()
            self._process = None

    def reset(self) -> None:
        """Forget every resource."""
        request = urllib.request.Request(f"{self.url}/moto-api/reset", method="POST")  # noqa: S310 - our own server
        with urllib.request.urlopen(request, timeout=PATIENCE):  # noqa: S310 - the same
            pass

    @property
    def environment(self) -> dict[str, str]:
        """What boto3 reads of the environment: fake keys, a region, this server."""
        return {**KEYS, "AWS_DEFAULT_REGION": REGION, "AWS_REGION": REGION, "AWS_ENDPOINT_URL": self.url}

    @property
    def environ(self) -> dict[str, str]:
        """This process's environment with that, and without whatever else it says of AWS."""
        return {name: value for name, value in os.environ.items() if not name.startswith("AWS_")} | self.environment

    @property
    def client(self) -> dict[str, Any]:
        """What `boto3.client` takes for the same."""
        keys = {name.lower(): value for name, value in KEYS.items()}
        return {"region_name": REGION, "endpoint_url": self.url, **keys}


def _of(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None  # noqa: S101 - both were asked for
    return pipe


def one_at_a_time(backend: Any) -> None:
    """Let moto's SQS (its `SQSBackend`) do one thing at a time, as its plain lists need.

    Else a poll finds what another one has counted and not yet hidden, and takes it for a message that was handed out too often: a dead
    letter although who has it works on it. And of two deletions at once one brings back what the other has deleted.
    """
    lock = threading.RLock()

    def alone(own: Any, *arguments: Any, act: Callable[..., Any], **named: Any) -> Any:
        with lock:
            return act(own, *arguments, **named)

    def receive(own: Any, queue: str, count: int, wait: float, *more: Any, once: Callable[..., Any]) -> Any:
        end = time.monotonic() + wait
        while not (found := alone(own, queue, count, 0, *more, act=once)) and time.monotonic() < end:
            time.sleep(POLL)
        return found

    for name in CHANGES:
        setattr(backend, name, partialmethod(alone, act=getattr(backend, name)))
    backend.receive_message = partialmethod(receive, once=backend.receive_message)


def main() -> int:
    """Serve until standard input ends."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - loaded by the child alone
    from moto.sqs.models import SQSBackend  # noqa: PLC0415 - the same

    one_at_a_time(SQSBackend)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line a request is of no use
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    print(f"MOTO=http://{host}:{port}", flush=True)
    sys.stdin.read()
    os._exit(0)  # its threads hold nothing that must be ended


if __name__ == "__main__":
    sys.exit(main())
