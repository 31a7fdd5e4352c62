"""What merging a pull request would make, compared with `git merge-tree`: the same tree, or a conflict where git has one."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import pytest

from handler.config.git_settings import Repository
from handler.model.errors import SourceRefused
from handler.model.tree import DIRECTORY, FILE, NO_COMMIT, TreeEntry
from handler.source.git_host import GitHost
from handler.source.host_limits import HostLimits
from handler.source.merged_tree import MergedTree, merge
from infra.githost import Host, Work
from infra.gitwork import git_environment

LINES = "".join(f"key-{number}: {number}\n" for number in range(12))


class Branches:
    """A repository with a commit from which main and a branch part."""

    def __init__(self, host: Host, name: str) -> None:
        self.work = Work.of(host, name)
        self.source = GitHost(Repository(host.url_of(name)))
        for directory in ("deploy/a", "deploy/b", "docs"):
            for file in ("one", "two"):
                self.work.write(f"{directory}/{file}.yaml", LINES)
        self.ancestor = self.work.commit("Parts here")

    def commit(self, branch: str, changes: dict[str, str | None]) -> str:
        self.work.git("checkout", "-q", "-B", branch, self.ancestor)
        for path, text in changes.items():
            if text is None:
                self.work.git("rm", "-q", "-r", path)
            else:
                self.work.write(path, text)
        sha = self.work.commit(f"On {branch}")
        self.work.git("push", "-q", "-f", "origin", branch)
        return sha

    def merged(self, base: str, head: str, path: str) -> MergedTree:
        trees = [self.source.fetch(sha, path) for sha in (base, head, self.ancestor)]
        return merge(*trees)

    def by_git(self, base: str, head: str) -> str:
        """Return the tree that git makes; empty: it has a conflict."""
        command = ["git", "-c", "merge.renames=false", "merge-tree", "--write-tree", base, head]
        environment = git_environment(self.work.directory)
        ended = subprocess.run(command, cwd=self.work.directory, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode in (0, 1), ended.stderr
        return ended.stdout.split()[0] if ended.returncode == 0 else ""


@pytest.fixture
def branches(host: Host, request: pytest.FixtureRequest) -> Branches:
    return Branches(host, f"merged-{abs(hash(request.node.name))}")


def edited(lines: str, at: int, text: str) -> str:
    found = lines.splitlines(keepends=True)
    return "".join([*found[:at], text, *found[at + 1 :]])


CASES: dict[str, tuple[Mapping[str, str | None], Mapping[str, str | None], bool]] = {
    "apart": ({"deploy/a/one.yaml": "x: 1\n"}, {"deploy/b/one.yaml": "y: 1\n"}, True),
    "one file": ({"deploy/a/one.yaml": edited(LINES, 0, "x: 1\n")}, {"deploy/a/one.yaml": edited(LINES, 9, "y: 1\n")}, True),
    "the same": ({"deploy/a/one.yaml": "x: 1\n"}, {"deploy/a/one.yaml": "x: 1\n"}, True),
    "added and dropped": ({"deploy/new/x.yaml": "x: 1\n", "docs": None}, {"deploy/a/two.yaml": None, "deploy/c.yaml": "z: 1\n"}, True),
    "a directory less and one changed elsewhere": ({"deploy/a": None}, {"deploy/b/two.yaml": "y: 2\n"}, True),
    "one line twice": ({"deploy/a/one.yaml": edited(LINES, 3, "x: 1\n")}, {"deploy/a/one.yaml": edited(LINES, 3, "y: 1\n")}, False),
    "changed and dropped": ({"deploy/a/one.yaml": "x: 1\n"}, {"deploy/a": None}, False),
    "added twice": ({"deploy/c.yaml": "x: 1\n"}, {"deploy/c.yaml": "y: 1\n"}, False),
    "a file and a directory": ({"deploy/c": "x: 1\n"}, {"deploy/c/d.yaml": "y: 1\n"}, False),
}


@pytest.mark.parametrize("path", ["", "deploy"])
@pytest.mark.parametrize("case", CASES)
def test_a_merge_is_gits_own_or_a_conflict(branches: Branches, case: str, path: str) -> None:
    ours, theirs, merges = CASES[case]
    base, head = branches.commit("main", dict(ours)), branches.commit("change", dict(theirs))
    made, tree = branches.merged(base, head, path), branches.by_git(base, head)
    assert (not made.conflicts, bool(tree)) == (merges, merges)
    if merges:
        found = made.lookup("")
        assert found is not None
        assert found.oid == tree
        listed = branches.work.git("ls-tree", "-r", tree).splitlines()
        entries = [f"{entry.mode:o} blob {entry.oid}\t{entry.path}" for entry in made.walk("")]
        assert entries == listed
        texts = made.blobs([entry.oid for entry in made.walk("deploy")])
        for entry in made.walk("deploy"):
            assert texts[entry.oid] == branches.work.git("cat-file", "blob", entry.oid).encode().rstrip(b"\n") + b"\n"


def test_merges_of_many_edits_are_gits_own(branches: Branches) -> None:
    chance = random.Random(20261128)
    merged = 0
    for _ in range(25):
        sides: list[dict[str, str | None]] = []
        for side in ("ours", "theirs"):
            changes: dict[str, str | None] = {}
            for _ in range(chance.randrange(1, 5)):
                path = f"{chance.choice(['deploy/a', 'deploy/b', 'docs', 'deploy/new'])}/{chance.choice(['one', 'two'])}.yaml"
                changes[path] = edited(LINES, chance.randrange(12), f"{side}: {chance.randrange(3)}\n")
            sides.append(changes)
        base, head = branches.commit("main", sides[0]), branches.commit("change", sides[1])
        made, tree = branches.merged(base, head, "deploy"), branches.by_git(base, head)
        if not made.conflicts:
            merged += 1
            found = made.lookup("")
            assert found is not None
            assert found.oid == tree
    assert merged > 5


class Bomb:
    """A side whose every directory holds fifty more, which all are one tree; sides differ at the bottom alone, which no merge reaches."""

    width = 50

    def __init__(self, name: str) -> None:
        self.commit = NO_COMMIT
        self.oid = name * 40

    def children(self, path: str) -> dict[str, TreeEntry]:
        return {f"d{number}": TreeEntry(f"{path}/d{number}".lstrip("/"), DIRECTORY, self.oid) for number in range(self.width)}

    def lookup(self, path: str) -> TreeEntry | None:
        return TreeEntry(path, DIRECTORY, self.oid)

    def walk(self, path: str) -> Iterator[TreeEntry]:
        yield TreeEntry(path, DIRECTORY, self.oid)

    def blobs(self, oids: Iterable[str], ahead: Iterable[str] = ()) -> Mapping[str, bytes]:
        return {}


class Shaft(Bomb):
    """The same with one directory in each."""

    width = 1


@pytest.mark.parametrize(("made", "seen"), [(Bomb, "files and directories"), (Shaft, "deeper than 64 directories")])
def test_trees_that_never_end_are_refused(made: type[Bomb], seen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.source.merged_tree.LIMITS", replace(HostLimits(), entries=2000))
    with pytest.raises(SourceRefused, match=seen):
        merge(made("a"), made("b"), made("c"))


class Files(Bomb):
    """A side with many files, each of these lines."""

    def __init__(self, name: str, lines: Iterable[int | str]) -> None:
        super().__init__(name)
        self.text = "".join(f"{line}\n" for line in lines).encode()

    def children(self, path: str) -> dict[str, TreeEntry]:
        names = [f"{number:02}.yaml" for number in range(40)]
        return {name: TreeEntry(f"{path}/{name}".lstrip("/"), FILE, self.oid) for name in names}

    def blobs(self, oids: Iterable[str], ahead: Iterable[str] = ()) -> Mapping[str, bytes]:
        return dict.fromkeys(oids, self.text)


def test_files_that_are_slow_to_merge_take_no_more_together_than_a_merge_may() -> None:
    lines = [*range(250), *range(5_000, 5_200), *range(450, 500)]
    ours, quick, slow = Files("a", ["x", *range(500)]), Files("b", [*range(500), "y"]), Files("b", lines)
    ancestor = Files("c", range(500))
    assert merge(ours, quick, ancestor).conflicts == ()
    found = merge(ours, slow, ancestor).conflicts
    assert 0 < len(found) < 40, "the first are merged, what exceeds the budget of all isn't"
    assert found == tuple(f"{number:02}.yaml" for number in range(40))[-len(found) :]
