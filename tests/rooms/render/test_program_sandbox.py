"""A program that was taken over, in place of kustomize: it reaches nothing outside, every limit ends it, and nothing of it is left."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import until
from tests.rooms.render.sandbox_privileges import GROUNDS, WITHOUT_LANDLOCK, Ground, Stage

REFUSED = {"EPERM", "EACCES", "ENOSYS"}
QUICK: dict[str, Any] = {"memory": 128 << 20, "cpu": 30, "seconds": 60, "output": 1 << 20, "file": 4 << 20, "entries": 1000}
BIG = [GROUNDS[0], GROUNDS[1]]


@pytest.fixture(scope="module", params=BIG, ids=lambda ground: ground.name)
def ground(request: pytest.FixtureRequest) -> Ground:
    return _possible(request.param)


def _possible(found: Ground) -> Ground:
    if why := found.missing():
        pytest.skip(why)
    return found


@pytest.fixture(scope="module")
def shared(ground: Ground) -> Iterator[Stage]:
    with Stage(ground) as standing:
        yield standing


@pytest.fixture
def stage(shared: Stage) -> Iterator[Stage]:
    """A stage on which nothing is left after the test, and the next program runs."""
    yield shared
    assert _runs(shared) == []
    until(lambda: _processes(shared) == [])
    assert shared.run("say", "a", "", "0", files={"a": "still here"})[2] == "still here"


@contextlib.contextmanager
def _listeners(stage: Stage) -> Iterator[int]:
    """Listen on the loopback's TCP, on a socket in the place and on an abstract one, all open to every user; give the port."""
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as named, socket.socket(socket.AF_UNIX) as abstract:
        named.bind(str(stage.place / "socket"))
        (stage.place / "socket").chmod(0o777)
        abstract.bind(f"\0anneal-{stage.pid}")
        for listener in (named, abstract):
            listener.listen()
        try:
            yield tcp.getsockname()[1]
        finally:
            (stage.place / "socket").unlink()


@pytest.mark.parametrize(
    ("starting", "about"),
    [(False, {}), (True, {}), (False, {"loader": "/bin/true", "readable": ["/bin/cat", "/usr/share"]})],
    ids=["alone", "where it may start a program", "where it has libraries"],
)
def test_a_hostile_program_reaches_nothing_outside(ground: Ground, stage: Stage, starting: bool, about: dict[str, Any]) -> None:
    secret = stage.place / "secret"
    secret.write_text("canary")
    os.chown(secret, ground.uid, ground.uid)
    secret.chmod(0o600)
    before = sorted(each.name for each in stage.place.iterdir())
    beside = [str(stage.program)] if starting else []
    with Stage(ground) as other, _listeners(stage) as port:
        other.begin("wait")
        neighbour = _home(other)
        until(lambda: (neighbour / "mine").is_file() and (neighbour / "mine").read_text() == "private")  # it may run a while before
        others = (str(stage.place), str(stage.pid), str(port), str(neighbour), str(stage.temporary))
        answers = stage.run("escape", *others, beside=beside, limits={"processes": 2}, **about)
        assert (neighbour / "mine").read_text() == "private"
        (neighbour / "go").touch()
        assert other.hear()[0] == "0"
    assert answers[0] == "0", answers
    found = dict(line.rsplit(": ", 1) for line in answers[2].splitlines())
    assert len(found) > 90
    assert {name for name, answer in found.items() if answer not in REFUSED} == ({"fork"} if starting else set())
    assert sorted(each.name for each in stage.place.iterdir()) == before
    assert (stage.place / "there").read_text() == "there"
    secret.unlink()


def test_a_program_sees_its_files_alone_and_nothing_of_the_worker(stage: Stage) -> None:
    code, home, said, errors, lacks = stage.run("look", files={"top": "1", "a/b/c": "2"}, environment={"WORD": "{home}/x"})
    assert (code, errors, lacks) == ("0", "", "")
    lines = said.splitlines()
    assert [line for line in lines if not line.startswith(("HOME", "TMPDIR", "XDG_", "HELM_"))] == [
        *("PATH=", "LANG=C.UTF-8", "TZ=UTC", "GOGC=200", f"GOMEMLIMIT={int((1 << 30) * 0.85)}B"),
        f"GOMAXPROCS={min(4, os.cpu_count() or 1)}",
        *(f"WORD={home}/x", "open: [0 1 2]", f"here: {home}", "file: . drwx------", "file: a drwx------", "file: a/b drwx------"),
        *("file: a/b/c -rw-------", "file: top -rw-------"),
    ]
    homes = [line.partition("=")[2] for line in lines if line.startswith(("HOME", "TMPDIR", "XDG_", "HELM_"))]
    assert len(homes) == 8
    assert all(each.startswith(f"{Path(home).parent}/own") for each in homes), "none is where the tree's files are"
    assert "canary" not in said


