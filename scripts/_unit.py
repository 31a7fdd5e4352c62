"""Run the tests of tests/unit in plain processes, each with a share of the files: to hand out single tests costs more than most take.

Two a core, for some tests wait. Standard library only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

UNIT = Path("tests/unit")


def shares(files: Sequence[tuple[str, int]], count: int) -> list[list[str]]:
    """Return the files, each a path and its bytes, in `count` lists of about the same size: the largest go first, to the emptiest."""
    made: list[tuple[int, list[str]]] = [(0, []) for _ in range(count)]
    for path, size in sorted(files, key=lambda file: -file[1]):
        index = min(range(count), key=lambda n: made[n][0])
        made[index] = (made[index][0] + size, [*made[index][1], path])
    return [share for _, share in made if share]


def main(options: Sequence[str]) -> int:
    """Run every share with pytest's options, print each one's output when it ends; return 0 if all have passed, 130 after Ctrl-C."""
    files = [(str(path), path.stat().st_size) for path in UNIT.rglob("test_*.py")]
    command = [sys.executable, "-m", "pytest", "-q", *options]
    running = [
        subprocess.Popen([*command, *sorted(share)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for share in shares(files, 2 * (os.cpu_count() or 1))
    ]
    try:
        for each in running:
            print(each.communicate()[0], end="", flush=True)
    except KeyboardInterrupt:  # the terminal has sent it to them, too
        for each in running:
            each.wait()
        return 130
    killed = [each for each in running if each.returncode < 0]
    for each in killed:
        print(f"a process of the tests was ended by signal {-each.returncode}: {' '.join(map(str, each.args))}")  # type: ignore[arg-type]  # a list
    return 1 if killed or any(each.returncode for each in running) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
