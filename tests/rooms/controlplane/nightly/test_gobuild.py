"""Programs built from a go.mod: built once, and what keeps them from being built."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from infra import goprogress
from infra.gobuild import Build, BuildError, LeftOut

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


def test_a_program_for_another_processor_is_another_build(made: Build) -> None:
    machines = {"linux/arm64": 183, "linux/amd64": 62}  # e_machine of an ELF header
    for platform, machine in machines.items():
        build = replace(made, platform=platform)
        assert build.key != made.key
        head = (build.ensure(silent) / "bin" / "greet").read_bytes()[:20]
        assert (head[:4], int.from_bytes(head[18:20], "little")) == (b"\x7fELF", machine)


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


def test_what_is_to_be_left_out_must_be_there(crowded: Build) -> None:
    with pytest.raises(BuildError, match=r"^example\.invalid/crowd has no gone/\*\.go: see what has become of it"):
        replace(crowded, left_out=(LeftOut("example.invalid/crowd", "gone/*.go"),)).ensure(silent)
    assert sorted(path.name for path in crowded.cache.iterdir()) == ["build.lock", "sources"]
