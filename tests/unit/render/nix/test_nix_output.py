"""What nix prints, and what a child that was taken over may say in its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handler.model.errors import Problem
from handler.render.nix.nix_output import NixFacts, decode_nix, read_nix

HOME = "/srv/run-1/files"
OPTIONS = {"exit_code": 0, "home": HOME, "places": {"directory": "deploy", "roots": {}}, "trace": False}
OBJECT = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
SUM = "0" * 62


def read(printed: object, said: str = "") -> list[Any]:
    output = printed if isinstance(printed, bytes) else json.dumps(printed).encode()
    return [decode_nix(frame) for frame in read_nix(OPTIONS, [output, said.encode()])]


def item(at: object = None, file: str = "", **changed: object) -> dict[str, object]:
    return {"object": json.dumps({**OBJECT, **changed}), "at": at, "file": file}


def result(*items: object) -> dict[str, object]:
    return {"checksum": SUM, "server": "https://a", "items": items}


@pytest.mark.parametrize(
    ("at", "file", "place"),
    [
        ({"file": f"{HOME}/tree/deploy/a.nix", "line": 7, "column": 1}, f"{HOME}/tree/b.nix", "deploy/a.nix:7"),
        ({"file": "/opt/nixpkgs/lib/x.nix", "line": 7, "column": 1}, f"{HOME}/tree/b.nix", "b.nix:1"),
        (None, f"{HOME}/tree/b.nix", "b.nix:1"),
        (None, "<unknown-file>", "deploy:1"),
        ({"file": 1}, "", "deploy:1"),
    ],
)
def test_an_object_stands_where_it_is_written(at: object, file: str, place: str) -> None:
    facts, manifest = read(result(item(at, file)))
    assert facts == NixFacts(SUM, "https://a")
    assert (manifest.place, manifest.body()) == (place, OBJECT)


def test_numbers_are_those_of_go() -> None:
    _, manifest = read(
        result({"object": '{"kind":"A","apiVersion":"v1","metadata":{"name":"a"},"spec":{"a":2.0,"b":1.5,"c":1e3}}', "file": ""})
    )
    assert manifest.body()["spec"] == {"a": 2, "b": 1.5, "c": 1000}


HALF = json.dumps({**OBJECT, "a": "\ud800"}, ensure_ascii=False)


@pytest.mark.parametrize("text", ['{"a":inf}', '{"a":NaN}', '{"a":1e999}', "{", HALF, "[" * 300 + "]" * 300])
def test_what_is_no_json_is_a_mistake_with_a_place(text: str) -> None:
    found = read(result({"object": text, "file": f"{HOME}/tree/b.nix"}))[1:]
    assert found
    assert all(isinstance(each, Problem) and each.place == "b.nix:1" for each in found)


@pytest.mark.parametrize(
    "printed",
    [
        b"",
        b"\xff",
        b"[" * 100_000,
        {},
        [],
        {**result(), "items": {}},
        {**result(), "checksum": 1},
        result(1),
        result({"object": 1, "file": ""}),
    ],
)
def test_what_eval_nix_doesnt_print_is_refused(printed: object) -> None:
    assert read(printed) == [Problem("nix", "printed what isn't the result of an evaluation")]


def test_an_empty_list_is_no_object() -> None:
    assert read(result()) == [NixFacts(SUM, "https://a")]


@pytest.mark.parametrize("facts", [["0" * 61, ""], ["g" * 62, ""], ["0" * 62, "a\nb"], ["0" * 62, "x" * 3_000], ["0" * 62], {}])
def test_facts_that_are_none_arent_believed(facts: object) -> None:
    with pytest.raises(ValueError, match="no facts"):
        decode_nix(b"K" + json.dumps(facts).encode())
