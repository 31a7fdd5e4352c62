"""What a checkout says of itself, as git wrote it; outside of one, and of a broken one, nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from handler.source.checkout import Checkout, checkout_around, root_around

URL = "https://git.example.com/acme/shop.git"


def git(directory: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *identity, "-C", str(directory), *arguments], check=True, capture_output=True)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A checkout of trunk with a commit and no remote."""
    directory = tmp_path.resolve() / "work"
    (directory / "apps" / "web").mkdir(parents=True)
    (directory / "apps" / "web" / "a.yaml").touch()
    git(directory.parent, "init", "-q", "-b", "trunk", str(directory))
    git(directory, "add", ".")
    git(directory, "commit", "-q", "-m", "a")
    return directory


def test_outside_of_a_checkout_there_is_none(tmp_path: Path) -> None:
    assert checkout_around(tmp_path) is None


def test_the_root_is_the_nearest_repository(work: Path) -> None:
    assert root_around(work / "apps" / "web") == root_around(work) == work
    (work / "apps" / ".git").write_text("gitdir: elsewhere\n")
    (work.parent / "led").symlink_to(work / "apps" / "web")
    assert root_around(work.parent / "led") == work / "apps"
    assert root_around(work.parent) is None


def test_a_hidden_directory_keeps_its_dot(work: Path) -> None:
    (work / ".deploy" / "web").mkdir(parents=True)
    found = checkout_around(work / ".deploy" / "web")
    assert found is not None
    assert found.inside == ".deploy/web"


def test_the_remote_of_the_branch_wins_over_origin(work: Path) -> None:
    git(work, "remote", "add", "origin", "https://git.example.com/me/shop.git")
    git(work, "remote", "add", "upstream", URL)
    git(work, "config", "branch.trunk.remote", "upstream")
    assert checkout_around(work) == Checkout(work, "", URL, "trunk")


def test_a_detached_head_follows_the_default_branch_of_the_host(work: Path, tmp_path: Path) -> None:
    clone = tmp_path.resolve() / "clone"
    git(work, "branch", "side")
    git(tmp_path, "clone", "-q", str(work), str(clone))
    git(clone, "checkout", "-q", "--detach", "origin/side")
    found = checkout_around(clone)
    assert (found and found.branch, found and found.remote) == ("trunk", str(work))


def test_another_work_tree_has_its_own_branch_and_the_same_remote(work: Path) -> None:
    git(work, "remote", "add", "origin", URL)
    git(work, "worktree", "add", "-q", "-b", "next", "../next")
    assert checkout_around(work.parent / "next" / "apps") == Checkout(work.parent / "next", "apps", URL, "next")


def test_a_detached_head_is_on_no_branch(work: Path) -> None:
    git(work, "remote", "add", "origin", URL)
    git(work, "checkout", "-q", "--detach")
    assert checkout_around(work) == Checkout(work, "", URL, "")


def test_a_branch_with_a_slash_keeps_it(work: Path) -> None:
    git(work, "checkout", "-q", "-b", "feature/tea")
    assert checkout_around(work) == Checkout(work, "", "", "feature/tea")


@pytest.mark.parametrize("content", ["gitdir: /nowhere", "nonsense"])
def test_a_broken_one_says_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / ".git").write_text(content)
    found = checkout_around(tmp_path)
    assert found is None or (found.remote, found.branch) == ("", "")
