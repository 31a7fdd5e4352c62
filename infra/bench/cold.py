"""A function's process as it is measured: its first event from the import on, as one line of JSON at the end of its output."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

_HEALTH = {
    "version": "2.0",
    "rawPath": "/healthz",
    "rawQueryString": "",
    "headers": {},
    "requestContext": {"stage": "$default", "http": {"method": "GET", "path": "/healthz", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.7"}},
    "isBase64Encoded": False,
}


class _Context:
    def get_remaining_time_in_millis(self) -> int:
        return 300_000


def main() -> None:
    """Be the function that the first argument names."""
    since = time.perf_counter()
    from handler import functions  # noqa: PLC0415 - the import is what is measured

    measured = _webhook(functions, since) if sys.argv[1] == "webhook" else _worker(functions, sys.argv[2])
    print(json.dumps(measured))


def _webhook(functions: Any, since: float) -> dict[str, float]:
    times = []
    for _ in range(2):
        answer = functions.webhook(_HEALTH, _Context())
        if answer["statusCode"] != 200:
            raise RuntimeError(str(answer))
        times.append(time.perf_counter())
    return {"first": times[0] - since, "second": times[1] - times[0]}


def _worker(functions: Any, body: str) -> dict[str, float]:
    attributes = {"ApproximateReceiveCount": "1", "SentTimestamp": "0", "MessageGroupId": "bench"}
    row = {"messageId": "m0", "receiptHandle": "none", "body": body, "attributes": attributes}
    since = time.perf_counter()
    answer = functions.worker({"Records": [row]}, _Context())
    if answer != {"batchItemFailures": []}:
        raise RuntimeError("the run didn't end well; its line is above")
    children = [_peak(int(child)) for child in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()]
    return {"peak": _peak(os.getpid()), "child": sum(children), "seconds": time.perf_counter() - since}


def _peak(pid: int) -> float:
    """Return the peak resident memory in MB; `ru_maxrss` would still show what the parent had before the exec."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
