"""Placeholders: of each type, without the metadata, the same for the same encrypted value."""

from __future__ import annotations

import base64
import json

import pytest

from handler.render.sops.placeholders import TEXT, decode_placeholders, placeholders, stand_in


def encrypted(kind: str, data: str = "eA==") -> str:
    return f"ENC[AES256_GCM,data:{data},iv:eA==,tag:eA==,type:{kind}]"


def test_each_type_has_its_own() -> None:
    text = "".join(f"{kind}: {encrypted(kind)}\n" for kind in ("int", "float", "bool", "str")) + f"#{encrypted('comment')}\nsops:\n    "
    lines = placeholders("yaml", [text, "\n"]).splitlines()
    assert lines[:3] == ["int: 0", "float: 0.5", "bool: false"]
    assert lines[3].startswith(f'str: "{TEXT}')
    assert lines[4] == "# encrypted"
    assert "sops" not in "".join(lines)


def test_a_text_is_base64_and_changes_with_what_is_encrypted() -> None:
    one, same, other = (placeholders("dotenv", [f"A={encrypted('str', data)}\n", ""]) for data in ("eA==", "eA==", "eQ=="))
    assert one == same != other
    base64.b64decode(one.strip().removeprefix("A="), validate=True)


def test_json_keeps_its_form_and_binary_is_a_text() -> None:
    assert placeholders("json", ['{"sops": ', f', "a": [{encrypted("int")!r}]}}'.replace("'", '"')]) == '{\n  "a": [\n    0\n  ]\n}'
    assert placeholders("binary", [f'{{"data": "{encrypted("str")}", "sops": ', "}"]).startswith(TEXT)


@pytest.mark.parametrize("form", ["yaml"])
def test_an_object_whose_kind_is_encrypted_is_left_out_and_counted(form: str) -> None:
    text = f"kind: {encrypted('str')}\nsops:\n    "
    frames = list(stand_in({"units": [[form, [f"a: 1\n---\n{text}", "\n---\nkind: ConfigMap\n"]]], "set": 1}, []))
    assert [decode_placeholders(frame) for frame in frames] == [(1, b"a: 1\n---\nkind: ConfigMap\n")]


def test_half_a_character_has_a_placeholder_too() -> None:
    assert placeholders("binary", ['{"data": "\\ud800", "sops": ', "}"]).startswith(TEXT)


@pytest.mark.parametrize("kind", ["str", "int", "float", "bool"])
def test_the_second_set_has_another_value_of_the_same_type(kind: str) -> None:
    one, other = (placeholders("json", ['{"sops": ', f', "a": [{encrypted(kind)!r}]}}'.replace("'", '"')], number) for number in (1, 2))
    values = [json.loads(text)["a"][0] for text in (one, other)]
    assert values[0] != values[1]
    assert type(values[0]) is type(values[1])
    if kind == "str":
        base64.b64decode(values[1], validate=True)
    if kind != "bool":
        assert not set(str(values[0])) & set(str(values[1])) - {"."}
