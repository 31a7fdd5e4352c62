"""A child that was taken over reaches nothing outside, be its worker root or not; and what holds where the kernel takes no filter."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rooms.render.sandbox_privileges import GROUNDS, ROOT, Ground, Stage
from tests.rooms.render.sandbox_worker import lack

TIGHT = {"memory": 256 << 20, "cpu": 2, "seconds": 120, "output": 1 << 20}
DESCRIPTORS = {"open", "write", "environ", "socket", "listener", "socketpair", "pipe", "memfd", "dup"}
OTHERS = {"kill", "seize", "peek"}


@pytest.fixture(scope="module", params=GROUNDS, ids=lambda ground: ground.name)
def ground(request: pytest.FixtureRequest) -> Ground:
    found: Ground = request.param
    if why := found.missing():
        pytest.skip(why)
    return found


@pytest.fixture(scope="module")
def stage(ground: Ground) -> Iterator[Stage]:
    with Stage(ground, limits=TIGHT) as standing:
        yield standing


def test_a_child_that_frees_its_descriptors_reaches_nothing(ground: Ground, stage: Stage) -> None:
    answers = dict(line.split(": ") for line in stage.call("escape"))
    if ground.filters:
        assert set(answers.values()) == {"EPERM"}, answers
        assert [each.name for each in stage.place.iterdir()] == ["there"]
    else:
        kept = DESCRIPTORS | {"fork"} | (OTHERS if ground.uid == 0 else set())
        assert not {name for name in kept if answers[name] in ("done", "EFAULT")}, answers
    assert stage.call("echo") == ["still here"]


@pytest.mark.parametrize(
    ("function", "reason", "message"),
    [
        ("abort", "crash", "died of SIGABRT"),
        ("segfault", "crash", "died of SIGSEGV"),
        ("leave", "crash", "failed (SystemExit)"),
        ("garble", "crash", "said what is no frame"),
        ("eat", "memory", "needed more memory than it may have"),
        ("spin", "cpu", "needed more processor time than it may have"),
        ("flood", "output", "made more than 1,048,576 bytes of output"),
    ],
)
def test_each_death_of_the_render_child_is_named_under_each_restriction(stage: Stage, function: str, reason: str, message: str) -> None:
    assert stage.call(function) == [reason, f"deploy: the render child {message}"]


def test_a_fork_bomb_and_lifted_limits_fail_everywhere(stage: Stage) -> None:
    assert stage.call("bomb")[0] in ("PermissionError", "BlockingIOError")
    assert set(stage.call("regain")) <= {"PermissionError", "ValueError"}


def test_a_program_for_another_architecture_is_killed(ground: Ground, stage: Stage) -> None:
    if platform.machine() != "x86_64" or not ground.filters:
        pytest.skip("int 0x80 is x86's, and the filter's matter")
    assert stage.call("foreign") == ["crash", f"deploy: the render child died of {signal.SIGSYS.name}"]


def test_proc_environ_and_mem_of_the_worker_are_closed_to_its_user(ground: Ground, stage: Stage) -> None:
    """A process that isn't dumpable belongs to root in /proc; as root it does so anyhow."""
    assert stage.call("echo") == ["still here"], "its server runs"
    (server,) = Path(f"/proc/{stage.pid}/task/{stage.pid}/children").read_text().split()
    if not ground.filters:
        pytest.skip("PR_SET_DUMPABLE is refused there, too")
    for pid in (stage.pid, int(server)):
        for name in ("environ", "mem", "maps"):
            assert Path(f"/proc/{pid}/{name}").stat().st_uid == 0
        done = subprocess.run(["cat", f"/proc/{pid}/environ"], user=65_532, group=65_532, extra_groups=[], capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (1, b"")


def test_nothing_is_written_even_where_files_may_be_opened() -> None:
    ground = GROUNDS[-1]
    if why := ground.missing():
        pytest.skip(why)
    with Stage(ground, limits={**TIGHT, "files": 64}) as loose:
        assert loose.call("touch", path=str(loose.place / "there"))[0] == "OSError"
        assert (loose.place / "there").read_bytes() == b""


STANDING = "a uid of its own, no descriptors, 1,024 MiB of memory"
OPEN = "It can make shared memory, make directories and links"
WEAK = "Kustomize and helm don't run here, and a slower library evaluates jsonnet; a target with `sandbox: weak` lets them open files"

MORE = "open connections, start processes, make shared memory"


@pytest.mark.skipif(bool(GROUNDS[0].missing()), reason=GROUNDS[0].missing() or "it can be tried")
@pytest.mark.parametrize(
    ("lacking", "line"),
    [
        ("", f"ok       of a render child: seccomp, {STANDING}; of programs: Landlock, seccomp"),
        (
            "filters",
            f"warning  of a render child: no seccomp filter, {STANDING}; of programs: no Landlock, no seccomp. {OPEN}. {WEAK}, {MORE}",
        ),
        ("landlock", f"warning  of a render child: seccomp, {STANDING}; of programs: no Landlock, seccomp. {WEAK}"),
    ],
    ids=["here", "where the kernel takes no filter", "where the kernel has no Landlock"],
)
def test_doctor_says_which_walls_stand(tmp_path: Path, lacking: str, line: str) -> None:
    command = [sys.executable, "-m", "handler", "--config", str(tmp_path / "none.yaml"), "--kubeconfig", str(tmp_path / "none"), "doctor"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, preexec_fn=lambda: lack(lacking))
    assert f"walls          {line}" in done.stdout.splitlines(), done
    assert ("AWS Lambda refuses it" in done.stdout) is (lacking == "filters")
    assert ("or set `sandbox: weak` on targets whose repositories you trust" in done.stdout) is bool(lacking)
