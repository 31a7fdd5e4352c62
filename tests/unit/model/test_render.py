"""What each render makes anew is no news."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.render import UnstableFields


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        ("/data/pass~1word", {"pass/word": "1"}, {"pass/word": "2"}),
        ("/data/list/1/b", {"list": [{"b": "x"}, {"b": "1"}]}, {"list": [{"b": "x"}, {"b": "2"}]}),
        ("/data/now", {"now": "1"}, {}),
        ("/data", {"a": "1"}, {"b": "1"}),
        ("", {"a": "1"}, {"b": "1"}),
    ],
)
def test_documents_that_differ_in_that_alone_are_the_same_without(path: str, one: dict[str, Any], other: dict[str, Any]) -> None:
    anew = UnstableFields((path,), "randAlphaNum")
    assert anew.without({"data": one}) == anew.without({"data": other})


def test_all_else_stays_and_the_document_is_not_changed() -> None:
    anew = UnstableFields(("/data/password", "/nowhere/at/all"), "randAlphaNum")
    document = {"data": {"password": "1", "a": "1"}}
    assert anew.without(document)["data"]["a"] == "1"
    assert anew.without({"data": {"a": "1"}}) != anew.without({"data": {"a": "2"}})
    assert document == {"data": {"password": "1", "a": "1"}}
