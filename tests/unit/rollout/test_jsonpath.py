"""Kubernetes' dialect of JSONPath: the cases of kubectl's documentation, and paths that can't be read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handler.rollout.jsonpath import LONGEST, MOST, TooMany, Unreadable, compiled
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

# https://kubernetes.io/docs/reference/kubectl/jsonpath/, its example shortened
NODES: dict[str, Any] = {
    "kind": "List",
    "items": [
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.1", "labels": {"kubernetes.io/hostname": "127.0.0.1"}},
            "status": {"capacity": {"cpu": "4"}, "addresses": [{"type": "LegacyHostIP", "address": "127.0.0.1"}]},
        },
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.2"},
            "status": {
                "capacity": {"cpu": "8"},
                "addresses": [{"type": "LegacyHostIP", "address": "127.0.0.2"}, {"type": "another", "address": "127.0.0.3"}],
            },
        },
    ],
    "users": [{"name": "myself", "user": {}}, {"name": "e2e", "user": {"username": "admin", "password": "secret"}}],
}
ALL = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]


@each_row(
    ("path", "found"),
    [
        ("{@}", [NODES]),
        ("{.}", [NODES]),
        ("{$}", [NODES]),
        ("{.kind}", ["List"]),
        ("{['kind']}", ["List"]),
        ("{.items[*].metadata.name}", ALL[:2]),
        ("{.items[*]['metadata']['name']}", ALL[:2]),
        ("{.users[0].name}", ["myself"]),
        ("{.users[-1].name}", ["e2e"]),
        ("{.users[0:2].name}", ["myself", "e2e"]),
        ("{.users[0,1].name}", ["myself", "e2e"]),
        ("{.users[::2].name}", ["myself"]),
        ("{.users[1:].name}", ["e2e"]),
        ("{.items[0].metadata['name', 'labels']}", ["127.0.0.1", {"kubernetes.io/hostname": "127.0.0.1"}]),
        ("{..address}", ALL),
        ("{..addresses[0].address}", ALL[:2]),
        ('{.users[?(@.name=="e2e")].user.password}', ["secret"]),
        ("{.users[?(@.name != 'e2e')].name}", ["myself"]),
        ('{.items[?(@.metadata.name=="127.0.0.1")].status.capacity.cpu}', ["4"]),
        ("{.items[*].status.addresses[?(@.type=='another')].address}", ["127.0.0.3"]),
        ("{.items[?(@.metadata.labels)].metadata.name}", ["127.0.0.1"]),
        ("{.items[0].metadata.labels.kubernetes\\.io/hostname}", ["127.0.0.1"]),
        ("{.items[0].metadata.labels['kubernetes.io/hostname']}", ["127.0.0.1"]),
        ("{ .kind }", ["List"]),
        (".kind", ["List"]),
        ("kind", ["List"]),
        ("$.kind", ["List"]),
        ("{.users.*.name}", ["myself", "e2e"]),
        ("{.missing}", []),
        ("{.kind.name}", []),
        ("{.users[7]}", []),
        ("{.kind[0]}", []),
        ("{.items['name']}", []),
    ],
)
def test_the_documented_paths_find_what_kubectl_prints(path: str, found: list[Any]) -> None:
    assert compiled(path).find(NODES) == found


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("{[?(@.n > 1)].n}", [2, 3]),
        ("{[?(@.n >= 2)].n}", [2, 3]),
        ("{[?(@.n < 1.5)].n}", [1]),
        ("{[?(@.n <= -1)].n}", []),
        ("{[?(@.on == true)].n}", [1]),
        ("{[?(@.n == true)].n}", []),
        ("{[?(@.n == '1')].n}", []),
        ("{[?(@.n == @.m)].n}", [2]),
        ("{[?(@.missing == @.missing)].n}", []),
        ("{[?(@.n > 'a')].n}", []),
    ],
)
def test_a_filter_compares_values_of_one_kind(path: str, found: list[Any]) -> None:
    assert compiled(path).find([{"n": 1, "on": True}, {"n": 2, "m": 2}, {"n": 3, "m": "3"}]) == found


@each_row(
    ("path", "character", "said"),
    [
        ("", 1, "expected a path such as"),
        ("{.status", 9, "expected `}`; it ends here"),
        ("{.a}{.b}", 5, "one path, no text and no second one"),
        ("{range .items[*]}{.a}{end}", 2, "templates (`range`, `end`) have no one value"),
        ("replicas: {.a}", 11, "one path, no text"),
        ("{.a.}", 5, "expected a name; found '}'"),
        ("{..}", 4, "expected a name"),
        ("{.a[}", 5, "expected an index, a name in quotes, `*` or a filter"),
        ("{.a['b}", 5, "expected a name in quotes"),
        ("{.a[?(@.b=1)]}", 10, "expected `)`; found '='"),
        ("{.a[?(.b==1)]}", 7, "expected `@`, a text in quotes"),
        ("{.a[?(@.b[?(@.c)])]}", 13, "no filter inside a filter"),
        ("{.a[?(@..b)]}", 9, "no `..` inside a filter"),
        ("{..a..b}", 6, "`..` only once"),
        ("{.a[0:2:0]}", 10, "a step of at least 1"),
        ("{.a[\u0663]}", 5, "expected an index"),
        ("{.a[1\u0663]}", 6, "expected `]`"),
        ("{.a[?(@.b==1\u0663)]}", 13, "expected `)`"),
        ("{.a b}", 5, "expected `}`; found 'b'"),
        ("a" * (LONGEST + 1), LONGEST + 1, f"at most {LONGEST} characters"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_character(path: str, character: int, said: str) -> None:
    with pytest.raises(Unreadable) as error:
        compiled(path)
    assert error.value.place == character
    assert said in str(error.value)


def test_a_path_that_multiplies_is_given_up() -> None:
    """Thirty times twice the same would be a billion values."""
    deep: Any = "end"
    for _ in range(30):
        deep = {"a": deep}
    with pytest.raises(TooMany):
        compiled("{" + "['a','a']" * 30 + "}").find(deep)
    assert compiled("{.a[*]}").find({"a": [0] * MOST}) == [0] * MOST


def test_a_filter_that_multiplies_for_each_of_many_is_given_up() -> None:
    """Ten thousand looks for each of many items would take minutes, and a run that asks meanwhile whether it may go on waits as long."""
    tens = "[" + ",".join("0" * 10) + "]"
    compared = compiled("{.items[?(@" + tens * 4 + "==1)]}")
    assert compared.find({"items": [[[[[1]]]]] * 10}) == []
    with pytest.raises(TooMany):
        compared.find({"items": [[[[[1]]]]] * 100})


@pytest.mark.parametrize("each", ["9", "'a'", "3:9"])
def test_alternatives_that_find_nothing_are_looks_too(each: str) -> None:
    """Hundreds of them, asked of each item of a long list, would take minutes."""
    asked = compiled("{.items[?(@[" + ",".join([each] * 200) + "]==1)]}")
    assert asked.find({"items": [[0]] * 100}) == []
    with pytest.raises(TooMany):
        asked.find({"items": [[0]] * 2_000})


_PIECES = st.sampled_from(
    ["{", "}", ".", "..", "[", "]", "*", "?(", ")", "@", "==", "<", "'a'", '"', "\\", "a", "0", "-1", ":", ",", " ", "$", "é"]
)
_DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("a0"), inner),
)


@given(path=st.lists(_PIECES, max_size=14).map("".join), document=_DOCUMENTS)
@example(path="{.a[?(@==@)]}", document={"a": [1]})
def test_whatever_stands_there_is_read_or_refused(path: str, document: Any) -> None:
    try:
        found = compiled(path).find(document)
    except (Unreadable, TooMany):
        return
    assert isinstance(found, list)