def test_what_a_program_said_and_its_exit_code_go_to_the_function(stage: Stage) -> None:
    assert stage.run("say", "{home}/in/a", "words", "3", files={"in/a": "é"}, directory="in")[::2] == ["3", "é", ""]
    assert stage.run("say", "a", "x" * 70_000 + "end", "0", files={"a": ""})[3] == "x" * ((64 << 10) - 3) + "end"
    code, _, said, errors, _ = stage.run("fail")
    assert (code, said) == ("2", "")
    assert errors.startswith("panic: ")


@pytest.mark.parametrize(
    ("act", "about", "reason", "message"),
    [
        ("memory", {}, "memory", "needed more than 128 MiB of memory"),
        ("hidden", {}, "memory", "needed more than 128 MiB of memory"),
        ("spin", {"cpu": 1}, "cpu", "needed more than 1 s of processor time"),
        ("sleep", {"seconds": 0.5}, "timeout", "took longer than 0.5 s"),
        ("close", {"seconds": 0.5}, "timeout", "took longer than 0.5 s"),
        ("flood", {}, "output", "made more than 1,048,576 bytes of output"),
        ("complain", {}, "output", "made more than 1,048,576 bytes of output"),
        ("files", {}, "output", "left more than 1,000 files, 512 MiB or 100 directories in each other"),
        ("killed", {}, "memory", "was killed by the system, as happens where memory runs out"),
        ("threads", {}, "crash", "started more processes or threads than it may have (1 and 128 at once)"),
    ],
)
def test_each_limit_of_a_program_ends_it_by_name(stage: Stage, act: str, about: dict[str, Any], reason: str, message: str) -> None:
    assert stage.run(act, limits={**QUICK, **about}) == [reason, f"deploy: hostile {message}"]


def test_a_program_that_waits_for_an_expression_gets_it_when_all_files_lie_there(stage: Stage) -> None:
    files = {str(number): "x" * 5_000 for number in range(400)}
    assert stage.run("told", files=files, expression="é" * 2_000)[::2] == ["0", "é" * 2_000 + " 401", ""]
    assert stage.run("told", files=files)[2] == " 401", "without one, its standard input is empty"
    code, _, said, errors, _ = stage.run("fail", files=files, expression="x")
    assert (code, said) == ("2", ""), "it ended and has read nothing"
    assert errors.startswith("panic: ")


def test_files_that_cannot_be_written_end_a_program_that_has_begun(stage: Stage) -> None:
    files = {"a": "a file, and below", "a/b": "it another"}
    refused = stage.run("sleep", files=files, expression="x")
    assert refused[1].startswith("render child: hostile gets no files: "), refused


def test_a_file_ends_at_its_limit_and_the_program_hears_of_it(stage: Stage) -> None:
    assert stage.run("file", "big", limits=QUICK)[::2] == ["0", "EFBIG", ""]


def test_a_program_removes_nothing_so_that_all_it_writes_is_counted(stage: Stage) -> None:
    assert stage.run("vanish", "{home}", files={"a/b": ""})[2] in REFUSED


def test_a_program_reserves_no_more_addresses_than_can_be_mapped_cheaply(stage: Stage) -> None:
    assert stage.run("reserve")[2] == "ENOMEM"


def test_a_tree_deeper_than_any_path_is_removed(stage: Stage) -> None:
    answers = stage.run("deep", limits=QUICK)
    assert answers in (
        ["output", "deploy: hostile left more than 1,000 files, 512 MiB or 100 directories in each other"],
        ["0", answers[1], "made", "", ""],
    )


