"""Which files are rendered, and what was looked at to decide it."""

from __future__ import annotations

import pytest

from handler.model.errors import SourceRefused
from handler.model.tree import DIRECTORY, TreeEntry
from handler.render import file_renderer
from handler.render.file_renderer import FileSelection
from handler.render.globs import Selection
from tests.fakes.source_tree import FakeTree

EVERY = ("**/*.yaml", "**/*.yml", "**/*.json")


def _selecting(tree: FakeTree, path: str, include: tuple[str, ...] = EVERY, exclude: tuple[str, ...] = ()) -> FileSelection:
    root = tree.lookup(path)
    assert root
    return FileSelection(tree, root, Selection.of(include, exclude))


def _selected(tree: FakeTree, path: str = "", include: tuple[str, ...] = EVERY, exclude: tuple[str, ...] = ()) -> list[str]:
    return list(_selecting(tree, path, include, exclude).run())


def test_files_are_selected_by_glob_in_path_order() -> None:
    tree = FakeTree({"d/b.yaml": "", "d/a/z.yml": "", "d/c.json": "", "d/README.md": "", "d/crds/x.yaml": "", "e/f.yaml": ""})
    assert _selected(tree, "d", exclude=("crds",)) == ["d/a/z.yml", "d/b.yaml", "d/c.json"]
    assert _selected(tree, "d", include=("*.yaml", "crds/")) == ["d/b.yaml", "d/crds/x.yaml"]
    assert len(_selected(tree)) == 5


def test_ignore_files_nest_and_an_ignored_directory_cannot_be_taken_back() -> None:
    tree = FakeTree(
        {
            "d/.annealignore": "values.yaml\n/test/\n*.tmp.yaml\n",
            "d/sub/.annealignore": "!values.yaml\nlocal.yaml\n",
            "d/test/.annealignore": "!a.yaml\n",
            ".annealignore": "*",
            **dict.fromkeys(
                [
                    "d/a.yaml",
                    "d/values.yaml",
                    "d/test/a.yaml",
                    "d/sub/test/a.yaml",
                    "d/sub/values.yaml",
                    "d/sub/local.yaml",
                    "d/x.tmp.yaml",
                ],
                "",
            ),
        }
    )
    assert _selected(tree, "d") == ["d/a.yaml", "d/sub/test/a.yaml", "d/sub/values.yaml"]


def test_links_are_followed_inside_the_repository_and_everything_outside_is_noted() -> None:
    files = {"d/a.yaml": "a", "base/b.yaml": "b", "base/c.yaml": "c", "other/o.yaml": "o"}
    tree = FakeTree(files, {"d/b.yaml": "../base/b.yaml", "d/all": "../base", "d/note": "../missing", "d/same.yaml": "a.yaml"})
    chosen = _selecting(tree, "d")
    assert list(chosen.run()) == ["base/b.yaml", "base/c.yaml", "d/a.yaml"]
    base, file = tree.lookup("base"), tree.lookup("base/b.yaml")
    assert base
    assert file
    assert chosen.reads == {"base": base.oid, "base/b.yaml": file.oid, "missing": ""}


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ({"d/x.yaml": "/etc/passwd"}, "d/x.yaml: this symbolic link is absolute"),
        ({"d/x": "../../.."}, "d/x: this symbolic link leads out of the repository"),
        ({"d/x.yaml": "missing.yaml"}, "d/x.yaml: this symbolic link leads nowhere"),
        ({"d/x.yaml": "y.yaml", "d/y.yaml": "x.yaml"}, "links in a circle"),
        ({"d/x": "."}, "d/x: this symbolic link leads to a directory that it is in"),
        ({"d/x": "../e", "e/y": "../d"}, "e/y: this symbolic link leads to a directory that it is in"),
        ({"d/.annealignore": "../e/z"}, "d/.annealignore: an ignore file can't be a symbolic link"),
    ],
)
def test_a_link_that_cannot_be_followed_is_refused_by_its_name(links: dict[str, str], message: str) -> None:
    tree = FakeTree({"d/a.yaml": "", "e/z": ""}, links)
    with pytest.raises(SourceRefused, match=message.replace(".", r"\.")):
        _selected(tree, "d")


def test_an_ignored_link_is_not_followed() -> None:
    tree = FakeTree({"d/a.yaml": "", "d/.annealignore": "x\n"}, {"d/x": "/etc"})
    assert _selected(tree, "d") == ["d/a.yaml"]


def test_too_many_rules_for_so_many_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = FakeTree({"d/.annealignore": "a\nb\n", "d/a.yaml": "", "d/b.yaml": ""})
    monkeypatch.setattr(file_renderer, "MAX_COMPARISONS", 5)
    with pytest.raises(SourceRefused, match="too many rules"):
        _selected(tree, "d")


def test_a_huge_ignore_file_is_refused() -> None:
    with pytest.raises(SourceRefused, match=r"d/\.annealignore: has more than 65,536 bytes"):
        _selected(FakeTree({"d/.annealignore": "#" * 70_000}), "d")


def test_the_fake_tree_changes_its_ids_as_git_does() -> None:
    one, two = FakeTree({"d/a/x": "1", "e": ""}), FakeTree({"d/a/x": "2", "e": ""})
    assert one.lookup("d") == TreeEntry("d", DIRECTORY, getattr(one.lookup("d"), "oid", ""))
    assert one.lookup("e") == two.lookup("e")
    assert all(one.lookup(path) != two.lookup(path) for path in ("", "d", "d/a", "d/a/x"))
