"""What a merge makes of renamed files and directories, compared with `git merge-tree` as it is set; of attributes; what it fetches."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tree
from dulwich.repo import Repo

from handler.model.tree import NO_COMMIT
from handler.source.fetched_tree import FetchedTree
from handler.source.git_objects import Objects
from handler.source.host_limits import HostLimits
from handler.source.merged_tree import MergedTree, merge
from handler.source.text_merge import ALL_BYTES
from infra.gitwork import git_environment

Files = dict[str, str]
"""Path -> text."""
History = tuple[Files, Files, Files]
"""The files where two branches part, of the base and of the head."""


class Histories:
    """Repositories of few commits, in memory and, for git, on disk."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.objects: Objects = {}
        self._made: dict[str, ShaFile] = {}

    def tree(self, files: Files) -> str:
        """Make a tree and return its id."""
        made, below = Tree(), dict[str, Files]()
        for path, text in files.items():
            first, _, rest = path.partition("/")
            if rest:
                below.setdefault(first, {})[rest] = text
            else:
                made.add(first.encode(), 0o100644, ObjectID(self._added(Blob.from_string(text.encode())).encode()))
        for name, inner in below.items():
            made.add(name.encode(), 0o040000, ObjectID(self.tree(inner).encode()))
        return self._added(made)

    def commit(self, files: Files, *parents: str) -> tuple[str, FetchedTree]:
        """Make a commit and return its id and what is in it."""
        root, made = self.tree(files), Commit()
        made.tree, made.parents = ObjectID(root.encode()), [ObjectID(parent.encode()) for parent in parents]
        made.author = made.committer = b"anneal <anneal@example.invalid>"
        made.author_time = made.commit_time = made.author_timezone = made.commit_timezone = 0
        made.message = b"x"
        return self._added(made), FetchedTree(NO_COMMIT, root, self.objects, HostLimits())

    def merges(self, histories: list[History]) -> list[tuple[MergedTree, str]]:
        """Return what is made of each, here and by git."""
        made = []
        for ancestor, base, head in histories:
            parted, was = self.commit(ancestor)
            (one, now), (other, then) = self.commit(base, parted), self.commit(head, parted)
            made.append((merge(now, then, was), one, other))
        with closing(Repo.init_bare(str(self.directory))) as repository:
            repository.object_store.add_objects([(each, None) for each in self._made.values()])
        return [(merged, self._by_git(one, other)) for merged, one, other in made]

    def _added(self, made: ShaFile) -> str:
        oid = made.id.decode()
        self.objects[oid] = (made.type_num, made.as_raw_string())
        self._made[oid] = made
        return oid

    def _by_git(self, base: str, head: str) -> str:
        """Return the tree that git makes; empty: it has a conflict."""
        command = ["git", "merge-tree", "--write-tree", base, head]
        environment = git_environment(self.directory)
        ended = subprocess.run(command, cwd=self.directory, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode in (0, 1), ended.stderr
        return ended.stdout.split()[0] if ended.returncode == 0 else ""


@pytest.fixture
def histories(tmp_path: Path) -> Histories:
    return Histories(tmp_path)


def text_of(name: str) -> str:
    return "".join(f"{name}-{number}: {number}\n" for number in range(12))


def moved(files: Files, to: dict[str, str]) -> Files:
    """Rename files, or directories where a name ends with a slash; to nothing: remove them."""
    found = dict(files)
    for path in files:
        for old, new in to.items():
            if path == old or (old.endswith("/") and path.startswith(old)):
                text = found.pop(path)
                found |= {new + path.removeprefix(old): text} if new else {}
    return found


PARTED = {path: text_of(path) for path in ("a/x", "a/y", "a/s/x", "b/x", "b/y", "c/x", "top")}
OTHER = text_of("other")
MERGED, CONFLICT, UNSURE = "merged here and by git", "a conflict here and in git", "a conflict here alone"
CASES: dict[str, tuple[Files, Files, str]] = {
    "a file renamed": (moved(PARTED, {"a/x": "b/z"}), PARTED | {"c/x": OTHER}, MERGED),
    "a file renamed, and changed on the other side": (moved(PARTED, {"a/x": "b/z"}), PARTED | {"a/x": "y"}, UNSURE),
    "renamed to two names": (moved(PARTED, {"a/x": "b/z"}), moved(PARTED, {"a/x": "c/z"}), CONFLICT),
    "renamed to one name": (moved(PARTED, {"a/x": "b/z"}), moved(PARTED, {"a/x": "b/z"}), MERGED),
    "renamed to one name, and more": (
        moved(PARTED, {"a/x": "b/z"}) | {"n": OTHER},
        moved(PARTED, {"a/x": "b/z"}) | {"o": OTHER * 2},
        MERGED,
    ),
    "renamed and removed": (moved(PARTED, {"a/x": "b/z"}), moved(PARTED, {"a/x": ""}), CONFLICT),
    "renamed with an edit, and removed": (
        moved(PARTED, {"a/x": ""}) | {"b/z": PARTED["a/x"] + "z: 1\n"},
        moved(PARTED, {"a/x": ""}),
        CONFLICT,
    ),
    "removed twice": (moved(PARTED, {"a/x": ""}), moved(PARTED, {"a/x": "", "b/x": ""}), MERGED),
    "removed twice, and another renamed": (moved(PARTED, {"a/x": "", "b/x": "b/z"}), moved(PARTED, {"a/x": ""}), MERGED),
    "a directory renamed": (moved(PARTED, {"a/": "d/"}), PARTED | {"b/x": OTHER}, MERGED),
    "a directory renamed, and a file added to it": (moved(PARTED, {"a/": "d/"}), PARTED | {"a/new": OTHER}, CONFLICT),
    "a directory renamed, and an empty file added to it": (moved(PARTED, {"a/": "d/"}), PARTED | {"a/new": ""}, CONFLICT),
    "a directory renamed, and a directory added to it": (moved(PARTED, {"a/": "d/"}), PARTED | {"a/t/new": OTHER}, UNSURE),
    "a directory within one renamed, and a file added to it": (moved(PARTED, {"a/s/": "a/t/"}), PARTED | {"a/s/new": OTHER}, CONFLICT),
    "a directory within one renamed, and a file added above": (moved(PARTED, {"a/s/": "a/t/"}), PARTED | {"a/new": OTHER}, MERGED),
    "a directory moved to the root, and a file added to it": (
        moved(PARTED, {"b/": ""}) | {"x2": PARTED["b/x"]},
        PARTED | {"b/n": OTHER},
        CONFLICT,
    ),
    "a directory renamed, and another moved into it": (moved(PARTED, {"a/": "d/"}), moved(PARTED, {"c/x": "a/c"}), CONFLICT),
    "a directory renamed with edits, and a file added to it": (
        moved(PARTED, {"c/": ""}) | {"d/x": PARTED["c/x"] + "z: 1\n"},
        PARTED | {"c/new": OTHER},
        CONFLICT,
    ),
    "a directory removed, and a file added to it": (moved(PARTED, {"c/": ""}), PARTED | {"c/new": OTHER}, MERGED),
    "a file becomes a directory and is removed": (moved(PARTED, {"top": "top/new"}), moved(PARTED, {"top": ""}), CONFLICT),
}


@pytest.mark.parametrize("case", CASES)
def test_what_git_takes_for_renamed_merges_as_in_git_or_is_a_conflict(histories: Histories, case: str) -> None:
    ours, theirs, expected = CASES[case]
    for made, tree in histories.merges([(PARTED, ours, theirs), (PARTED, theirs, ours)]):
        assert (not made.conflicts, bool(tree)) == (expected == MERGED, expected != CONFLICT)
        assert made.conflicts or made.root.entry.oid == tree


class Chance:
    """Makes histories by chance."""

    places = ("a", "a/s", "b", "c", "d", "d/s", "")

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def history(self) -> History:
        """Return one with a few changes on each side; some are on both."""
        ancestor = {path: self._text() for path in (self._path() for _ in range(8))}
        ancestor = {path: text for path, text in ancestor.items() if not any(other.startswith(f"{path}/") for other in ancestor)}
        shared = [self._random.randrange(1 << 30) for _ in range(self._random.randrange(3))]
        sides = []
        for _ in range(2):
            seeds = [*shared, *(self._random.randrange(1 << 30) for _ in range(self._random.randrange(1, 4)))]
            files = ancestor
            for seed in seeds:
                files = Chance(seed).changed(files) or files
            sides.append(files)
        return ancestor, sides[0], sides[1]

    def changed(self, files: Files) -> Files:
        """Return files with one change."""
        path, to = self._random.choice(sorted(files)), self._path()
        directory, other = path.rpartition("/")[0], self._random.choice([*self.places, "e"])
        match self._random.choice(["rename", "rename", "edit", "directory", "directory", "drop", "drop directory", "add", "beside"]):
            case "rename":
                changed = moved(files, {path: to})
                changed[to] = self._edited(changed[to]) if self._random.random() < 0.3 else changed[to]
            case "edit":
                changed = files | {path: self._edited(files[path])}
            case "directory":
                changed = moved(files, {f"{directory}/": f"{other}/".lstrip("/")}) if directory else files
            case "drop":
                changed = moved(files, {path: ""})
            case "drop directory":
                changed = {each: text for each, text in files.items() if not directory or not each.startswith(f"{directory}/")}
            case "add":
                changed = files | {to: self._text()}
            case _:
                changed = files | {f"{directory}/n{self._random.randrange(3)}".lstrip("/"): self._text()}
        return files if any(f"{each}/" in f"{more}/" and each != more for each in changed for more in changed) else changed

    def _path(self) -> str:
        return f"{self._random.choice(self.places)}/{self._random.choice(['x', 'y', 'z'])}".lstrip("/")

    def _text(self) -> str:
        return self._random.choice(["", text_of("same"), *(text_of(str(self._random.randrange(1000))) for _ in range(6))])

    def _edited(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        at = self._random.randrange(len(lines) + 1)
        return "".join([*lines[:at], f"edit: {self._random.randrange(1000)}\n", *lines[at + 1 :]])


def test_merges_of_many_renames_are_gits_own(histories: Histories) -> None:
    chance = Chance(20261129)
    merges = histories.merges([chance.history() for _ in range(250)])
    clean = [made.root.entry.oid == tree for made, tree in merges if not made.conflicts]
    assert all(clean), "what is merged here is merged by git, to the same tree"
    assert len(clean) > 100
    assert sum(not tree for _, tree in merges) > 20


BOTH = ("a/s/x", "b/y", "top")
ENDS = tuple({path: PARTED[path] + "z: 1\n" if last else "z: 1\n" + PARTED[path] for path in BOTH} for last in (True, False))


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(
    ("attributes", "conflicts"),
    [
        ({".gitattributes": "* merge=union\n"}, BOTH),
        ({".gitattributes": "# ours\n* -merge\n"}, BOTH),
        ({".gitattributes": "[attr]generated -merge\n*.x generated\n"}, BOTH),
        ({"a/.gitattributes": "x binary"}, ("a/s/x",)),
        ({"a/s/.gitattributes": "x binary\r\n", "b/.gitattributes": "* merge"}, ("a/s/x", "b/y")),
        ({"c/.gitattributes": "* binary\n"}, ()),
        ({".gitattributes": "*.png binary\n*.OP\t-merge\n* text=auto eol=lf\n  # merge as you like\n"}, ()),
        ({".gitattributes": "*.png binary\n*op -merge\n"}, BOTH),
    ],
)
def test_files_that_git_merges_in_another_way_by_attributes_are_conflicts(
    histories: Histories, attributes: Files, conflicts: tuple[str, ...], side: int
) -> None:
    sides = [PARTED | ENDS[at] | (attributes if at == side else {}) for at in (0, 1)]
    ((made, _),) = histories.merges([(PARTED, sides[0], sides[1])])
    assert sorted(made.conflicts) == sorted(conflicts)


def test_an_ending_of_attributes_is_compared_without_case(histories: Histories) -> None:
    parted = {"a.PNG": text_of("a"), "b.yaml": text_of("b"), ".gitattributes": "*.png binary\n"}
    edits = [{path: text + "z: 1\n" if last else "z: 1\n" + text for path, text in parted.items() if path[0] != "."} for last in (0, 1)]
    ((made, _),) = histories.merges([(parted, parted | edits[0], parted | edits[1])])
    assert made.conflicts == ("a.PNG",)


class Fetching(FetchedTree):
    """A tree that notes what is asked of it."""

    def __init__(self, root: str, objects: Objects) -> None:
        super().__init__(NO_COMMIT, root, objects, HostLimits())
        self.asked: list[int] = []

    def blobs(self, oids: Iterable[str], ahead: Iterable[str] = ()) -> Mapping[str, bytes]:
        found = super().blobs(oids, ahead)
        self.asked.append(sum(len(content) for content in found.values()))
        return found


def fetched(histories: Histories, count: int, size: int) -> tuple[MergedTree, list[Fetching]]:
    """Merge so many files of such a size, which both sides have changed."""
    parted = {f"{number:03}.yaml": f"{number}\nx\n" + "x" * size + "\nx\n" for number in range(count)}
    ours, theirs = {path: f"a\n{text}" for path, text in parted.items()}, {path: f"{text}z\n" for path, text in parted.items()}
    base, head, ancestor = (Fetching(histories.tree(files), histories.objects) for files in (ours, theirs, parted))
    return merge(base, head, ancestor), [base, head, ancestor]


def test_what_a_merge_fetches_is_fetched_in_few_requests(histories: Histories) -> None:
    made, sides = fetched(histories, 95, 10)
    assert not made.conflicts
    assert [len(side.asked) for side in sides] == [10, 10, 10]


def test_a_merge_fetches_no_more_than_it_may_and_leaves_the_rest_to_git(histories: Histories) -> None:
    size = ALL_BYTES // 150
    made, sides = fetched(histories, 90, size)
    assert made.conflicts == tuple(f"{number:03}.yaml" for number in range(40, 90)), "three versions of fifty files are too much"
    asked = sum(sum(side.asked) for side in sides)
    assert ALL_BYTES < asked <= ALL_BYTES + 11 * size, "a batch of one side more, which can't be known before"
