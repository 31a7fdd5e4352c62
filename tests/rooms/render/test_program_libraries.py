"""Programs that aren't static, behind the walls: they read their libraries and the directories that are named, and nothing beside these."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from handler.model.errors import RendererUnavailable
from handler.render import Program, Sandbox, render_tools
from infra.renderers import nix
from tests.rooms.render.sandbox_privileges import GROUNDS

pytestmark = pytest.mark.skipif(bool(GROUNDS[0].missing()), reason=GROUNDS[0].missing() or "it can be tried")
REFUSED = ("Permission denied", "Operation not permitted")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox("tests.rooms.render.hostile_child:FUNCTIONS") as shared:
        yield shared


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user may read."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def linked(name: str) -> tuple[str, dict[str, Any]]:
    """Return a program of this machine, and what of it is loaded."""
    path = os.path.realpath(f"/bin/{name}")
    *libraries, loader = sorted(render_tools._loaded("nix", path), key=lambda each: "/ld-" in each)
    return path, {"loader": loader, "readable": tuple(libraries)}


def run(sandbox: Sandbox, name: str, *arguments: str, files: Mapping[str, str] | None = None, readable: tuple[str, ...] = ()) -> list[str]:
    """Return exit code, output and errors."""
    path, about = linked(name)
    given = files or {}
    program = Program(
        path, arguments, {each: at for at, each in enumerate(given)}, loader=about["loader"], readable=(*about["readable"], *readable)
    )
    code, _, *said = sandbox.run("said", {}, [text.encode() for text in given.values()], bytes, "deploy", program)
    return [each.decode() for each in (code, *said)]


def test_a_linked_program_runs_over_its_files(sandbox: Sandbox) -> None:
    assert run(sandbox, "cat", "a", "b/c", files={"a": "one ", "b/c": "two"}) == ["0", "one two", ""]


def test_without_its_loader_it_isnt_started(sandbox: Sandbox) -> None:
    path, about = linked("cat")
    with pytest.raises(RendererUnavailable, match="cat can't be started: Permission denied"):
        sandbox.run("said", {}, [], bytes, "deploy", Program(path, (), {}, readable=about["readable"]))


def test_a_library_that_isnt_named_isnt_loaded(sandbox: Sandbox) -> None:
    path, about = linked("cat")
    code, _, _, errors = sandbox.run("said", {}, [], bytes, "deploy", Program(path, ("/dev/null",), {}, loader=about["loader"]))
    assert (code, b"error while loading shared libraries" in errors) == (b"127", True)


def test_nothing_beside_is_readable(sandbox: Sandbox, place: Path) -> None:
    (place / "given").mkdir()
    (place / "secret").write_text("canary")
    (place / "given" / "out").symlink_to("../secret")
    library = linked("cat")[1]["readable"][0]
    others = sorted(str(each) for each in Path(library).parent.glob("libm*.so.*") if str(each) not in linked("cat")[1]["readable"])
    paths = (
        *("/etc/hostname", "/etc/passwd", "/etc/ld.so.cache", "/proc/self/environ", "/proc/1/environ", "/proc/version", others[0]),
        *(str(place / "secret"), str(place / "given" / "out"), str(place / "given" / ".." / "secret")),
    )
    for path in paths:
        code, said, errors = run(sandbox, "cat", path, readable=(str(place / "given"),))
        assert (code, said) == ("1", ""), path
        assert any(each in errors for each in REFUSED), path
    for directory in ("/", "/etc", "/usr/lib", str(Path(library).parent), "/dev/shm", str(place)):
        code, said, errors = run(sandbox, "find", directory, "-mindepth", "1", readable=(str(place / "given"),))
        assert (code, said) == ("1", ""), directory
        assert any(each in errors for each in REFUSED), directory


def test_a_directory_that_is_named_is_read_and_neither_written_nor_run(sandbox: Sandbox, place: Path) -> None:
    (place / "deep").mkdir()
    (place / "deep" / "a").write_text("text")
    (place / "deep" / "a").chmod(0o666)
    (place / "deep").chmod(0o777)
    (place / "tool").write_bytes(Path(os.path.realpath("/bin/true")).read_bytes())
    (place / "tool").chmod(0o755)
    readable = (str(place),)
    assert run(sandbox, "cat", str(place / "deep" / "a"), readable=readable) == ["0", "text", ""]
    assert run(sandbox, "find", str(place / "deep"), "-mindepth", "1", readable=readable)[:2] == ["0", f"{place}/deep/a\n"]
    for command in (("cp", "b", str(place / "deep" / "new")), ("cp", "b", str(place / "deep" / "a")), ("env", str(place / "tool"))):
        code, _, errors = run(sandbox, *command, files={"b": "changed"}, readable=readable)
        assert code != "0", command
        assert any(each in errors for each in REFUSED), command
    assert sorted(each.name for each in (place / "deep").iterdir()) == ["a"]
    assert (place / "deep" / "a").read_text() == "text"


def test_one_that_the_renders_user_cannot_read_is_the_operators(sandbox: Sandbox, place: Path) -> None:
    (place / "closed").mkdir(mode=0o700)
    if os.geteuid() == 0:
        with pytest.raises(RendererUnavailable, match=rf"cat can't be started: user \d+ may not read {place}/closed"):
            run(sandbox, "cat", "/dev/null", readable=(str(place / "closed"),))
    with pytest.raises(ValueError, match="no path for a program"):
        run(sandbox, "cat", "/dev/null", readable=("relative",))


def test_nix_is_found_with_its_libraries_and_known_by_them(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.setenv(render_tools.DIRECTORY, str(nix.binaries()))
    found = render_tools.find("nix")
    assert Path(found.path).name == "nix-instantiate"
    assert Path(found.loader).name.startswith("ld-")
    assert any(Path(each).name.startswith("libnixexpr.so") for each in found.libraries)
    assert all(Path(each).is_file() for each in found.libraries)
    assert found.environment == {"LD_LIBRARY_PATH": ":".join(dict.fromkeys(str(Path(each).parent) for each in found.libraries))}
    changed = place / "lib" / "nix"
    changed.mkdir(parents=True)
    (place / "bin").mkdir()
    for each in sorted(nix.binaries().parent.glob("lib/nix/*.so*")):
        (changed / each.name).write_bytes(each.read_bytes() + (b"\0" if each.name == "libnixexpr.so" else b""))
    (place / "bin" / "nix-instantiate").write_bytes(Path(found.path).read_bytes())
    (place / "bin" / "nix-instantiate").chmod(0o755)
    monkeypatch.setenv(render_tools.DIRECTORY, str(place / "bin"))
    other = render_tools.find("nix")
    assert str(changed / "libnixexpr.so") in other.libraries
    assert other.digest != found.digest
