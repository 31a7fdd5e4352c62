"""A process that fetches from hostile hosts: `python -m tests.rooms.source.fetching_process` reads one URL a line, and says what it took.

Only the client is in it, so its peak is the client's. Each line of input is JSON: URL, commit and limits.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
from pathlib import Path

from handler.model.errors import AnnealError
from handler.source.host_limits import HostLimits
from tests.patience import PATIENCE
from tests.rooms.source.hostile_answers import MAIN
from tests.rooms.source.open_repository import Secret, following, opened


def peak() -> int:
    """Return the most bytes this process ever held; getrusage would count its parent's, of the moment between fork and exec."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def told(url: str, sha: str, limits: HostLimits) -> str:
    """Fetch, and resolve where that went well; say how it ended."""
    with opened(url, limits=limits, secret=Secret()) as git:
        try:
            git.fetch(sha)
            git.head(following(MAIN))
        except AnnealError as error:
            return error.code
    return "believed"


def main() -> None:
    """Answer each line with how it ended; at the end with peak, threads and open files."""
    for line in sys.stdin:
        asked = json.loads(line)
        ended = told(asked["url"], asked["sha"], HostLimits(**asked["limits"]))
        gc.collect()  # what an error's traceback holds in a circle goes whenever the collector happens to come, which is no client's peak
        for thread in threading.enumerate():  # a deadline's timer that was cancelled is about to end
            if thread is not threading.main_thread():
                thread.join(PATIENCE)
        seen = {"ended": ended, "peak": peak(), "threads": threading.active_count(), "files": len(list(Path("/proc/self/fd").iterdir()))}
        sys.stdout.write(json.dumps(seen) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
