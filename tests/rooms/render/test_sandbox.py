"""A child may crash, loop, flood or eat memory: the worker hears of it and goes on."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from handler.model.errors import OperatorError, RenderFailed
from handler.render.sandbox import Sandbox, SandboxLimits
from tests.patience import until

TABLE = "tests.rooms.render.hostile_child:FUNCTIONS"
TIGHT = SandboxLimits(memory=256 << 20, cpu=5, seconds=120, output=1 << 20)


@pytest.fixture(scope="module")
def shared() -> Iterator[Sandbox]:
    with Sandbox(TABLE, TIGHT) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(shared: Sandbox) -> Iterator[Sandbox]:
    """A sandbox that is as well after the test as before."""
    yield shared
    assert _call(shared, "echo") == [b"still here"]


def _call(sandbox: Sandbox, function: str, *parts: bytes, **options: str) -> list[bytes]:
    return sandbox.run(function, {"word": "still here", **options}, parts, bytes, subject="deploy")


def _same(sandbox: Sandbox, limits: SandboxLimits) -> Sandbox:
    """The same server with other limits for the next children."""
    other = Sandbox(TABLE, limits)
    other._server, other._control = sandbox._server, sandbox._control
    return other


def test_the_render_child_gets_parts_and_options_and_returns_pieces(sandbox: Sandbox) -> None:
    parts = [b"", b"a\0b", os.urandom(300_000)]
    assert _call(sandbox, "echo", *parts, word="é") == ["é".encode(), *parts]


@pytest.mark.parametrize(
    ("function", "reason", "message"),
    [
        ("abort", "crash", "deploy: the render child died of SIGABRT"),
        ("segfault", "crash", "deploy: the render child died of SIGSEGV"),
        ("leave", "crash", "deploy: the render child failed (SystemExit)"),
        ("fail", "crash", "deploy: the render child failed (LookupError)"),
        ("unheard-of", "crash", "deploy: the render child failed (KeyError)"),
        ("garble", "crash", "deploy: the render child said what is no frame"),
        ("eat", "memory", "deploy: the render child needed more memory than it may have"),
        ("flood", "output", "deploy: the render child made more than 1,048,576 bytes of output"),
    ],
)
def test_each_death_of_the_render_child_has_its_reason(sandbox: Sandbox, function: str, reason: str, message: str) -> None:
    with pytest.raises(RenderFailed) as caught:
        _call(sandbox, function, b"canary")
    assert (caught.value.reason, str(caught.value)) == (reason, message)


def test_an_answer_in_crumbs_is_cut_before_it_fills_the_worker(sandbox: Sandbox) -> None:
    with pytest.raises(RenderFailed, match="made more than 200,000 pieces of output") as caught:
        _call(_same(sandbox, replace(TIGHT, output=8 << 20)), "crumble")
    assert caught.value.reason == "output"


def test_pieces_sent_before_the_render_child_dies_are_read(sandbox: Sandbox) -> None:
    heard: list[bytes] = []
    with pytest.raises(RenderFailed, match="SIGABRT"):
        sandbox.run("say_and_die", {}, (), heard.append)
    assert heard == [b"said"]


def test_a_sandbox_beside_another_has_its_own_functions_and_limits_and_ends_with_it() -> None:
    with Sandbox(TABLE, TIGHT) as own:
        beside = own.beside("handler.render.functions:FUNCTIONS", SandboxLimits(cpu=7))
        assert beside is own.beside("handler.render.functions:FUNCTIONS", SandboxLimits())
        assert (beside._server, beside.limits.cpu) == (None, 7), "nothing is started before it is needed"
        beside.start()
        server = beside._server
        assert server
        assert server is not own._server
    assert server.poll() is not None


def test_a_render_child_that_dies_before_reading_its_input_has_its_reason(sandbox: Sandbox) -> None:
    with pytest.raises(RenderFailed) as caught:
        _call(sandbox, "abort", bytes(220 << 20))
    assert caught.value.reason in ("crash", "memory")


def test_an_endless_loop_ends_with_its_processor_time(sandbox: Sandbox) -> None:
    with pytest.raises(RenderFailed, match="processor time") as caught:
        _call(_same(sandbox, SandboxLimits(cpu=1, seconds=120)), "spin")
    assert caught.value.reason == "cpu"


def test_a_child_that_waits_for_ever_is_killed(sandbox: Sandbox) -> None:
    before = _children(sandbox)
    with pytest.raises(RenderFailed, match=r"took longer than 0\.3 s") as caught:
        _call(_same(sandbox, SandboxLimits(seconds=0.3)), "sleep")
    assert caught.value.reason == "timeout"
    assert _call(sandbox, "echo") == [b"still here"]
    until(lambda: _children(sandbox) <= before)


def test_a_fork_bomb_doesnt_get_its_first_fork(sandbox: Sandbox) -> None:
    assert _call(sandbox, "bomb") == [b"PermissionError"]


def test_limits_cannot_be_undone(sandbox: Sandbox) -> None:
    refused = _call(sandbox, "regain")
    assert all(answer in (b"PermissionError", b"ValueError") for answer in refused), refused


def test_a_child_can_touch_no_file_and_no_network(sandbox: Sandbox, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert _call(sandbox, "touch", path=str(tmp_path / "new")) == [b"PermissionError"] * 3
    assert not list(tmp_path.iterdir())


def test_a_child_sees_no_variable_and_no_descriptor(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", "canary")
    with Path(__file__).open() as held:
        os.set_inheritable(held.fileno(), True)
        with Sandbox(TABLE, TIGHT) as fresh:
            (seen,) = _call(fresh, "look")
    assert seen.decode() == repr(({}, [0, 1, 2, 3]))


def test_a_child_has_no_rights_as_the_kernel_sees_it() -> None:
    with Sandbox(TABLE, TIGHT) as own:

        def wait_for_ever() -> None:
            with pytest.raises(RenderFailed):
                _call(own, "sleep")

        thread = threading.Thread(target=wait_for_ever)
        thread.start()
        until(lambda: any(_status(child).get("Seccomp") == "2" for child in _children(own)))
        (child,) = _children(own)
        seen = _status(child)
        assert (seen["NoNewPrivs"], seen["CapEff"], os.getsid(child)) == ("1", "0" * 16, child)
        assert os.getuid() or (int(seen["Uid"].split()[0]) >= 65_534 and seen["Groups"] == "")
        os.kill(child, signal.SIGKILL)
        thread.join()


def test_concurrent_renders_dont_mix(sandbox: Sandbox) -> None:
    answers: dict[int, list[bytes]] = {}

    def one(number: int) -> None:
        for turn in range(4):
            answers[number * 4 + turn] = _call(sandbox, "echo", bytes(100_000), word=f"{number}-{turn}")

    threads = [threading.Thread(target=one, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number * 4 + turn: [f"{number}-{turn}".encode(), bytes(100_000)] for number in range(6) for turn in range(4)}


def test_a_server_that_died_is_started_again_unseen() -> None:
    with Sandbox(TABLE, TIGHT) as own:
        first = own._server
        assert first
        os.kill(first.pid, signal.SIGKILL)
        assert _call(own, "echo") == [b"still here"]
        assert own._server is not first


def test_a_server_that_dies_during_a_render_takes_its_children_along_and_the_render_is_repeated() -> None:
    with Sandbox(TABLE, TIGHT) as own:
        _call(own, "echo")
        first = own._server
        assert first
        failures: list[RenderFailed] = []

        def wait_for_ever() -> None:
            try:
                _call(own, "sleep")
            except RenderFailed as failed:
                failures.append(failed)

        thread = threading.Thread(target=wait_for_ever)
        thread.start()
        children = until(lambda: _children(own))
        os.kill(first.pid, signal.SIGKILL)
        (again,) = until(lambda: set() if own._server in (first, None) else _children(own))
        os.kill(again, signal.SIGKILL)
        thread.join()
        assert [failure.reason for failure in failures] == ["memory"], "of the second, which was killed as the system kills"
        until(lambda: not any(_alive(child) for child in children))


def test_a_fork_server_that_cannot_start_is_the_operators(capfd: pytest.CaptureFixture[str]) -> None:
    with Sandbox("tests.rooms.render.hostile_child:ABSENT") as own, pytest.raises(OperatorError, match="doesn't stay alive"):
        _call(own, "echo")
    assert "ABSENT" in capfd.readouterr().err


def test_a_fork_server_without_processes_or_memory_is_the_operators(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "absent"))
    with pytest.raises(OperatorError, match="render child: can't be started: No such file or directory"):
        _call(Sandbox(TABLE, TIGHT), "echo")


def test_closing_ends_the_server_and_its_children() -> None:
    own = Sandbox(TABLE, TIGHT)
    child = int(_call(own, "pid")[0])
    server = own._server
    assert server
    own.close()
    own.close()
    assert server.returncode == 0
    until(lambda: not _alive(child))
    assert _call(own, "echo") == [b"still here"]
    own.close()


def _children(sandbox: Sandbox) -> set[int]:
    assert sandbox._server
    pid = sandbox._server.pid
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
