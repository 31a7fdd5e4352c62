"""Which files are encrypted, in which form, and where they are cut."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from handler.model.errors import Problem
from handler.render.sops.encrypted_file import EncryptedFile, may_be_encrypted, see

MAC = "ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]"
FIELDS = {"mac": MAC, "version": "3.9.0", "lastmodified": "2026-01-01T00:00:00Z", "age": [{"recipient": "age1a", "enc": "w"}]}
BLOCK = (
    f"sops:\n    mac: {MAC}\n    version: 3.9.0\n    lastmodified: '2026-01-01T00:00:00Z'\n"
    "    age:\n        - recipient: age1a\n          enc: |\n            w\n"
)
JSON = json.dumps({"a": MAC, "sops": FIELDS})
FLAT = {"mac": MAC, "version": "3.9.0", "lastmodified": "x", "age__list_0__map_recipient": "age1a", "age__list_0__map_enc": "w"}
DOTENV = f"A={MAC}\n" + "".join(f"sops_{name}={value}\n" for name, value in FLAT.items())
INI = f"[p]\na = {MAC}\n\n[sops]\n" + "".join(f"{name} = {value}\n" for name, value in FLAT.items())


def seen(text: str, path: str = "a.yaml") -> EncryptedFile | Problem | None:
    rows = [EncryptedFile.decode(frame) for frame in see({"places": [path]}, [text.encode()])]
    found = rows[0] if rows else None
    return found[1] if isinstance(found, tuple) else found


def made(text: str, path: str = "a.yaml") -> EncryptedFile:
    found = seen(text, path)
    assert isinstance(found, EncryptedFile), found
    return found


@pytest.mark.parametrize(
    ("text", "path", "form"),
    [
        (f"a: {MAC}\n{BLOCK}", "a.yaml", "yaml"),
        (f"a: {MAC}\n{BLOCK}", "anything", "yaml"),
        (JSON, "a.json", "json"),
        (JSON, "a.yml", "yaml"),
        (JSON, ".dockerconfigjson", "json"),
        (json.dumps({"data": MAC, "sops": FIELDS}), "a.json", "json"),
        (json.dumps({"data": MAC, "sops": FIELDS}), "a.bin", "binary"),
        (DOTENV, "a.env", "dotenv"),
        (DOTENV, "login.properties", "dotenv"),
        (INI, "a.ini", "ini"),
    ],
)
def test_a_files_own_form_says_what_it_is(text: str, path: str, form: str) -> None:
    assert made(text, path).form == form


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a: b\n", "a.yaml"),
        (f"how a value looks: {MAC}, and where sops: stands\n", "README.md"),
        (f"# {MAC}\nsops: {{a: 1}}\n", "a.yaml"),
        (f"{{{{ .Values.a }}}}\nb: {MAC}\n", "templates/a.yaml"),
        (f"kind: SopsSecret\na: {MAC}\n{BLOCK}", "a.yaml"),
        ("{{ if .a }}\n", "a.tpl"),
    ],
)
def test_what_isnt_encrypted_stays_as_it_is(text: str, path: str) -> None:
    assert seen(text, path) is None


def test_candidates_are_seen_by_their_bytes() -> None:
    assert may_be_encrypted(DOTENV.encode())
    assert not may_be_encrypted(b"sops: {}")


@pytest.mark.parametrize("after", ["", "# the end\n", "b: 1\n", "---\nb: 1\n"])
def test_yaml_is_cut_around_the_value_alone(after: str) -> None:
    text = f"# ü\nä: {MAC}\n{BLOCK}{after}"
    found = made(text)
    before, *rest = [piece for unit in found.units for piece in unit.pieces]
    assert before == f"# ü\nä: {MAC}\nsops:\n    "
    assert "".join([*rest, *found.texts[1:]]) == after


def test_documents_with_one_block_are_one_and_others_are_apart() -> None:
    one = made(f"a: {MAC}\n{BLOCK}---\nb: {MAC}\n{BLOCK}")
    assert [len(unit.pieces) for unit in one.units] == [3]
    apart = made(f"a: {MAC}\n{BLOCK}---\nplain: 1\n---\nb: {MAC}\n{BLOCK.replace('3.9.0', '3.9.1')}")
    assert [unit.metadata.kept["version"] for unit in apart.units] == ["3.9.0", "3.9.1"]
    assert apart.texts == ("", "---\nplain: 1\n---\n", "")


NO_FILES = (b"E[]", b"E{", b'E[0, "odd", [""], []]', b'E[true, "yaml", [""], []]', b'E[0, "yaml", [], []]', b"X")


@pytest.mark.parametrize("frame", NO_FILES)
def test_a_frame_that_is_no_file_is_refused(frame: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        EncryptedFile.decode(frame)


def test_a_long_line_of_blanks_in_metadata_takes_linear_time() -> None:
    """Tried anew from each blank, it would take minutes."""
    assert made(INI + " " * 500_000 + "\n", "a.ini").form == "ini"
    assert made(INI + "unknown = x" + " " * 500_000 + "y\n", "a.ini").form == "ini"


@pytest.mark.parametrize("change", [lambda text: text + "x", lambda text: text.replace(', "sops"', ' "sops"'), lambda text: text + text])
def test_json_that_is_no_one_object_is_refused(change: Callable[[str], str]) -> None:
    found = seen(change(JSON), "a.json")
    assert isinstance(found, Problem)
    assert "can't be read as JSON" in found.message


@pytest.mark.parametrize(
    "frame", ['[0, "yaml", 5, []]', '[0, "yaml", ["", ""], [[[], [{}, [], [], []]]]]', '[0, "yaml"]', '["0", "yaml", [""], []]']
)
def test_what_no_child_says_is_refused(frame: str) -> None:
    with pytest.raises(ValueError, match=r"no |not enough"):
        EncryptedFile.decode(b"E" + frame.encode())
