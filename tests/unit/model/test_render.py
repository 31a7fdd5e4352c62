"""A digest of what is rendered says whether git has changed, not what each render makes anew."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.manifest import Manifest, digest_of
from handler.model.render import UnstableFields, settled


def rendered(**data: Any) -> Manifest:
    return Manifest.of({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "data": data})


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        ("/data/pass~1word", {"pass/word": "1"}, {"pass/word": "2"}),
        ("/data/list/1/b", {"list": [{"b": "x"}, {"b": "1"}]}, {"list": [{"b": "x"}, {"b": "2"}]}),
        ("/data", {"a": "1"}, {"b": "1"}),
        ("", {"a": "1"}, {"b": "1"}),
    ],
)
def test_what_is_made_anew_is_no_part_of_a_digest(path: str, one: dict[str, Any], other: dict[str, Any]) -> None:
    anew = UnstableFields((path,), "randAlphaNum")
    assert digest_of([settled(rendered(**one), anew)]) == digest_of([settled(rendered(**other), anew)])


def test_all_else_is() -> None:
    anew = UnstableFields(("/data/password",), "randAlphaNum")
    texts = [{"password": "1", "a": "1"}, {"password": "1", "a": "2"}, {"password": "2", "a": "2"}]
    assert len({digest_of([settled(rendered(**each), anew)]) for each in texts}) == 2
    assert settled(rendered(a="1"), None) == rendered(a="1")
