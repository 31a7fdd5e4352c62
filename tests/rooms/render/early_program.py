"""A supervisor of the hostile program, started as a program: DIRECTORY PROGRAM ARGUMENTS. The program is handed an expression.

The last file comes only when the program has made a file `mark` or has ended. Prints as JSON whether that was awaited in vain, the exit
code or that of what ended it, and what it said.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from handler.render.programs import program_supervisor
from handler.render.programs.program import Program, ProgramLimits
from tests.patience import PATIENCE

_PAUSE = 0.01
_PARTS = int(PATIENCE / _PAUSE)
"""So many parts come before the last one, all but the first without a file, with pauses until the program has acted."""
_LIMITS = ProgramLimits(output=1 << 20, seconds=5 * PATIENCE)


def main(place: str, path: str, *arguments: str) -> None:
    """Run it."""
    program = Program(path, arguments, {"first": 0, "last": _PARTS}, limits=_LIMITS, expression="now")
    missed: list[bool] = []
    try:
        finished = program_supervisor.run(
            program.order(place, weak=True), _parts(Path(place) / "files" / "mark", missed), lambda _: False, lambda _: None
        )
        answer = [bool(missed), finished.exit_code, finished.output.decode()]
    except program_supervisor.ProgramEnded as ended:
        answer = [bool(missed), ended.code, ended.note]
    sys.stdout.write(json.dumps(answer))


def _parts(mark: Path, missed: list[bool]) -> Iterator[bytes]:
    yield b"1"
    acted = False
    for _ in range(1, _PARTS):
        acted = acted or mark.exists() or _has_ended()
        time.sleep(0 if acted else _PAUSE)
        yield b""
    missed += [] if acted else [True]
    yield b"2"


def _has_ended() -> bool:
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False  # it hasn't begun


if __name__ == "__main__":
    main(*sys.argv[1:])
