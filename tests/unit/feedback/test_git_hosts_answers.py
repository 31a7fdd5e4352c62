"""How an answer of a git host is read: what is looked for is there, or the error names its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from handler.feedback.git_hosts.answers import Answered, Asking, is_number
from handler.feedback.git_hosts.gitlab import inert
from handler.model.errors import GitUnavailable
from handler.model.host_answer import HostRefusal, Query

SHA = "4f1b0c7e2d9a5836be0174c2f6a98d3e5b7c1a20"
FOUND = Answered(
    {
        "head": {"sha": SHA, "short": SHA[:12], "repo": None},
        "number": 7,
        "draft": True,
        "rows": [{"id": 1}, {"id": "b"}],
        "half": "a\ud83d",
    },
    "API https://git.example.com",
)


def test_what_is_there_is_read() -> None:
    assert (FOUND.commit("head", "sha"), FOUND.number("number"), FOUND.key("number"), FOUND.flag("draft")) == (SHA, 7, "7", True)
    assert [each.key("id") for each in FOUND.rows("rows")] == ["1", "b"]
    assert Answered([], "API").rows() == []


def test_what_needs_not_be_there_is_empty() -> None:
    assert (FOUND.words("head", "repo"), FOUND.words("gone", "by"), FOUND.flag("gone")) == ("", "", False)
    assert FOUND.part("head", "repo", "full_name").value is None


def test_a_half_of_a_character_is_no_text() -> None:
    assert FOUND.text("half") == "a?"


@pytest.mark.parametrize(
    ("look", "words"),
    [
        (lambda: FOUND.text("head", "ref"), "has no `head.ref`"),
        (lambda: FOUND.text("head", "repo"), "has no `head.repo`"),
        (lambda: FOUND.text("head", "repo", "full_name"), "has no `head.repo.full_name`"),
        (lambda: FOUND.text("number"), "has as `number` something else than a text"),
        (lambda: FOUND.text("number", "sha"), "has as `number` something else than an object"),
        (lambda: FOUND.number("draft"), "has as `draft` something else than a number"),
        (lambda: FOUND.key("draft"), "has as `draft` something else than a number"),
        (lambda: FOUND.flag("number"), "has as `number` something else than true or false"),
        (lambda: FOUND.commit("head", "short"), "has as `head.short` something else than the whole id of a commit"),
        (lambda: FOUND.rows("head"), "has as `head` something else than a list"),
        (lambda: FOUND.rows("gone"), "has no `gone`"),
        (lambda: FOUND.rows("rows")[1].number("id"), "has as `rows[1].id` something else than a number"),
        (lambda: Answered(None, "API https://git.example.com").rows(), "has no content"),
        (lambda: Answered([], "API https://git.example.com").text("id"), "has as content something else than an object"),
    ],
)
def test_what_is_missing_is_named(look: Callable[[], Any], words: str) -> None:
    with pytest.raises(GitUnavailable) as missing:
        look()
    assert str(missing.value) == f"API https://git.example.com: its answer {words}"


@pytest.mark.parametrize(
    ("text", "found"), [("7", True), ("0", True), ("", False), ("7/8", False), ("../7", False), ("²", False), ("9" * 19, False)]
)
def test_a_number_is_fit_for_a_path(text: str, found: bool) -> None:
    assert is_number(text) is found


class Refusing:
    """An API that answers each request with a status; 204: with nothing."""

    subject, url = "API", "https://git.example.com"

    def __init__(self, status: int) -> None:
        self.status = status

    def get(self, path: str, query: Query | None = None, needs: str = "") -> Any:
        return self.send("GET", path)

    def send(self, method: str, path: str, body: Any = None, query: Query | None = None, needs: str = "") -> Any:
        if self.status >= 400:
            raise HostRefusal.answered("API", f"answered {self.status}", self.status, "")
        return None


@pytest.mark.parametrize("status", [404, 410, 204])
def test_what_is_gone_is_none(status: int) -> None:
    asking = Asking(Refusing(status))
    assert (asking.find("comments/7"), asking.change("PUT", "comments/7", {})) == (None, None)


def test_another_refusal_is_one() -> None:
    with pytest.raises(HostRefusal):
        Asking(Refusing(422)).find("comments/7")


# docs.gitlab.com/user/project/quick_actions; lib/gitlab/quick_actions/extractor.rb takes carriage returns out, then looks for `^/`.
@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("/merge", "\u200b/merge"),
        ("A plan\n/merge\n/close\nand / more", "A plan\n\u200b/merge\n\u200b/close\nand / more"),
        ("A plan\r\n/merge\r\n", "A plan\n\u200b/merge\n"),
        ("A plan\n\r/merge", "A plan\n\u200b/merge"),
        ("````\n```\n/merge\n````", "````\n```\n\u200b/merge\n````"),
        ("+/merge\n //merge", "+/merge\n //merge"),
        ("", ""),
    ],
)
def test_no_line_of_a_note_is_a_quick_action(text: str, sent: str) -> None:
    assert inert(text) == sent
    assert not any(line.startswith("/") for line in inert(text).replace("\r", "").split("\n"))
