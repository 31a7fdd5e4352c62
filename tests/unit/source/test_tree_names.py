"""Names and trees: what is refused, and what must not be."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.model.errors import SourceRefused
from handler.source.git_objects import read_tree
from handler.source.tree_names import has_more, name_problem

pytestmark = pytest.mark.slow

OID = b"\x11" * 20


def tree(*entries: tuple[str, bytes]) -> bytes:
    return b"".join(mode.encode() + b" " + name + b"\0" + OID for mode, name in entries)


@pytest.mark.parametrize(
    "name",
    [
        "app.yaml",
        ".gitignore",
        ".github",
        ".gitmodules",
        "git",
        "a b",
        "ü.yaml",
        "日本",
        "x~1",
        "gitt~1",
        "...",
        "-x",
        "a" * 255,
        ".git2",
        "😀",
    ],
)
def test_ordinary_names_pass(name: str) -> None:
    assert name_problem(name.encode()) == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (b"", "empty"),
        (b".", "'.'"),
        (b"..", "'..'"),
        (b"a/b", "slash"),
        (b"/etc", "slash"),
        (b"a\\b", "backslash"),
        (b"a\nb", "control"),
        (b"a\x7fb", "control"),
        (b"a\0b", "control"),
        ("a\u2028b".encode(), "control"),
        (b"\xff", "UTF-8"),
        (b"\xed\xa0\x80", "UTF-8"),
        (b".git", ".git"),
        (b".GiT", ".git"),
        (b".git.", ".git"),
        (b".git ", ".git"),
        (b".git. .", ".git"),
        (b".git:stream", ".git"),
        (b".git::$INDEX_ALLOCATION", ".git"),
        (b"git~1", ".git"),
        (b"GIT~1", ".git"),
        (b"git~2 ", ".git"),
        (".g\u200cit".encode(), ".git"),
        ("\ufeff.git".encode(), ".git"),
        (".gi\u206at".encode(), ".git"),
        (unicodedata.normalize("NFD", "ü").encode(), "normal form C"),
        (b"a" * 256, "255 bytes"),
    ],
)
def test_names_that_mean_something_else_to_some_file_system_are_refused(name: bytes, said: str) -> None:
    assert said in name_problem(name)


@given(st.binary(max_size=300))
def test_a_name_that_passes_is_one_plain_component(name: bytes) -> None:
    if name_problem(name) == "":
        text = name.decode()
        assert text not in ("", ".", "..")
        assert not set(text) & set("/\\\0\n\r")
        assert text.casefold() != ".git"


def test_a_tree_lists_modes_and_ids_in_order() -> None:
    children = read_tree(tree(("100644", b"a.yaml"), ("100755", b"b"), ("120000", b"c"), ("40000", b"d"), ("160000", b"e")), "")
    assert list(children) == ["a.yaml", "b", "c", "d", "e"]
    assert children["d"] == (0o040000, OID.hex())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (tree(("104755", b"setuid")), "104755"),
        (tree(("100666", b"odd")), "100666"),
        (tree(("0", b"none")), "malformed"),
        (tree(("040000", b"padded")), "malformed"),
        (tree(("100644", b"..")), "invalid name"),
        (tree(("100644", b"b"), ("100644", b"a")), "not sorted"),
        (tree(("100644", b"a"), ("100644", b"a")), "duplicate"),
        (tree(("100644", b"File"), ("100644", b"file")), "File and file differ only in case"),
        (tree(("100644", b"STRASSE"), ("100644", "straße".encode())), "differ only in case"),
        (tree(("100644", b".GIT")), "deploy/.GIT: name stands for .git"),
        (tree(("100644", b"a"))[:-1], "malformed"),
        (b"100644 no end", "malformed"),
        (b"\x80\x81 x\0" + OID, "malformed"),
    ],
)
def test_a_bad_tree_is_refused_with_its_place(data: bytes, said: str) -> None:
    with pytest.raises(SourceRefused) as refused:
        read_tree(data, "deploy")
    assert said in str(refused.value)
    assert str(refused.value).startswith("deploy")
    assert str(refused.value).isprintable()


MODES = st.sampled_from([b"100644 ", b"40000 ", b"120000 ", b"160000 ", b"0 ", b"x ", b" ", b"9" * 21 + b" ", b""])
NAMES = st.sampled_from([b"a", b"b.yaml", b"..", b"", b"a/b", b"\xff", b".git"])
ENTRIES = st.tuples(MODES, NAMES, st.sampled_from([b"\0", b""]), st.binary(min_size=18, max_size=21)).map(b"".join)


@given(st.binary(max_size=200) | st.lists(ENTRIES, max_size=5).map(b"".join))
def test_any_tree_is_read_or_refused_and_its_names_are_counted_before(data: bytes) -> None:
    try:
        children = read_tree(data, "deploy")
    except SourceRefused:
        return
    assert all(name_problem(name.encode()) == "" for name in children)
    assert not has_more(data, len(children))
    assert not children or has_more(data, len(children) - 1)
