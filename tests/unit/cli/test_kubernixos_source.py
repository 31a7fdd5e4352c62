"""MODULES and PACKAGES as upstream's wrappers write them, and where their paths are found by nix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handler.cli.kubernixos_source import LocalClosure, renderer


@pytest.fixture
def found(tmp_path: Path) -> LocalClosure:
    """A repository, and commands run below its root."""
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/shop/hosts").mkdir(parents=True)
    (tmp_path / "else/nixpkgs").mkdir(parents=True)
    (tmp_path / "else/group.nix").write_text("{ }")
    return LocalClosure.around(tmp_path / "repo/shop")


def test_the_files_are_those_of_the_repository(found: LocalClosure, tmp_path: Path) -> None:
    assert (found.root, found.path) == (tmp_path / "repo", "shop")
    assert LocalClosure.around(tmp_path / "repo").path == ""
    assert LocalClosure.around(tmp_path / "else") == LocalClosure(tmp_path / "else", tmp_path / "else")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("(import hosts/prod.nix).network.modules", "(import hosts/prod.nix).network.modules"),
        ("(import ROOT/shop/hosts/prod.nix).network.pkgs", "(import ../shop/hosts/prod.nix).network.pkgs"),
        ("[ ROOT/a.nix ROOT/b.nix ]", "[ ../a.nix ../b.nix ]"),
        ("import ROOT { }", "import ../. { }"),
        ("[ ROOT-other/a.nix ]", "[ ROOT-other/a.nix ]"),
        ("[ ./ROOT/a.nix <nixpkgs/nixos> ]", "[ ./ROOT/a.nix <nixpkgs/nixos> ]"),
        ('fetchTarball "https://example.com/ROOT/a"', 'fetchTarball "https://example.com/ROOT/a"'),
    ],
)
def test_paths_into_the_files_are_relative(written: str, read: str, found: LocalClosure) -> None:
    root = str(found.root)
    inside = written.replace("./ROOT", "./ROOT".lower()).replace("com/ROOT", "com/root").replace("ROOT", root)
    assert found.relative(inside) == read.replace("./ROOT", "./root").replace("com/ROOT", "com/root").replace("ROOT", root)


def test_what_lies_elsewhere_is_made_readable_and_nothing_more(found: LocalClosure, tmp_path: Path) -> None:
    outside = tmp_path / "else"
    made = renderer(
        found,
        f"(import {outside}/group.nix).network.modules ++ [ {found.root}/a.nix /absent/b.nix ]",
        {"PACKAGES": f"import {outside}/nixpkgs {{ }}", "NIX_PATH": f"nixpkgs={outside}/nixpkgs:gone=/absent:{outside}:x=https://a/b"},
        show_trace=False,
    )
    assert json.loads(made.nix_path) == {"nixpkgs": f"{outside}/nixpkgs", "outside-0": str(outside)}
    assert made.modules == f"(import {outside}/group.nix).network.modules ++ [ ../a.nix /absent/b.nix ]"
    assert made.packages == f"import {outside}/nixpkgs {{ }}"


def test_links_elsewhere_are_resolved_for_nix_sees_none(found: LocalClosure, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "else")
    (tmp_path / "back").symlink_to(found.root)
    assert found.relative(f"import {tmp_path}/link/group.nix") == f"import {tmp_path}/else/group.nix"
    assert list(found.outside(f"import {tmp_path}/link/group.nix")) == [f"{tmp_path}/else"]
    assert found.relative(f"import {tmp_path}/back/shop/a.nix") == f"import {tmp_path}/back/shop/a.nix", "there is no such file"
    (found.here / "a.nix").write_text("{ }")
    assert found.relative(f"import {tmp_path}/back/shop/a.nix") == "import ../shop/a.nix"


def test_a_file_below_the_root_of_the_machine_opens_nothing_else(found: LocalClosure) -> None:
    assert list(found.outside("[ /vmlinuz /${x}/etc ]")) == []
    assert list(found.outside('"${pkgs.path}/etc"')) == []
