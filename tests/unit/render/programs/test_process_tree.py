"""What processes take is read as proc(5) has it; a directory is measured, and what can't be looked into counts as too much."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handler.render.programs.process_tree import space, usage

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="only Linux has it")


def test_a_process_and_all_below_it_are_counted_or_the_first_alone() -> None:
    script = "import subprocess, sys; subprocess.Popen(['sleep', '60']); x = bytearray(50 << 20); print('on', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        alone = usage(os.getpid(), child.pid, alone=True, most=9)
        below = usage(child.pid, child.pid, alone=False, most=9)
        assert (alone.processes, below.processes) == (1, 1)
        assert alone.memory > 50 << 20 > below.memory > 0
        assert alone.threads >= 1
        assert alone.seconds > 0
        both = usage(os.getpid(), child.pid, alone=False, most=99)
        assert both.processes >= 2
        assert usage(os.getpid(), child.pid, alone=False, most=0).processes <= 1
        for pid in Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split():
            os.kill(int(pid), 9)
    assert usage(os.getpid(), child.pid, alone=True, most=9).processes == 0


def test_what_has_ended_and_is_not_waited_for_takes_a_place_and_hides_nothing() -> None:
    """Else as many of them as are looked at would hide every other process."""
    script = """import os, signal, sys
for _ in range(4):
    if os.fork() == 0: os._exit(0)
for pid in list(map(int, open(f"/proc/self/task/{os.getpid()}/children").read().split())): os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
if os.fork() == 0: print("on", flush=True); signal.pause()
sys.stdin.read()"""
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        assert [usage(child.pid, child.pid, alone=False, most=most).processes for most in (2, 4, 9)] == [3, 5, 5]
        *ended, last = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
        assert len(ended) == 4
        os.kill(int(last), 9)


def test_names_bytes_and_depth_of_a_directory_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_bytes(os.urandom(1 << 20))
    assert not space(str(tmp_path), 2, 2 << 20)
    assert space(str(tmp_path), 1, 2 << 20)
    assert space(str(tmp_path), 2, 1 << 19)
    assert not space(str(tmp_path / "gone"), 1, 1)
    (tmp_path / "/".join("d" * 110)).mkdir(parents=True)
    assert space(str(tmp_path), 1000, 2 << 20)
