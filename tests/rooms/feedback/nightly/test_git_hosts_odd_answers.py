"""What a host may answer that isn't what it promises: each row ends with an error of ours that says what was seen, and no other.

Answers of the made-up hosts are kept, and each place that a row reads is bent in each of some ways.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from handler.feedback.git_hosts import GIT_HOSTS, GitHostApi, host_row
from handler.model.commit_status import CommitStatus, StatusState
from handler.model.errors import AccessDenied, AnnealError, GitUnavailable
from handler.model.host_answer import HostBusy, HostRefusal, Query
from handler.model.pull_request import HostComment, PullRequest
from tests.rooms.feedback.tried_hosts import Proposal, Right, TriedHost, way
from tests.rooms.source.canned_host import Canned, CannedHost

SHA, OTHER = "4f1b0c7e2d9a5836be0174c2f6a98d3e5b7c1a20", "9c3d5e1f7a2b4860d1e2f3a4b5c6d7e8f9a0b1c2"
STATUS = CommitStatus(SHA, "anneal/blue/shop", StatusState.SUCCESS, "3 created", "https://anneal.example.com/x")
URLS = {
    "github": "acme/shop",
    "gitlab": "acme/shop",
    "gitea": "acme/shop",
    "bitbucket": "acme/shop",
    "bitbucketserver": "scm/ACME/shop",
    "azuredevops": "acme/platform/_git/shop",
}
ASKS: Mapping[str, Callable[[GitHostApi, str], Any]] = {
    "post": lambda api, _: api.post(STATUS),
    "shows": lambda api, _: api.shows(STATUS),
    "pull_request": lambda api, _: api.pull_request(7),
    "merge_base": lambda api, _: api.merge_base(SHA, OTHER),
    "comment": lambda api, comment: api.comment(7, comment),
    "add_comment": lambda api, _: api.add_comment(7, "A plan"),
    "edit_comment": lambda api, comment: api.edit_comment(7, comment, "A plan"),
    "may_write": lambda api, _: api.may_write("7"),
}
ASKING = [(name, ask) for name in GIT_HOSTS for ask in ASKS if (name, ask) != ("azuredevops", "may_write")]  # that one asks nothing


def comment_of(name: str) -> str:
    return "7/1" if name == "azuredevops" else "7"


def outcome(ask: Callable[[], Any]) -> Any:
    """Return what is answered, or the error of ours."""
    try:
        return ask()
    except AnnealError as error:
        return error


def asked(name: str, ask: str, *answers: Canned) -> Any:
    """Return what a row makes of these answers, the last of which goes on."""
    with CannedHost(*answers) as host:
        origin = host.url.removesuffix("/api")
        return ASKS[ask](way(name, f"{origin}/{URLS[name]}.git", "a-token-of-a-test", host.url), comment_of(name))


@pytest.mark.parametrize(("name", "ask"), ASKING)
def test_each_question_ends_with_the_error_that_says_what_to_do(name: str, ask: str) -> None:
    for answer, error in (
        (Canned(502, b"<html>Bad gateway</html>"), GitUnavailable),
        (Canned(200, b"<html>Welcome</html>"), GitUnavailable),
        (Canned(200, b"[" * 5000), GitUnavailable),
        (Canned(200, b"x" * 100, declared=5_000_000), GitUnavailable),
        (Canned(401), AccessDenied),
        (Canned(403), AccessDenied),
        (Canned(203, b"<html>Sign in</html>"), AccessDenied),
        (Canned(302, b"", {"Location": "https://other.example.com/sign-in"}), AccessDenied),
        (Canned(429, headers={"Retry-After": "30"}), HostBusy),
        (Canned(400), HostRefusal),
    ):
        with pytest.raises(error):
            asked(name, ask, answer)


SHAPES: list[Any] = [
    None,
    {},
    [],
    7,
    "text",
    True,
    1.5,
    [None],
    [7],
    [[]],
    [{}],
    {"value": 7},
    {"values": {}},
    {"head": 7},
    {"id": [], "sha": {}},
]
TAKEN = (type(None), bool, str, PullRequest, HostComment)


@pytest.mark.parametrize(("name", "ask"), ASKING)
def test_an_answer_of_another_shape_is_an_outage_that_names_what_is_missing(name: str, ask: str) -> None:
    for shape in SHAPES:
        found = outcome(lambda: asked(name, ask, Canned.of(shape)))  # noqa: B023 - it is called at once
        if isinstance(found, AnnealError):
            assert isinstance(found, GitUnavailable), (shape, found)
            assert "its answer has " in str(found), (shape, found)
        elif (name, ask, shape) != ("gitea", "merge_base", []):  # there it says that the head has no commit of its own
            assert ask in ("post", "shows", "merge_base", "comment", "edit_comment", "may_write"), (shape, found)
            assert found in (None, False, ""), (shape, found)


class Noticed(dict[str, Any]):
    """An object whose readers are noticed. `read`: the places that were looked at."""

    def __init__(self, document: Mapping[str, Any], place: tuple[Any, ...], read: set[tuple[Any, ...]]) -> None:
        super().__init__({key: noticed(value, (*place, key), read) for key, value in document.items()})
        self.place, self.read = place, read

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add((*self.place, key))
        return super().get(key, default)


def noticed(value: Any, place: tuple[Any, ...], read: set[tuple[Any, ...]]) -> Any:
    """Return a document whose objects notice their readers."""
    if isinstance(value, dict):
        return Noticed(value, place, read)
    if isinstance(value, list):
        return [noticed(each, (*place, number), read) for number, each in enumerate(value)]
    return value


class Kept:
    """An API whose answers are kept, with what was read of each."""

    def __init__(self, api: Any) -> None:
        self.api, self.subject, self.url = api, api.subject, api.url
        self.answers: list[Any] = []
        self.read: list[set[tuple[Any, ...]]] = []

    def get(self, path: str, query: Query | None = None, needs: str = "") -> Any:
        return self.send("GET", path, None, query, needs)

    def send(self, method: str, path: str, body: Any = None, query: Query | None = None, needs: str = "") -> Any:
        answer = self.api.send(method, path, body, query, needs)
        self.answers.append(answer)
        self.read.append(set())
        return noticed(answer, (), self.read[-1])


class Bent:
    """An API that gives the kept answers again, one of them bent."""

    subject, url = "API", "https://git.example.com/api"

    def __init__(self, answers: list[Any]) -> None:
        self.answers = iter(copy.deepcopy(answers))

    def get(self, path: str, query: Query | None = None, needs: str = "") -> Any:
        return self.send("GET", path)

    def send(self, method: str, path: str, body: Any = None, query: Query | None = None, needs: str = "") -> Any:
        try:
            return next(self.answers)
        except StopIteration:
            raise GitUnavailable.of("API", "its answer has no more") from None


GONE = object()
BENDS: list[Any] = [GONE, None, 7, -1, 10**30, "text", "", "\ud83d", True, [], [7], {}, {"id": None}, 1.5]


def bent(answers: list[Any], number: int, place: tuple[Any, ...], value: Any) -> list[Any]:
    """Return the answers with another value at a place of one."""
    made = copy.deepcopy(answers)
    at = made[number]
    for key in place[:-1]:
        at = at[key]
    if value is GONE:
        at.pop(place[-1], None)
    else:
        at[place[-1]] = value
    return made


def kept(tried: TriedHost, proposal: Proposal, comment: str, ask: str) -> tuple[Kept, Callable[[GitHostApi], Any]]:
    """Ask a host, and return what it answered and how it is asked again."""
    number, person = proposal.number, tried.person(Right.WRITER)
    asks: Mapping[str, Callable[[GitHostApi], Any]] = {
        "pull_request": lambda api: api.pull_request(number),
        "merge_base": lambda api: api.merge_base(proposal.base, proposal.head),
        "comment": lambda api: api.comment(number, comment),
        "add_comment": lambda api: api.add_comment(number, "A plan"),
        "edit_comment": lambda api: api.edit_comment(number, comment, "Another plan"),
        "may_write": lambda api: api.may_write(person),
        "shows": lambda api: api.shows(CommitStatus(proposal.head, "anneal/blue/shop", StatusState.SUCCESS, "3 created")),
    }
    api = tried.api()
    api.post(CommitStatus(proposal.head, "anneal/blue/shop", StatusState.SUCCESS, "3 created"))
    made: Any = api
    keeping = Kept(made._ask._api)
    made._ask._api = keeping
    asks[ask](api)
    return keeping, asks[ask]


def bends(keeping: Kept) -> Iterator[tuple[int, tuple[Any, ...], Any]]:
    """Yield what can be bent: each place that was read, in each way."""
    for number, read in enumerate(keeping.read):
        for place in sorted(read, key=str):
            yield from ((number, place, value) for value in BENDS)


@pytest.mark.parametrize("ask", ["shows", "pull_request", "merge_base", "comment", "add_comment", "edit_comment", "may_write"])
def test_each_place_that_is_read_may_be_anything(tried: TriedHost, ask: str) -> None:
    proposal = tried.propose()
    comment = tried.api().add_comment(proposal.number, "A plan").id
    keeping, again = kept(tried, proposal, comment, ask)
    row, tries = host_row(tried.name), 0
    for answer, place, value in bends(keeping):
        found = outcome(lambda: again(row(Bent(bent(keeping.answers, answer, place, value)), tried.url)))  # noqa: B023 - it is called at once
        assert isinstance(found, (*TAKEN, GitUnavailable)), (place, value, found)
        if isinstance(found, GitUnavailable):
            assert "its answer has " in str(found), (place, value, found)
        tries += 1
    assert tries or (tried.name, ask) == ("azuredevops", "may_write")
