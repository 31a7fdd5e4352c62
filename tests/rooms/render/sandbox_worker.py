"""The worker of a sandbox on some ground, as a program: each line of its input is a call, each line of its output the answer.

It stands alone, for it is copied to where every user may read it.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import struct
import sys
from typing import Any

PRCTL_AND_SECCOMP = {"x86_64": (157, 317), "aarch64": (167, 277)}
LANDLOCK = (444, 445, 446)
_PR_SET_SECCOMP, _FILTER = 22, 2


def refuse(numbers: tuple[int, ...] = (), error: int = errno.EPERM) -> None:
    """From now on refuse these calls: by default every prctl and new filter, as AWS Lambda's own filter does. Only root can so simply."""
    steps = [(0x20, 0, 0, 0)]
    for number in numbers or PRCTL_AND_SECCOMP[platform.machine()]:
        steps += [(0x15, 0, 1, number), (0x06, 0, 0, 0x0005_0000 | error)]
    program = b"".join(struct.pack("HBBI", *step) for step in [*steps, (0x06, 0, 0, 0x7FFF_0000)])
    kept = ctypes.create_string_buffer(program)
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(kept))
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_SECCOMP, _FILTER, header, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def lack(what: str) -> None:
    """Do without `filters`, as in AWS Lambda, or without `landlock`, as on a kernel that was built without it."""
    if what == "filters":
        refuse()
    if what == "landlock":
        refuse(LANDLOCK, errno.ENOSYS)


def become(uid: int, lacking: str) -> None:
    """Take that place, and begin anew there: only exec makes a process that changed its uid an ordinary one of its new user."""
    lack(lacking)
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    os.execv(sys.executable, [sys.executable, __file__, *sys.argv[3:]])


def work(table: str, limits: dict[str, Any]) -> None:
    """Answer each call until the input ends."""
    from handler.model.errors import OperatorError, RenderFailed  # noqa: PLC0415 - found only where it was copied to
    from handler.render.programs.program import Program, ProgramLimits  # noqa: PLC0415 - the same
    from handler.render.sandbox import Sandbox, SandboxLimits  # noqa: PLC0415 - the same

    with Sandbox(table, SandboxLimits(**limits)) as sandbox:
        for line in sys.stdin:
            asked = json.loads(line)
            program, parts = asked.get("program"), [part.encode() for part in asked.get("parts", ())]
            if program:
                bounds = ProgramLimits(**program.pop("limits", {}))
                about: dict[str, Any] = {name: tuple(each) if isinstance(each, list) else each for name, each in program.items()}
                program = Program(limits=bounds, **about)
            try:
                found = sandbox.run(asked["function"], asked["options"], parts, bytes, "deploy", program, weak=asked.get("weak", False))
                said = [piece.decode() for piece in found] + ([", ".join(sandbox.lacks)] if program else [])
            except RenderFailed as failed:
                said = [failed.reason, str(failed)]
            except OperatorError as failed:
                said = ["operator", str(failed)]
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1].isdigit():
        become(int(sys.argv[1]), sys.argv[2])
    work(sys.argv[1], json.loads(sys.argv[2]))
