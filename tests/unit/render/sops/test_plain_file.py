"""Which texts of a decrypted file are hidden, and how sops' refusals are said without its own words."""

from __future__ import annotations

import base64

import pytest

from handler.model.errors import Problem
from handler.render.frames import decode_problem
from handler.render.sops.plain_file import decode_plain, plain


def mark(kind: str = "str") -> str:
    return f"ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:{kind}]"


def hidden(encrypted: str, output: bytes, form: str = "yaml") -> list[str]:
    frames = list(plain({"exit_code": 0, "place": "a", "form": form, "encrypted": encrypted}, [output, b""]))
    assert decode_plain(frames[0]) == (b"F", output)
    return [decode_plain(frame)[1].decode() for frame in frames[1:]]


def test_what_was_encrypted_is_hidden_and_nothing_else() -> None:
    text = f"open: shown\nlist:\n- {mark()}\n- plain\nn: {mark('int')}\nlong: {mark('int')}\nyes: {mark('bool')}\nsops: {{}}\n"
    assert hidden(text, b"open: shown\nlist: [secret, plain]\nn: 5\nlong: 1234567\nyes: true\n") == ["secret", "1234567"]


def test_what_names_an_object_stays_readable() -> None:
    text = f"apiVersion: {mark()}\nkind: {mark()}\nmetadata: {{name: {mark()}, labels: {{a: {mark()}}}}}\n"
    assert hidden(text, b"apiVersion: v1\nkind: Secret\nmetadata: {name: login, labels: {a: label}}\n") == ["label"]


def test_documents_that_dont_match_are_hidden_whole() -> None:
    assert hidden(f"a: {mark()}\n", b"a: one\n---\nb: two\n") == ["one", "two"]
    assert hidden(f"a: {mark()}\n", b"a: [one\n  two: \n") == ["a: [one", "two:"]


@pytest.mark.parametrize(
    ("form", "encrypted", "output", "found"),
    [
        ("dotenv", f"A={mark()}\nB=open\n", b"A=one\nB=open\n", ["one"]),
        ("ini", f"[p]\na = {mark()}\n;{mark('comment')}\n", b"[p]\na = one\n; a note\n", ["one", "a note"]),
        ("binary", "", b"all of it", ["all of it"]),
        ("binary", "", b"\xff\xfe", [base64.b64encode(b"\xff\xfe").decode()]),
        ("json", f'{{"a": "{mark()}"}}', b'{"a": "one"}', ["one"]),
    ],
)
def test_each_form_has_its_values(form: str, encrypted: str, output: bytes, found: list[str]) -> None:
    assert hidden(encrypted, output, form) == found


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("MAC mismatch. File has canary, computed canary", "its MAC is another"),
        ("Error decrypting tree: Error walking tree: Could not decrypt value: canary", "its data key doesn't open"),
        ("Error unmarshalling input: canary", "sops refuses its form"),
    ],
)
def test_a_refusal_quotes_nothing(said: str, message: str) -> None:
    options = {"exit_code": 1, "place": "deploy/a.yaml", "form": "yaml", "encrypted": ""}
    (frame,) = plain(options, [b"canary", said.encode()])
    problem = decode_problem(frame)
    assert isinstance(problem, Problem)
    assert (problem.subject, message in problem.message, "canary" in str(problem)) == ("deploy/a.yaml", True, False)
    with pytest.raises(ValueError, match="neither a file"):
        decode_plain(frame)


@pytest.mark.parametrize(
    ("form", "kind", "lines"),
    [
        ("dotenv", "str", " " * 20_000),
        ("dotenv", "str", "B=x" + " " * 500_000 + "y"),
        ("ini", "comment", "# x" + " " * 500_000 + "y"),
    ],
    ids=["blank", "value", "comment"],
)
def test_long_lines_of_blanks_take_linear_time(form: str, kind: str, lines: str) -> None:
    """Tried anew from each blank, they would take minutes and more."""
    assert hidden(f"A={mark(kind)}\n", f"A=secret\n{lines}\n".encode(), form)
