"""Parents as commit objects name them, the walk over them, and that an answer is asked for once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from handler.model.errors import GitUnavailable, RefNotFound, SourceRefused
from handler.source.ancestry import KnownAncestry, leads_to, parents
from handler.source.git_objects import BLOB, COMMIT
from tests.patience import PATIENCE
from tests.unit.waiting import joined

A, B, C, D = (digit * 40 for digit in "abcd")


def commit(*of: str, message: str = "Text") -> tuple[int, bytes]:
    lines = [f"tree {'0' * 40}", *(f"parent {each}" for each in of), "author x", "committer x", "", message]
    return COMMIT, "\n".join(lines).encode()


def test_only_the_head_of_a_commit_names_its_parents() -> None:
    assert [*parents(commit(A, B, message=f"parent {C}\nparent {D}")[1])] == [A, B]
    assert [*parents(commit()[1])] == []
    assert [*parents(b"")] == []


def test_every_way_is_walked_once_also_in_a_circle_that_no_host_could_make() -> None:
    objects = {A: commit(B, C), B: commit(A), C: commit(D)}
    assert (leads_to(objects, A, D), leads_to(objects, B, D), leads_to(objects, C, A)) == (True, True, False)


def test_what_is_no_commit_or_was_not_sent_leads_nowhere() -> None:
    assert not leads_to({}, A, B)
    assert not leads_to({A: (BLOB, commit(B)[1])}, A, B)


def test_an_answer_is_kept_and_an_error_is_not() -> None:
    asked: list[tuple[str, str]] = []

    def ask(head: str, of: str) -> bool:
        asked.append((head, of))
        if len(asked) == 1:
            raise GitUnavailable.of("host", "is down")
        return of == B

    known = KnownAncestry(ask)
    with pytest.raises(GitUnavailable):
        known.get(A, B)
    assert [known.get(A, B), known.get(A, B), known.get(A, C), known.get(A, C)] == [True, True, False, False]
    assert asked == [(A, B), (A, B), (A, C)]


@pytest.mark.parametrize("error", [RefNotFound, SourceRefused])
def test_what_the_host_has_not_or_may_not_send_is_asked_for_again_after_a_while(error: type[RefNotFound | SourceRefused]) -> None:
    asked, now = list[str](), [0.0]

    def ask(_: str, of: str) -> bool:
        asked.append(of)
        raise error.of(of, "isn't there")

    known = KnownAncestry(ask, lambda: now[0])
    for moment, of, count in ((0.0, B, 1), (30.0, B, 1), (30.0, C, 2), (30.1, B, 3), (60.0, B, 3)):
        now[0] = moment
        with pytest.raises(error, match="isn't there"):
            known.get(A, of)
        assert len(asked) == count, moment


def test_a_thousand_answers_are_kept_and_the_oldest_goes() -> None:
    asked: list[str] = []

    def ask(head: str, _: str) -> bool:
        asked.append(head)
        return False

    known = KnownAncestry(ask)
    for number in range(1001):
        known.get(f"{number:040x}", A)
    known.get(f"{1000:040x}", A)
    known.get(f"{0:040x}", A)
    assert len(asked) == 1002


def test_what_is_asked_at_once_is_one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, asked = joined(monkeypatch), list[str]()

    def ask(_: str, of: str) -> bool:
        asked.append(of)
        assert waiting.acquire(timeout=PATIENCE), "the other caller asks for itself"
        return True

    known = KnownAncestry(ask)
    with ThreadPoolExecutor(2) as threads:
        assert [*threads.map(known.get, (A, A), (B, B))] == [True, True]
    assert asked == [B]
