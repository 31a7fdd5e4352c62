"""A run's directory is its own, goes with whatever is in it, and what dead workers left is swept and nothing else."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from pathlib import Path

import pytest

from handler.render.programs import private_directories
from handler.render.programs.private_directories import PREFIX, PrivateDirectories, remove


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    monkeypatch.setattr(private_directories, "MEMORY", str(tmp_path / "memory"))
    monkeypatch.delenv("TMPDIR", raising=False)
    return directory


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(private_directories, "ROOM", 1)
    directory = tmp_path / "memory"
    directory.mkdir()
    return directory


def test_runs_are_in_shared_memory_where_the_operator_names_no_directory(memory: Path, temporary: Path) -> None:
    directories = PrivateDirectories()
    with directories.one() as place:
        assert Path(place).parents[1] == memory
    directories.close()
    assert [*memory.iterdir(), *temporary.iterdir()] == []


def test_the_directory_that_the_operator_names_is_taken(memory: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(temporary))
    directories = PrivateDirectories()
    with directories.one() as place:
        assert Path(place).parents[1] == temporary
    directories.close()
    assert list(memory.iterdir()) == []


def test_memory_without_room_for_runs_is_left_alone(memory: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_directories, "ROOM", 1 << 62)
    directories = PrivateDirectories()
    with directories.one() as place:
        assert Path(place).parents[1] == temporary
    directories.close()
    assert list(memory.iterdir()) == []


def test_what_dead_workers_left_in_either_place_is_swept(memory: Path, temporary: Path) -> None:
    for place in (memory, temporary):
        (place / f"{PREFIX}dead" / "run-1" / "files").mkdir(parents=True)
    directories = PrivateDirectories()
    with directories.one():
        pass
    directories.close()
    assert [*memory.iterdir(), *temporary.iterdir()] == []


def test_each_run_has_a_closed_directory_that_is_removed_with_its_content(temporary: Path) -> None:
    directories = PrivateDirectories()
    with directories.one() as first, directories.one() as second:
        assert first != second
        assert [stat.S_IMODE(Path(each).stat().st_mode) for each in (first, Path(first).parent)] == [0o700, 0o711]
        Path(first, "a").mkdir(mode=0)
        Path(first, "link").symlink_to(temporary)
    assert list(Path(first).parent.iterdir()) == []
    directories.close()
    directories.close()
    assert list(temporary.iterdir()) == []


def test_a_base_that_was_cleaned_away_is_made_anew(temporary: Path) -> None:
    directories = PrivateDirectories()
    with directories.one() as first:
        pass
    Path(first).parent.rmdir()
    with directories.one() as second:
        assert Path(second).is_dir()
    directories.close()
    assert list(temporary.iterdir()) == []


def test_a_directory_is_removed_when_its_run_fails(temporary: Path) -> None:
    directories = PrivateDirectories()
    with pytest.raises(RuntimeError), directories.one():
        raise RuntimeError
    assert [list(base.iterdir()) for base in temporary.iterdir()] == [[]]
    directories.close()


def test_a_tree_deeper_than_python_and_paths_reach_is_removed(temporary: Path) -> None:
    here = os.open(temporary, os.O_RDONLY)
    for number in range(2000):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        if number % 500 == 0:
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
            os.mkdir("beside", 0, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    remove(str(temporary / "d"))
    remove(str(temporary / "d"))
    assert {each.name for each in temporary.iterdir()} == {"file", "beside"}


def test_bases_of_dead_workers_are_swept_and_no_others(temporary: Path) -> None:
    dead, living, elsewhere, file = (temporary / f"{PREFIX}{name}" for name in ("dead", "living", "link", "file"))
    (dead / "run-1" / "files").mkdir(parents=True)
    living.mkdir()
    kept = temporary / "kept"
    kept.mkdir()
    elsewhere.symlink_to(kept)
    file.touch()
    held = os.open(living, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    foreign = temporary / f"{PREFIX}foreign"
    foreign.mkdir()
    if os.geteuid() == 0:
        os.chown(foreign, 4711, 4711)
    directories = PrivateDirectories()
    with directories.one():
        assert not dead.exists()
        assert living.is_dir()
        assert elsewhere.is_symlink()
        assert kept.is_dir()
        assert file.exists()
        assert foreign.is_dir() is (os.geteuid() == 0)
    directories.close()
    os.close(held)
