"""Programs built from a go.mod: built once, shared, and their progress while they are built."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from infra import goprogress
from infra.controlplane import build as controlplane_build
from infra.gobuild import Build, BuildError, LeftOut, this_machine
from infra.goprogress import SMALLEST, Progress, duration, throttled

TESTS = Path(__file__).resolve().parents[3]
PROGRAM = 'package main\n\nimport "example.invalid/one/lib"\n\nvar version string\n\nfunc main() { println(lib.Name, version) }\n'


def silent(message: str) -> None:
    assert message


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A module of one program and one package."""
    files = {"go.mod": "module example.invalid/one\n\ngo 1.26.0\n", "go.sum": "", "greet/main.go": PROGRAM}
    for name, text in {**files, "lib/lib.go": 'package lib\n\nconst Name = "one"\n'}.items():
        (tmp_path / "module" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "module" / name).write_text(text)
    return tmp_path / "module"


@pytest.fixture
def made(module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    kept = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()
    monkeypatch.setenv("GOCACHE", kept)  # else the standard library is compiled for each test
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Build("one", module, "one program", linker="-s -w -X main.version=v7", packages=("./greet",))


def row(package: str, *, stale: bool = True, name: str = "", directory: Path = Path("/nowhere"), files: str = "") -> str:
    return "\t".join((str(stale).lower(), package, name or package, str(name != "main").lower(), str(directory), files))


def test_a_program_is_built_once_with_its_flags_and_its_progress_ends_at_the_true_total(
    made: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(goprogress, "QUIET", 0.0)
    directory = made.ensure(told.append)
    done = subprocess.run([str(directory / "bin" / "greet")], capture_output=True, text=True, check=True)
    assert done.stderr == "one v7\n"
    assert told[0] == "building one program (once)"
    assert told[-1].startswith("built one program in ")
    (count, total) = next(line for line in reversed(told) if "packages" in line).split(": ")[1].split(" packages")[0].split(" of ")
    assert count == total
    told.clear()
    assert made.ensure(told.append) == directory
    assert told == []


@pytest.mark.parametrize("change", [lambda module: (module / "lib" / "lib.go").write_text('package lib\n\nconst Name = "two"\n')])
def test_another_source_is_another_build(made: Build, module: Path, change: Callable[[Path], object]) -> None:
    before = made.key
    change(module)
    assert made.key != before


def test_a_program_for_another_processor_is_another_build(made: Build) -> None:
    machines = {"linux/arm64": 183, "linux/amd64": 62}  # e_machine of an ELF header
    for platform, machine in machines.items():
        build = replace(made, platform=platform)
        assert build.key != made.key
        head = (build.ensure(silent) / "bin" / "greet").read_bytes()[:20]
        assert (head[:4], int.from_bytes(head[18:20], "little")) == (b"\x7fELF", machine)


def test_this_machine_is_what_go_builds_for_unasked() -> None:
    said = subprocess.run(["go", "env", "GOOS", "GOARCH"], capture_output=True, text=True, check=True).stdout
    assert this_machine() == "/".join(said.split())


def test_what_does_not_compile_says_where_and_leaves_nothing(made: Build, module: Path) -> None:
    (module / "lib" / "lib.go").write_text("package lib\n\nconst Name = nowhere\n")
    with pytest.raises(BuildError, match=r"lib/lib\.go:3:\d+: undefined: nowhere"):
        made.ensure(silent)
    assert [path.name for path in made.cache.iterdir()] == ["build.lock"]


def test_where_go_is_missing_its_installation_and_the_way_without_it_are_named(
    made: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said = r"no `go` on PATH, to build one program .+\n  Install Go 1\.26 or newer \(https://go\.dev/dl/\), or do without\."
    with pytest.raises(BuildError, match=said):
        replace(made, otherwise=", or do without").ensure(silent)


def test_a_listing_that_fails_is_said(made: Build, module: Path) -> None:
    (module / "greet" / "main.go").write_text(PROGRAM.replace("one/lib", "one/missing"))
    with pytest.raises(BuildError, match=r"example\.invalid/one/missing"):
        made.ensure(silent)


CROWD = {
    "crowd/go.mod": "module example.invalid/crowd\n\ngo 1.26.0\n",
    "crowd/a_plan9.go": "package crowd\n",  # whose name is a condition
    "crowd/name.go": 'package crowd\n\nconst Name = "crowd"\n',
    "crowd/helper.go": 'package crowd\n\nimport "example.invalid/crowd/heavy"\n\nconst Heavy = heavy.Name\n',
    "crowd/heavy/heavy.go": 'package heavy\n\nconst Name = "heavy"\n',
    "module/calm/calm.go": 'package crowd\n\nconst Name = "calm"\n',
    "module/greet/main.go": PROGRAM.replace("one/lib", "crowd").replace("lib.", "crowd."),
}


@pytest.fixture
def crowded(made: Build, tmp_path: Path) -> Build:
    """A program of a module whose helper drags a package in."""
    for name, text in CROWD.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    require = "require example.invalid/crowd v1.0.0\nreplace example.invalid/crowd => ../crowd\n"
    with (made.module / "go.mod").open("a") as file:
        file.write(require)
    return made


@pytest.mark.parametrize(
    ("left_out", "packages", "says"),
    [
        ((), 3, "crowd v7\n"),
        ((LeftOut("example.invalid/crowd", "helper.go"),), 2, "crowd v7\n"),
        ((LeftOut("example.invalid/crowd", "*.go", instead="calm/calm.go"),), 2, "calm v7\n"),
    ],
)
def test_what_is_left_out_drags_nothing_in(
    crowded: Build, monkeypatch: pytest.MonkeyPatch, left_out: tuple[LeftOut, ...], packages: int, says: str
) -> None:
    told: list[str] = []
    monkeypatch.setattr(goprogress, "QUIET", 0.0)
    directory = replace(crowded, left_out=left_out).ensure(told.append)
    done = subprocess.run([str(directory / "bin" / "greet")], capture_output=True, text=True, check=True)
    assert done.stderr == says
    assert any(f" of {packages} packages" in line for line in told)


@pytest.mark.parametrize(
    ("cores", "environ", "shared"),
    [
        (2, {}, (("-p=2",), {"GOMAXPROCS": "1"})),
        (64, {}, ((), {})),
        (2, {"GOMAXPROCS": "2"}, ((), {})),
        (2, {"GOFLAGS": "-mod=mod -p=1"}, ((), {})),
    ],
)
def test_few_cores_have_a_compiler_each_unless_the_environment_says_otherwise(
    cores: int, environ: dict[str, str], shared: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOMAXPROCS", "GOFLAGS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("infra.goprogress.os.sched_getaffinity", lambda _pid: range(cores), raising=False)
    assert goprogress.parallelism() == shared


def test_what_is_to_be_left_out_must_be_there(crowded: Build) -> None:
    with pytest.raises(BuildError, match=r"^example\.invalid/crowd has no gone/\*\.go: see what has become of it"):
        replace(crowded, left_out=(LeftOut("example.invalid/crowd", "gone/*.go"),)).ensure(silent)
    assert sorted(path.name for path in crowded.cache.iterdir()) == ["build.lock", "sources"]


def test_the_total_is_what_is_stale_and_what_was_begun_before() -> None:
    progress = Progress("it")
    progress.started("fmt")
    progress.started("go: downloading x v1")
    progress.started("# example.invalid/broken")
    progress.expect("\n".join((row("a"), row("b", stale=False), row("unsafe"), row("it", name="main"))), now=0.0)
    progress.started("not/needed")
    assert progress.line(1.0) == "building it: 1 of 3 packages"


def test_downloads_are_said_as_such() -> None:
    progress = Progress("it")
    assert progress.line(0.0) == "building it: looking at its modules"
    for line in ("go: downloading a v1", "go: downloading b v1", "go: finding module for package c"):
        progress.downloading(line)
    assert progress.line(1.0) == "building it: downloading modules, 2 so far"


def test_the_time_to_go_is_by_bytes_of_source_and_ends_with_the_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(goprogress, "LINKED", 2 * SMALLEST)
    (tmp_path / "large.go").write_bytes(b" " * (5 * SMALLEST))
    progress = Progress("it")
    progress.expect("\n".join((row("a"), row("b", directory=tmp_path, files="large.go,"), row("it", name="main"))), now=100.0)
    assert progress.to_go(101.0) is None
    progress.started("a")  # one of ten parts in ten seconds
    assert progress.line(110.0) == "building it: 1 of 3 packages, about 1 min 30 s to go"
    progress.started("b")
    assert progress.line(170.0) == "building it: 2 of 3 packages, about 30 s to go"
    progress.started("it")
    assert progress.line(180.0) == "building it: 3 of 3 packages, linking"


def test_without_a_terminal_a_line_comes_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now, told = [0.0], list[str]()
    monkeypatch.setattr("infra.goprogress.time.monotonic", lambda: now[0])
    show = throttled(told.append)
    for second in range(25):
        now[0] = float(second)
        show(str(second))
    assert told == ["10", "20"]


@pytest.mark.parametrize(("seconds", "text"), [(8.4, "8 s"), (59.7, "1 min 00 s"), (282.0, "4 min 42 s")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("asked", "built"),
    [(("tmp_path",), []), (("renderers", "tmp_path"), ["renderers"]), (("control_plane", "renderers"), ["control plane", "renderers"])],
)
def test_what_a_collected_test_runs_is_built_before_the_first_test_and_nothing_else(
    asked: tuple[str, ...], built: list[str], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANNEAL_TEST_KUBECONFIG", raising=False)
    made: list[str] = []
    monkeypatch.setattr("infra.controlplane.controlplane.binaries", lambda: made.append("control plane"))
    monkeypatch.setattr("infra.renderers.build.binaries", lambda: made.append("renderers"))
    session = SimpleNamespace(items=[SimpleNamespace(fixturenames=asked)], config=request.config)
    plugins = request.config.pluginmanager.get_plugins()
    (conftest,) = [plugin for plugin in plugins if getattr(plugin, "__file__", None) == str(TESTS / "conftest.py")]
    conftest.pytest_collection_finish(session)
    assert made == built


def test_each_server_is_hyperkube_by_its_own_name() -> None:
    directory = controlplane_build.ensure_built(silent) / "bin"
    for name in controlplane_build.PROGRAMS:
        program = directory / name
        if name == "kubectl":
            assert not program.is_symlink()
            continue
        assert program.resolve().name == controlplane_build.HYPERKUBE
        said = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=True).stdout
        expected = {"etcd": "etcd Version: 3.6.8", "kwok": "kwok version"}.get(name, f"Kubernetes {controlplane_build.VERSION}")
        assert said.startswith(expected)
    stranger = subprocess.run([str(directory / controlplane_build.HYPERKUBE)], capture_output=True, text=True, check=False)
    assert (stranger.returncode, stranger.stderr) == (2, "call it by the name of a server, not hyperkube\n")
