"""A program that was taken over, in place of kustomize: it reaches nothing outside, every limit ends it, and nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from handler.render.programs import program_supervisor
from infra.gobuild import report
from tests.patience import until
from tests.rooms.render.sandbox_privileges import HOSTILE, ROOT, Ground, Stage
from tests.rooms.render.test_program_sandbox import QUICK, _home, _processes, ground, shared, stage  # noqa: F401 - fixtures, too


@pytest.mark.parametrize(("act", "reason"), [("memory", "memory"), ("flood", "output"), ("files", "output"), ("threads", "crash")])
def test_a_limit_that_a_program_breaks_before_it_reads_its_expression_has_the_same_name(stage: Stage, act: str, reason: str) -> None:
    files = {f"in/{number}": "x" for number in range(400)}
    assert stage.run(act, limits=QUICK, files=files, expression="x") == stage.run(act, limits=QUICK, files=files)
    assert stage.run(act, limits=QUICK, files=files, expression="x")[0] == reason


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("told",), [False, 0, "now 3"]),
        (("say", "first", "", "3"), [False, 3, "1"]),
        (("flood",), [False, program_supervisor.OUTPUT, ""]),
    ],
    ids=["a thread", "its end", "a broken limit"],
)
def test_a_program_that_waits_for_an_expression_runs_and_is_watched_while_its_files_are_written(
    tmp_path: Path, arguments: tuple[str, ...], answer: list[object]
) -> None:
    """Its last file comes when it has done something: a program that is started later, or isn't heard before, does nothing until then."""
    program = str(HOSTILE.ensure(report) / "bin" / "hostile")
    command = [sys.executable, "-m", "tests.rooms.render.early_program", str(tmp_path), program, *arguments]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(said.stdout) == answer


def test_what_a_killed_worker_leaves_ends_and_is_swept_by_the_next(ground: Ground) -> None:
    with Stage(ground) as first:
        first.begin("sleep")
        home = _home(first)
        until(lambda: bool(_processes(first)))
        with Stage(ground, temporary=first.temporary) as living:
            assert living.run("look")[0] == "0"
            assert home.is_dir(), "its worker lives"
        os.kill(first.pid, signal.SIGKILL)
        until(lambda: _processes(first) == [])
        assert home.is_dir()
        (first.temporary / "anneal-programs-link").symlink_to(first.place)
        with Stage(ground, temporary=first.temporary) as second:
            assert second.run("look")[0] == "0"
            assert not home.parent.parent.exists()
        assert [each.name for each in first.temporary.iterdir()] == ["anneal-programs-link"]
        assert (first.place / "there").exists()
