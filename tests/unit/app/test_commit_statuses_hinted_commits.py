"""A commit that only a webhook has named: overtaken only if the host has it on the way to the head, and the target reads it otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from handler.app.commit_statuses.posting import is_overtaken
from handler.model.commit_status import StatusState
from handler.model.errors import AnnealError, GitUnavailable, RefNotFound, SourceRefused
from handler.model.tree import ReadSet
from handler.state.record import Attempt, HeldPlan, State
from tests.fakes.source_tree import FakeTree
from tests.unit.app.shown_commits import A, B, C, owed, shop
from tests.unit.state.samples import NOON, TOKEN, blank

PATHS = ("deploy/a.yaml", "//chart")
BEFORE = FakeTree({"deploy/a.yaml": "one", "README": "x"})
DIGEST = "1" * 64


def read(tree: FakeTree, chart: str = "1.0") -> str:
    return ReadSet(tuple((path, "") for path in PATHS)).on(tree, lambda _: chart).digest()


@dataclass
class Ways:
    """What is asked of hosts. `tree`: of the named commit; `chart`: which version is outside; `meets`: raised in place of an answer."""

    tree: FakeTree = BEFORE
    chart: str = "1.0"
    reached: bool = True
    meets: dict[str, AnnealError] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def ancestry(self, _target: Any) -> Any:
        return SimpleNamespace(reaches=self._reaches)

    def discovery(self, _target: Any) -> Any:
        return None

    def preparer(self, _target: Any, _discovery: Any) -> Any:
        return SimpleNamespace(tree=self._tree, outside=lambda _recorded, _commit: SimpleNamespace(ask=lambda _: self.chart))

    def _reaches(self, head: str, commit: str) -> bool:
        self.asked.append((head, commit))
        if error := self.meets.get("ancestry"):
            raise error
        return self.reached

    def _tree(self, commit: str) -> FakeTree:
        assert commit == B
        if error := self.meets.get("tree"):
            raise error
        return self.tree


def judged(ways: Ways, state: State | None = None) -> bool:
    hinted = owed(B, StatusState.SUPERSEDED, hinted=True, unless=read(BEFORE))
    return is_overtaken(ways, shop(), state or blank(commit=C, reads_paths=PATHS), hinted)  # type: ignore[arg-type]  # what it asks of them


@pytest.mark.parametrize(
    ("ways", "is_overtaken"),
    [
        (Ways(FakeTree({"deploy/a.yaml": "two"})), True),
        (Ways(FakeTree({"deploy/a.yaml": "one", "README": "y"})), False),
        (Ways(chart="2.0"), True),
        (Ways(FakeTree({"deploy/a.yaml": "two"}), reached=False), False),
    ],
    ids=["read", "not read", "read elsewhere than in git", "not on the way"],
)
def test_a_commit_on_the_way_to_the_head_that_the_target_reads_is_overtaken(ways: Ways, is_overtaken: bool) -> None:
    assert judged(ways) is is_overtaken
    assert ways.asked == [(C, B)]


@pytest.mark.parametrize("question", ["ancestry", "tree"])
@pytest.mark.parametrize("error", [RefNotFound, SourceRefused])
def test_a_commit_that_is_gone_or_refused_is_not(question: str, error: type[AnnealError]) -> None:
    assert not judged(Ways(FakeTree({}), meets={question: error.of(B, "no")}))


@pytest.mark.parametrize("question", ["ancestry", "tree"])
def test_a_host_that_does_not_answer_is_asked_again_later(question: str) -> None:
    with pytest.raises(GitUnavailable):
        judged(Ways(meets={question: GitUnavailable.of("host", "down")}))


def test_the_head_is_what_the_target_is_being_brought_to_then_what_is_held_then_what_it_has() -> None:
    held = HeldPlan("h1", (), (), A, DIGEST, DIGEST, NOON)
    attempt = Attempt("d" * 40, DIGEST, DIGEST, TOKEN, NOON)
    ways = Ways()
    for parts in ({"held": held, "attempt": attempt}, {"held": held}, {}):
        judged(ways, blank(commit=C, reads_paths=PATHS, **parts))
    assert [head for head, _ in ways.asked] == ["d" * 40, A, C]


def test_a_target_that_has_no_commit_yet_asks_no_host() -> None:
    ways = Ways()
    assert not judged(ways, blank(reads_paths=PATHS))
    assert ways.asked == []
