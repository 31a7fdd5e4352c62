"""A directory on disk as a tree: the same ids as git's, the same rules, and whether it differs from the commit."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from handler.model.errors import SourceRefused
from handler.source.host_limits import HostLimits
from handler.source.local_tree import open_beside, open_local, open_unignored
from infra.githost import Work

LIMITS = HostLimits(object=1000, inflated=5000, entries=50, depth=5)


def shop(directory: Path) -> tuple[Work, str]:
    work = Work(directory / "shop", "nowhere").init()
    work.write("deploy/prod/app.yaml", "kind: Deployment\n").write("deploy/run.sh", "#!/bin/sh\n").write("readme", "hello\n")
    (work.directory / "deploy/run.sh").chmod(0o755)
    (work.directory / "deploy/empty").mkdir()
    work.link("deploy/now", "prod")
    return work, work.commit("First\n\nmore")


def test_ids_are_gits_and_a_clean_directory_is_its_commit(tmp_path: Path) -> None:
    work, sha = shop(tmp_path)
    for inside in (".", "deploy", "deploy/prod"):
        tree, dirty = open_local(work.directory / inside, LIMITS)
        root = tree.lookup("")
        assert root
        assert root.oid == work.git("rev-parse", f"HEAD:{'' if inside == '.' else inside}")
        assert (dirty, tree.commit.sha, tree.commit.subject, tree.commit.author) == (False, sha, "First", "anneal <anneal@example.invalid>")
    assert [entry.path for entry in tree.walk("")] == ["app.yaml"]
    assert list(tree.blobs(entry.oid for entry in tree.walk("")).values()) == [b"kind: Deployment\n"]


@pytest.mark.parametrize("change", ["changed", "added", "removed", "executable"])
def test_any_change_makes_the_directory_dirty_and_only_there(tmp_path: Path, change: str) -> None:
    work, _ = shop(tmp_path)
    file = work.directory / "deploy/prod/app.yaml"
    if change == "changed":
        file.write_text("kind: Pod\n")
    elif change == "added":
        work.write("deploy/prod/new.yaml", "x")
    elif change == "removed":
        file.unlink()
    else:
        file.chmod(0o755)
    work.write("other/file", "outside")
    assert open_local(work.directory / "deploy", LIMITS)[1] is True
    assert open_local(work.directory / "other", LIMITS)[1] is True
    work.commit("Second")
    assert open_local(work.directory / "deploy", LIMITS)[1] is False


def test_a_file_from_elsewhere_stands_beside_the_directory(tmp_path: Path) -> None:
    work, _ = shop(tmp_path)
    far = tmp_path / "far"
    far.mkdir()
    (far / "rollout.yaml").write_text("kind: Rollout\n")
    (far / "deploy").write_text("kind: Rollout\n")
    (far / "link").symlink_to("rollout.yaml")
    directory = work.directory / "deploy"
    for name, seen in (("rollout.yaml", "rollout.yaml"), ("deploy", "beside-deploy"), ("link", "link")):
        tree, inside, outside = open_beside(directory, far / name, LIMITS)
        assert (inside, outside, tree.commit.sha) == ("deploy", seen, "")
        same = open_local(directory, LIMITS)[0].lookup("")
        placed, file = tree.lookup("deploy"), tree.lookup(outside)
        assert same
        assert placed
        assert file
        assert placed.oid == same.oid
        assert tree.blobs([file.oid])[file.oid] == b"kind: Rollout\n"
    for missing in (far / "none", far):
        with pytest.raises(SourceRefused, match="far"):
            open_beside(directory, missing, LIMITS)
    with pytest.raises(SourceRefused, match="is not a directory"):
        open_beside(far / "link", far / "link", LIMITS)


def test_without_a_repository_or_a_commit_there_is_no_commit(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text("x")
    tree, dirty = open_local(tmp_path, LIMITS)
    assert (tree.commit.sha, tree.commit.subject, tree.commit.author, tree.commit.time, dirty) == ("", "", "", 0, False)
    work = Work(tmp_path / "fresh", "nowhere").init().write("a", "x")
    tree, dirty = open_local(work.directory, LIMITS)
    assert (tree.commit.sha, dirty, [entry.path for entry in tree.walk("")]) == ("", False, ["a"])


def test_links_are_read_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("outside")
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir/link").symlink_to(tmp_path / "secret")
    tree, _ = open_local(tmp_path / "dir", LIMITS)
    (entry,) = tree.walk("")
    assert entry.mode == 0o120000
    assert tree.blobs([entry.oid])[entry.oid] == os.fsencode(tmp_path / "secret")


def test_special_files_and_too_large_ones_are_refused_by_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceRefused, match="pipe: is neither a file"):
        open_local(tmp_path, LIMITS)
    (tmp_path / "pipe").unlink()
    (tmp_path / "big").write_bytes(bytes(1001))
    with pytest.raises(SourceRefused, match="big: is larger than 1000"):
        open_local(tmp_path, LIMITS)
    (tmp_path / "big").unlink()
    for number in range(6):
        (tmp_path / f"f{number}").write_bytes(bytes([number]) * 1000)
    with pytest.raises(SourceRefused, match="more than 5000 bytes"):
        open_local(tmp_path, LIMITS)
    with pytest.raises(SourceRefused, match="more than 5 files"):
        open_local(tmp_path, replace(LIMITS, entries=5))
    with pytest.raises(SourceRefused, match="is not a directory"):
        open_local(tmp_path / "f1", LIMITS)
    (tmp_path / "1/2/3/4/5/6").mkdir(parents=True)
    with pytest.raises(SourceRefused, match="deeper than 5"):
        open_local(tmp_path, replace(LIMITS, inflated=10_000))


@pytest.mark.parametrize("name", [b"a\nb", b"\xff", b".GIT", b"a\\b"])
def test_a_name_that_could_harm_is_refused_here_too(tmp_path: Path, name: bytes) -> None:
    Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_text("x")  # noqa: PTH118 - bytes
    with pytest.raises(SourceRefused) as refused:
        open_local(tmp_path, LIMITS)
    assert str(refused.value).isprintable()


def test_what_git_ignores_and_what_no_tree_may_hold_is_left_out(tmp_path: Path) -> None:
    work, sha = shop(tmp_path)
    work.write(".gitignore", "/result\nnode_modules/\n*.log\n!kept.log\n")
    sha = work.commit("Rules")
    (work.directory / "result").symlink_to("/nix/store/made")
    work.write("deploy/node_modules/a.nix", "x" * 900).write("x.log", "x").write("node_modules", "a file of this name")
    tree, dirty = open_unignored(work.directory, LIMITS)
    assert (dirty, tree.commit.sha) == (True, sha), "the file node_modules is no directory, so it isn't ignored"
    (work.directory / "node_modules").unlink()
    tree, dirty = open_unignored(work.directory, LIMITS)
    assert (dirty, tree.commit.sha) == (False, sha)
    work.write("kept.log", "x").write("large", "x" * 2000)
    tree, dirty = open_unignored(work.directory, LIMITS)
    assert (dirty, tree.lookup("kept.log") is None, tree.lookup("large")) == (True, False, None)


def test_sockets_and_pipes_are_passed_over_as_git_does(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.nix").write_text("1")
    tree, _ = open_unignored(tmp_path, LIMITS)
    assert [each.path for each in tree.walk("")] == ["a.nix"]


def test_without_a_repository_nothing_is_ignored(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*")
    tree, dirty = open_unignored(tmp_path, LIMITS)
    assert (dirty, tree.lookup(".gitignore") is None) == (False, False)