def test_a_program_that_starts_others_is_bounded_as_a_whole(stage: Stage) -> None:
    about: dict[str, Any] = {"beside": [str(stage.program)], "limits": {**QUICK, "processes": 2, "memory": 1 << 30}}
    started = stage.run("start", str(stage.program), "say", "a", "", "0", files={"a": "said"}, **about)
    assert started[2] == "done said"
    many = "deploy: hostile started more processes or threads than it may have (2 and 256 at once)"
    for act in ("bomb", "forks"):
        assert stage.run(act, str(stage.program), **about) == ["crash", many]
    assert stage.run("unburied", **about) == ["crash", many]
    assert stage.run("background", str(stage.program), **about) == ["crash", "deploy: hostile ended and left a process running"]
    about["limits"]["memory"] = 128 << 20
    assert stage.run("start", str(stage.program), "memory", **about)[0] == "memory"


def test_others_that_end_while_they_start_threads_keep_no_later_one_from_starting(stage: Stage) -> None:
    about: dict[str, Any] = {"beside": [str(stage.program)], "limits": {**QUICK, "processes": 2, "memory": 1 << 30}}
    assert stage.run("hasty", str(stage.program), "100", **about)[2] == "done"


def test_what_a_program_left_is_buried_by_the_fork_server(stage: Stage) -> None:
    about: dict[str, Any] = {"beside": [str(stage.program)], "limits": {**QUICK, "processes": 2}}
    for _ in range(3):
        assert stage.run("background", str(stage.program), **about)[0] == "crash"
    [server] = Path(f"/proc/{stage.pid}/task/{stage.pid}/children").read_text().split()
    until(lambda: Path(f"/proc/{server}/task/{server}/children").read_text() == "")


def test_a_program_starts_nothing_but_what_is_named(stage: Stage) -> None:
    assert stage.run("start", str(stage.program), "look", limits={"processes": 2})[2].split()[0] in REFUSED
    about: dict[str, Any] = {"beside": [str(stage.program)], "limits": {"processes": 2}}
    assert stage.run("start", "/bin/sh", "-c", "echo out", **about)[2] == "EACCES "


def test_what_cannot_be_started_is_the_operators(stage: Stage) -> None:
    gone = stage.run("look", path="/nonexistent/kustomize")
    assert gone[0] == "operator"
    assert gone[1].startswith("render child: kustomize can't be started: No such file or directory; install it")
    assert stage.run("look", path=str(stage.place / "there"))[1].startswith("render child: there can't be started: Permission denied")


@pytest.mark.parametrize("ground", [*GROUNDS[2:], *WITHOUT_LANDLOCK], ids=lambda ground: ground.name)
def test_where_walls_are_missing_a_program_is_refused_unless_it_may_be_weak(ground: Ground) -> None:
    files, calls = "of files (Landlock)", "of sockets and processes (seccomp)"
    with Stage(_possible(ground)) as standing:
        refused = standing.run("say", "a", "", "0", files={"a": "ran"})
        assert refused[0] == "operator"
        missing = files if ground.filters else f"{files} and {calls}"
        assert refused[1].startswith(f"render child: hostile isn't started: the walls {missing} don't stand here; ")
        assert "`sandbox: weak`" in refused[1]
        weak = standing.run("say", "a", "", "0", files={"a": "ran"}, weak=True)
        assert (weak[2], weak[4]) == ("ran", missing.replace(") and", "),"))
        starting = standing.run("say", "a", "", "0", files={"a": "ran"}, weak=True, beside=[str(standing.program)])
        assert starting[4] == weak[4] + ("" if ground.filters else ", of what it starts (seccomp's listener, /proc)")
        standing.run("background", str(standing.program), weak=True)  # seen or not, it ends with the render
        assert _runs(standing) == []
        until(lambda: _processes(standing) == [])


def _home(stage: Stage) -> Path:
    """The directory of the program that runs on a stage."""
    until(lambda: any(stage.temporary.glob("anneal-programs-*/run-*/files")))
    [home] = stage.temporary.glob("anneal-programs-*/run-*/files")
    until(lambda: bool(_processes(stage)))
    return home


def _runs(stage: Stage) -> list[Path]:
    return list(stage.temporary.glob("anneal-programs-*/*"))


def _processes(stage: Stage) -> list[int]:
    """The hostile programs that run on a stage."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "exe").readlink().name == "hostile" and (process / "exe").readlink().parent == stage.program.parent:
                found.append(int(process.name))
    return found
