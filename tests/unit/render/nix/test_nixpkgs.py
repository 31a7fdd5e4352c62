"""Directories of the operator: their digest is that of their content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handler.config.settings_shape import Json
from handler.model.errors import RendererUnavailable
from handler.render.nix import nixpkgs


def made(place: Path, files: dict[str, str]) -> str:
    for path, text in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    return str(place)


def digest(path: str) -> str:
    return nixpkgs.find("nixpkgs", path).digest


def test_the_same_content_is_the_same_input_wherever_it_lies(tmp_path: Path) -> None:
    files = {"default.nix": "1", "lib/a.nix": "2", ".git/HEAD": "3"}
    one, other = made(tmp_path / "one", files), made(tmp_path / "other", {**files, ".git/HEAD": "4"})
    assert digest(one) == digest(other)


@pytest.mark.parametrize("changed", [{"default.nix": "2"}, {"lib/b.nix": ""}, {"lib/deep/a.nix": "2"}])
def test_another_content_is_another_input(tmp_path: Path, changed: dict[str, str]) -> None:
    files = {"default.nix": "1", "lib/a.nix": "2"}
    assert digest(made(tmp_path / "one", files)) != digest(made(tmp_path / "other", files | changed))


def test_a_link_counts_by_where_it_leads(tmp_path: Path) -> None:
    found = set()
    for target in ("a", "b"):
        place = tmp_path / f"to-{target}"
        made(place, {"a": "", "b": ""})
        (place / "link").symlink_to(target)
        (place / "folder").symlink_to("/nowhere")
        found.add(digest(str(place)))
    assert len(found) == 2


def test_a_path_that_leads_to_another_directory_is_another_input(tmp_path: Path) -> None:
    one, other = made(tmp_path / "one", {"a": "1"}), made(tmp_path / "other", {"a": "2"})
    link = tmp_path / "current"
    link.symlink_to(one)
    before = nixpkgs.find("nixpkgs", str(link))
    assert (before.path, before.real, before.read) == (str(link), one, f"//directory/{link}")
    link.unlink()
    link.symlink_to(other)
    assert digest(str(link)) == digest(other) != before.digest


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cant_be_read_is_the_operators(tmp_path: Path) -> None:
    made(tmp_path, {"closed/a": ""})
    (tmp_path / "closed").chmod(0)
    with pytest.raises(RendererUnavailable, match=r"nixPath\.nixpkgs"):
        digest(str(tmp_path))


def test_what_isnt_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RendererUnavailable, match=rf"nixPath\.nixpkgs: {tmp_path}/none: is no directory here; correct nixPath"):
        digest(str(tmp_path / "none"))


def test_names_and_paths_are_read_from_the_settings() -> None:
    assert nixpkgs.paths(Json('{"nixpkgs":"/opt/nixpkgs"}')) == {"nixpkgs": "/opt/nixpkgs"}
    assert nixpkgs.paths(Json("")) == {}
