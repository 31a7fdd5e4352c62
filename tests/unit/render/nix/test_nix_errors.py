"""Messages of nix, as several of its versions write them: the message and the line that is meant, and nothing of this machine."""

from __future__ import annotations

import pytest

from handler.model.errors import Problem
from handler.render.nix.nix_errors import NixPlaces, explain, notes

HOME = "/srv/anneal-programs-x/run-1/files"
PLACES = NixPlaces(HOME, "deploy", {"nixpkgs": "/opt/nixpkgs"})
OLD = f"""error: undefined variable 'lib'

       at {HOME}/tree/deploy/b.nix:1:7:

            1| {{ x = lib.y; }}
             |       ^

       … while evaluating the attribute 'x'

       at {HOME}/tree/deploy/a.nix:3:5:

            2| {{
"""
NEW = f"""error:
       … while calling the 'map' builtin
         at /opt/nixpkgs/lib/lists.nix:10:5:
            9|
           10|     map f
             |     ^

       … while evaluating the attribute 'x'
         at {HOME}/tree/deploy/a.nix:3:5:
            2| {{
            3|     x = y;
             |     ^

       error: undefined variable 'lib'
       at {HOME}/tree/deploy/b.nix:1:7:
            1| {{ x = lib.y; }}
             |       ^
"""


def said(text: str, *, trace: bool = False) -> Problem:
    return explain(text, PLACES, trace=trace)


@pytest.mark.parametrize("text", [OLD, NEW], ids=["2.8", "2.18"])
def test_the_message_and_its_own_place_are_found(text: str) -> None:
    assert said(text) == Problem("nix", "“undefined variable 'lib'”", "deploy/b.nix:1")


def test_without_a_place_of_its_own_the_nearest_one_counts() -> None:
    assert said(NEW[: NEW.index("       at " + HOME + "/tree/deploy/b.nix")]).place == "deploy/a.nix:3"
    assert said(OLD.replace(f"at {HOME}/tree/deploy/b.nix:1:7", "at /opt/nixpkgs/lib/x.nix:1:7")).place == "deploy/a.nix:3"
    assert said(f"error: said\n\n       … anneal: {HOME}/tree/deploy/c.nix:7\n") == Problem("nix", "said", "deploy/c.nix:7")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("error: stack overflow; max-call-depth exceeded", Problem("nix", "recurses without end (stack overflow)")),
        (
            "error: cannot build '/nix/store/abc-made.drv' during evaluation because the option 'allow-import-from-derivation' is disabled",
            Problem(
                "made",
                "would be built to be read here (import from derivation), and nothing is built",
                "",
                "commit what it makes, or make it without a build (builtins.toJSON, lib.generators)",
            ),
        ),
        (
            f"error: path '{HOME}/tree/common/a.nix' does not exist",
            Problem(
                "common/a.nix",
                "isn't there, or isn't among the files that were handed over",
                "",
                "name it by a path literal (./common.nix), or list it: renderer: {type: nix, sources: [../common]}",
            ),
        ),
        (
            "error: cannot find file 'nixpkgs' in the Nix search path (add it using $NIX_PATH or -I)",
            Problem(
                "nixpkgs",
                "no directory of this name is known",
                "",
                "renderer: {type: nix, nixPath: {nixpkgs: /opt/nixpkgs}}, or commit it and write packages: import ../nixpkgs {}",
            ),
        ),
        (
            f"error: expected a set but found a function: «lambda @ {HOME}/tree/deploy/a.nix:1:2»",
            Problem("nix", "“expected a set but found a function: «lambda @ deploy/a.nix:1:2»”"),
        ),
        ("error: opening /opt/nixpkgs/lib/x: oops", Problem("nix", "“opening <nixpkgs>/lib/x: oops”")),
        ("\x1b[31;1merror:\x1b[0m oops", Problem("nix", "oops")),
        (f"terminate called in {HOME}/tree", Problem("nix", "“terminate called in .”")),
        ("", Problem("nix", "failed and said nothing")),
    ],
)
def test_what_is_known_is_said_plainly(text: str, expected: Problem) -> None:
    assert said(text) == expected


@pytest.mark.parametrize(
    ("path", "absent", "named"),
    [
        ("deploy/x.nix", (), "deploy/x.nix"),
        ("common", ("common/x.nix",), "common/x.nix"),
        ("common/x.nix", ("common/x.nix",), "common/x.nix"),
    ],
)
def test_a_path_that_the_commit_lacks_is_named(path: str, absent: tuple[str, ...], named: str) -> None:
    found = explain(f"error: path '{HOME}/tree/{path}' does not exist", NixPlaces(HOME, "deploy", absent=absent), trace=False)
    assert (found.subject, found.message) == (named, "isn't in this commit")
    several = NixPlaces(HOME, "deploy", absent=("common/x.nix", "common/y.nix"))
    assert "handed over" in explain(f"error: path '{HOME}/tree/common' does not exist", several, trace=False).message


def test_values_of_definitions_are_left_out_and_their_file_is_the_place() -> None:
    text = (
        "error: A definition for option `kubernixos.server' is not of type `string'. Definition values:\n"
        f'       - In `{HOME}/tree/deploy/a.nix\': {{ password = "hunter2"; }}\n       at /opt/nixpkgs/lib/modules.nix:1:2:\n'
    )
    assert said(text) == Problem("kubernixos.server", "“is not of type `string'.”", "deploy/a.nix")


def test_a_trace_is_bounded() -> None:
    frames = "".join(f"       … while evaluating the attribute 'a{n}'\n         at {HOME}/tree/a.nix:{n}:1:\n" for n in range(1, 2_000))
    found = said(f"error:\n{frames}\n       error: oops\n", trace=True)
    assert found.message.startswith("oops [trace: “while evaluating the attribute 'a1' (a.nix:1); ")
    assert len(found.message) < 2_100
    assert len(said(f"error: {'x' * 10_000}").message) == 602


def test_notes_are_few_and_each_is_said_once() -> None:
    one = f"trace: one {HOME}/tree/a\n"
    text = f"{one}{one}warning: unable to load nss_dns backend\ntrace: warning: two\nwarning: three\ntrace: evaluation warning: four\n"
    assert list(notes(text, PLACES)) == ["nix: “one a”", "nix: two", "nix: three", "nix: four"]
    assert len(list(notes("".join(f"trace: {n}\n" for n in range(100)), PLACES))) == 10


def test_a_message_of_many_lines_takes_linear_time() -> None:
    """Tried anew from each line, it would take hours."""
    assert said("error: said" + "\n" * 200_000).message == "said"
