"""A cloud function as AWS Lambda runs it, on loopback: the Runtime API, a process with `awslambdaric`, and its deadline.

    with Function("handler.functions.worker", task, environ, log) as worker:
        worker.invoke(event, seconds=30)

`task` is an unpacked package. The process sees it, awslambdaric and Python's standard library, and nothing else that is installed here. One
that has not answered at its deadline is killed, as Lambda does, and the next invocation starts another.
https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

from __future__ import annotations

import importlib.util
import json
import queue
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from infra.patience import PATIENCE

_PREFIX = "/2018-06-01/runtime/"
_RUNTIME = ("awslambdaric", "runtime_client", "snapshot_restore_py", "simplejson")
"""What Lambda's own image has beside Python."""
_START = """
import sys
sys.path[:0] = sys.argv[1:3]
from awslambdaric.__main__ import main
main(["bootstrap", sys.argv[3]])
"""


class FunctionFailed(Exception):
    """The function ended with an error, or not in time."""


@dataclass
class _Invocation:
    """`answer`: (status of the function, what it said). `deadline`: milliseconds since the epoch."""

    body: bytes
    deadline: int
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    answer: queue.Queue[tuple[str, bytes]] = field(default_factory=queue.Queue)


class Function:
    """One function and at most one process of it. `handler`: module and function with a dot; `log`: what all its processes said."""

    def __init__(self, handler: str, task: Path, environ: Mapping[str, str], log: Path) -> None:
        self._handler = handler
        self._task = task
        self._environ = dict(environ)
        self._log = log
        self._server: _Server | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def __enter__(self) -> Function:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def invoke(self, event: Any, seconds: float = PATIENCE) -> Any:
        """Return what the function returns for an event. Raises FunctionFailed: its error, or it took longer than `seconds`."""
        server = self._running()
        invocation = _Invocation(json.dumps(event).encode(), int((time.time() + seconds) * 1000))
        server.waiting.put(invocation)
        try:
            status, said = invocation.answer.get(timeout=seconds)
        except queue.Empty:
            self.stop()
            raise FunctionFailed(f"{self._handler} was ended after {seconds:g} s") from None
        if status != "response":
            self.stop()
            raise FunctionFailed(said.decode())
        return json.loads(said)

    def peak(self) -> int:
        """Return the most resident memory that the running process ever had, in bytes."""
        assert self._process  # noqa: S101 - it has been invoked
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process:
            self._process.kill()
            self._process.wait()
        if self._server:
            self._server.shutdown()
            self._server.server_close()
        self._process = self._server = None

    def _running(self) -> _Server:
        """Return the Runtime API of a running process; it is started when there is none."""
        if self._server and self._process and self._process.poll() is None:
            return self._server
        self.stop()
        self._server = server = _Server(("127.0.0.1", 0), _Api)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        environ = {
            **self._environ,
            "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{server.server_address[1]}",
            "AWS_LAMBDA_FUNCTION_NAME": self._handler.rpartition(".")[2],
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "LAMBDA_TASK_ROOT": str(self._task),
        }
        command = [sys.executable, "-I", "-S", "-c", _START, str(self._task), str(_runtime(self._log.parent)), self._handler]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self._task, env=environ, stdout=log, stderr=log)
        self.starts += 1
        return server


def _runtime(place: Path) -> Path:
    """Make a directory with what Lambda's image has, and nothing else that is installed here."""
    directory = place / "var-runtime"
    directory.mkdir(exist_ok=True)
    for name in _RUNTIME:
        found = importlib.util.find_spec(name)
        if not found or not found.origin:
            raise RuntimeError(f"{name} is not installed; requirements-test.lock has it")
        origin = Path(found.origin)
        link = directory / (name if found.submodule_search_locations else origin.name)
        if not link.is_symlink():
            link.symlink_to(origin.parent if found.submodule_search_locations else origin)
    return directory


class _Server(ThreadingHTTPServer):
    """The Runtime API of one process."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self.waiting: queue.Queue[_Invocation] = queue.Queue()
        self.under_way: dict[str, _Invocation] = {}

    def handle_error(self, *_: object) -> None:
        """Say nothing of a process that was killed."""


class _Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        """Hand out the next invocation, when there is one."""
        invocation = self.server.waiting.get()
        self.server.under_way[invocation.id] = invocation
        headers = {
            "Lambda-Runtime-Aws-Request-Id": invocation.id,
            "Lambda-Runtime-Deadline-Ms": str(invocation.deadline),
            "Lambda-Runtime-Invoked-Function-Arn": f"arn:aws:lambda:eu-central-1:123456789012:function:{invocation.id[:8]}",
            "Content-Type": "application/json",
        }
        self._answer(200, invocation.body, headers)

    def do_POST(self) -> None:
        """Take an answer or an error; one of the start belongs to whatever waits."""
        said = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        what = self.path.removeprefix(_PREFIX).split("/")
        if what[0] == "init":
            self.server.waiting.get().answer.put(("error", said))
        else:
            self.server.under_way.pop(what[1]).answer.put((what[2], said))
        self._answer(202, b"{}", {})

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
