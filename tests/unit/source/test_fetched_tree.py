"""FetchedTree over objects in memory: look-ups, walks, links, limits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dulwich.objects import Blob, ObjectID
from dulwich.objects import Tree as GitTree

from handler.model.errors import GitUnavailable, SourceRefused
from handler.model.tree import CommitInfo, resolve_links
from handler.source.fetched_tree import FetchedTree
from handler.source.git_objects import BLOB, TREE, Objects
from handler.source.host_limits import HostLimits

Files = dict[str, "str | Files | tuple[int, str]"]
LIMITS = HostLimits(entries=100, depth=5, path=100)
COMMIT = CommitInfo("1" * 40, "", "", 0)


def built(files: Files, objects: Objects) -> str:
    """Put a nested dict into objects: text is a file, `-> x` a link, a dict a directory, a pair mode and id."""
    tree = GitTree()
    for name, content in files.items():
        if isinstance(content, dict):
            mode, oid = 0o040000, built(content, objects)
        elif isinstance(content, tuple):
            mode, oid = content
        else:
            link = content.startswith("-> ")
            blob = Blob.from_string(content.removeprefix("-> ").encode())
            mode, oid = 0o120000 if link else 0o100644, blob.id.decode()
            objects[oid] = (BLOB, blob.as_raw_string())
        tree.add(name.encode(), mode, ObjectID(oid.encode()))
    objects[tree.id.decode()] = (TREE, tree.as_raw_string())
    return tree.id.decode()


def fetched(files: Files, limits: HostLimits = LIMITS) -> FetchedTree:
    objects: Objects = {}
    return FetchedTree(COMMIT, built(files, objects), objects, limits)


SHOP: Files = {
    "a.yaml": "a",
    "a": {"b": "b", "c": {"d": "d"}},
    "a-b": "x",
    "now": "-> a/c",
    "up": {"x": "-> ../a.yaml", "y": "-> ../now/d", "out": "-> ../../etc/passwd", "abs": "-> /etc/passwd", "top": "-> .."},
    "loop": "-> loop2",
    "loop2": "-> loop",
    "gone": "-> nowhere/x",
    "file-as-dir": "-> a.yaml/x",
    "empty": "-> ",
}


def test_a_walk_yields_files_and_links_sorted_by_path() -> None:
    paths = [entry.path for entry in fetched(SHOP).walk("")]
    assert paths == sorted(paths)
    assert {"a-b", "a.yaml", "a/b", "a/c/d", "now", "up/abs"} < set(paths)
    assert [entry.path for entry in fetched(SHOP).walk("a")] == ["a/b", "a/c/d"]
    assert list(fetched(SHOP).walk("a.yaml")) == list(fetched(SHOP).walk("nowhere")) == []


def test_a_lookup_doesnt_follow_links_and_knows_the_root() -> None:
    tree = fetched(SHOP)
    assert [bool(tree.lookup(path)) for path in ("", "a", "a/c/d", "now", "now/d", "a.yaml/x", "x", "a//b", "a/..")] == [True] * 4 + [
        False
    ] * 5


@pytest.mark.parametrize(
    ("path", "leads_to", "looked"),
    [
        ("a/c/d", "a/c/d", ["a/c/d"]),
        ("now", "a/c", ["now", "a/c"]),
        ("now/d", "a/c/d", ["now", "a/c/d"]),
        ("up/x", "a.yaml", ["up/x", "a.yaml"]),
        ("up/y", "a/c/d", ["up/y", "now", "a/c/d"]),
        ("up/top", "", ["up/top", ""]),
        ("gone", None, ["gone", "nowhere"]),
        ("nowhere", None, ["nowhere"]),
        ("file-as-dir", None, ["file-as-dir", "a.yaml"]),
    ],
)
def test_symlinks_resolve_as_a_kernel_resolves_them(path: str, leads_to: str | None, looked: list[str]) -> None:
    tree = fetched(SHOP)
    found = resolve_links(tree, path)
    assert (found.entry.path if found.entry else None) == leads_to
    assert [place for place, _ in found.looked] == looked
    assert all(oid == (entry.oid if (entry := tree.lookup(place)) else "") for place, oid in found.looked)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("up/out", "up/out: this symbolic link leads out"),
        ("up/abs", "up/abs: this symbolic link is absolute"),
        ("loop", "in a circle"),
        ("empty", "no usable target"),
        ("../x", "leads out"),
    ],
)
def test_symlinks_out_of_the_repository_are_refused_without_their_target(path: str, said: str) -> None:
    with pytest.raises(SourceRefused) as refused:
        resolve_links(fetched(SHOP), path)
    assert said in str(refused.value)
    assert "passwd" not in str(refused.value)


def test_symlinks_that_double_at_each_step_end_at_the_limit() -> None:
    bomb: Files = {"l30": "-> d", "d": {}, **{f"l{n}": f"-> l{n + 1}/../l{n + 1}" for n in range(30)}}
    with pytest.raises(SourceRefused, match="more than 40"):
        resolve_links(fetched(bomb), "l0")


def test_a_submodule_stops_a_walk_and_a_link() -> None:
    tree = fetched({"sub": (0o160000, "2" * 40), "to": "-> sub/x"})
    for look in (lambda: list(tree.walk("")), lambda: resolve_links(tree, "to"), lambda: resolve_links(tree, "sub")):
        with pytest.raises(SourceRefused, match="sub: this is a submodule"):
            look()


@pytest.mark.slow
def test_a_tree_bomb_ends_at_the_limit_of_entries() -> None:
    files: Files = {"f": "x"}
    for _ in range(4):
        files = dict.fromkeys("abcdefghij", files)
    with pytest.raises(SourceRefused, match="more than 100 files"):
        fetched(files).check("")


def test_a_directory_over_the_entries_limit_is_refused_unparsed() -> None:
    files: Files = {f"file-{number:03}": "x" for number in range(101)}
    for tree, path in ((fetched(files), ""), (fetched({"deploy": files}), "deploy"), (fetched({"deploy": files}), "deploy/x")):
        with pytest.raises(SourceRefused, match="more than 100 files"):
            tree.check(path)
    files.popitem()
    fetched(files).check("")


def test_trees_on_the_way_count_together_against_the_entries_limit() -> None:
    files: Files = {f"file-{number:03}": "x" for number in range(60)}
    tree = fetched({"deploy": {**files, "prod": {"app.yaml": "a"}}, **files})
    with pytest.raises(SourceRefused, match="deploy: has more than 100 files"):
        tree.lookup("deploy/prod/app.yaml")


def test_the_entries_limit_is_per_target_and_listed_trees_are_evicted() -> None:
    files: Files = {f"dir-{d}": {f"file-{n}-{d}": "x" for n in range(90)} for d in range(9)}
    tree = fetched(files)
    before = tree.size
    sizes = []
    for directory in files:
        assert len(list(tree.walk(directory))) == 90
        sizes.append(tree.size)
    assert max(sizes) - before <= 300 * 300  # at most twice the limit, and one tree
    assert len(set(sizes)) > 1


def test_nested_directories_end_at_the_depth_limit() -> None:
    objects: Objects = {}
    root = built({"x": "x"}, objects)
    for _ in range(3000):
        root = built({"d": (0o040000, root)}, objects)
    tree = FetchedTree(COMMIT, root, objects, LIMITS)
    for path in ("", "d/d", "/".join("d" * 2990)):
        with pytest.raises(SourceRefused, match=r"deeper than 5|more than 100"):
            tree.check(path)


def test_depth_and_length_of_paths_are_limited() -> None:
    deep: Files = {"f": "x"}
    for _ in range(6):
        deep = {"d": deep}
    with pytest.raises(SourceRefused, match="deeper than 5"):
        fetched(deep).check("")
    with pytest.raises(SourceRefused, match="longer than 100"):
        fetched({"x" * 60: {"y" * 60: {"f": "x"}}}).check("")


def test_only_what_is_on_the_way_and_below_is_checked() -> None:
    tree = fetched({"bad": {".GIT": "x"}, "good": {"f": "x"}, "to": "-> bad"})
    tree.check("good")
    tree.check("nowhere")
    for path in ("bad", "to", ""):
        with pytest.raises(SourceRefused, match=r"bad/\.GIT"):
            tree.check(path)
    with pytest.raises(SourceRefused):
        tree.lookup("bad/x")


def test_blobs_that_are_missing_are_fetched_once_and_together() -> None:
    objects: Objects = {}
    root = built({"a": "1", "b": "2"}, objects)
    blobs = {oid: objects.pop(oid) for oid, (kind, _) in list(objects.items()) if kind == BLOB}
    asked: list[list[str]] = []

    def fetch(oids: object) -> Objects:
        asked.append(list(oids))  # type: ignore[call-overload]  # a list in fact
        return blobs

    tree = FetchedTree(COMMIT, root, objects, LIMITS, fetch)
    before = tree.size
    for _ in range(2):
        assert set(tree.blobs(blobs).values()) == {b"1", b"2"}
    assert asked == [list(blobs)]
    assert tree.size == before + 2


def test_blobs_of_many_requests_count_together_against_the_size_limit_and_unrequested_ones_are_dropped() -> None:
    objects: Objects = {}
    root = built({"a": "1" * 60, "b": "2" * 60, "c": "3"}, objects)
    blobs = {oid: objects.pop(oid) for oid, (kind, _) in list(objects.items()) if kind == BLOB}
    first, second, third = blobs
    held = sum(len(content) for _, content in objects.values())
    tree = FetchedTree(COMMIT, root, objects, replace(LIMITS, inflated=held + 100), lambda _: blobs)
    tree.blobs([first])
    assert second not in objects
    assert tree.size == held + 60
    tree.blobs([third])
    with pytest.raises(SourceRefused, match="bytes of content"):
        tree.blobs([second])


def test_content_that_is_refused_doesnt_count_for_what_is_asked_for_next() -> None:
    objects: Objects = {}
    root = built({"a": "1" * 200, "b": "2" * 60}, objects)
    blobs = {oid: objects.pop(oid) for oid, (kind, _) in list(objects.items()) if kind == BLOB}
    large, small = blobs
    held = sum(len(content) for _, content in objects.values())
    tree = FetchedTree(COMMIT, root, objects, replace(LIMITS, inflated=held + 100), lambda _: blobs)
    with pytest.raises(SourceRefused, match="bytes of content"):
        tree.blobs([large])
    assert tree.blobs([small]) == {small: b"2" * 60}
    assert tree.size == held + 60


def test_an_object_of_another_type_or_one_left_out_is_named() -> None:
    objects: Objects = {}
    root = built({"a": "1", "d": {"x": "2"}}, objects)
    tree = FetchedTree(COMMIT, root, objects, LIMITS)
    with pytest.raises(SourceRefused, match="another type"):
        tree.blobs([root])
    with pytest.raises(GitUnavailable, match=r"left out object 3{40}"):
        tree.blobs(["3" * 40])
    with pytest.raises(SourceRefused, match="another type"):
        fetched({"d": (0o040000, Blob.from_string(b"1").id.decode()), "a": "1"}).check("")


def test_the_limits_are_per_walk_not_per_life() -> None:
    tree = fetched({str(number): "x" for number in range(60)}, replace(LIMITS, entries=60))
    for _ in range(3):
        tree.check("")
