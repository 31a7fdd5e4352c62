"""What both engines say becomes the same problem: the innermost line of the commit, the path in the output, words that help."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from handler.model.errors import Problem
from handler.render.jsonnet.jsonnet_errors import explain, pointer

FILES = ("deploy/main.jsonnet", "lib/web.libsonnet")
CPP = """RUNTIME ERROR: no such region
\tstd.jsonnet:28:28-134\tthunk <go_only_function>
\tlib/web.libsonnet:2:3-19\tfunction <web>
\tdeploy/main.jsonnet:3:6-10\tobject <anonymous>
\tDuring manifestation\t
"""
GO = """RUNTIME ERROR: no such region
\t<std>:5:14-182\tfunction <anonymous>
\tlib/web.libsonnet:2:3-19\tfunction <web>
\tdeploy/main.jsonnet:3:6-10\tobject <anonymous>
\tField "port"\t
\tArray element 1\t
\tField "api"\t
\tDuring manifestation\t
"""


def told(said: str, missing: Mapping[tuple[str, str], Problem] | None = None) -> Problem:
    return explain(said, "deploy/main.jsonnet", FILES, missing)


def test_the_innermost_frame_of_the_commit_is_the_place() -> None:
    assert told(CPP) == Problem("lib/web.libsonnet", "“no such region”", "lib/web.libsonnet:2:3")
    assert told(GO) == Problem("$.api[1].port", "“no such region”", "lib/web.libsonnet:2:3")


@pytest.mark.parametrize(
    ("said", "place", "message", "fix"),
    [
        ("STATIC ERROR: lib/web.libsonnet:1:8: unexpected end", "lib/web.libsonnet:1:8", "“unexpected end”", ""),
        ("deploy/main.jsonnet:1:6-9 Unknown variable: foo\n\n{ a: foo }\n", "deploy/main.jsonnet:1:6", "“Unknown variable: foo”", ""),
        (
            "RUNTIME ERROR: lib/web.libsonnet:(2:8)-(3:1) Unexpected\n\tdeploy/main.jsonnet:1:6-26\tx",
            "lib/web.libsonnet:2:8",
            "Unexpected",
            "",
        ),
        (
            "RUNTIME ERROR: max stack frames exceeded.\n\tdeploy/main.jsonnet:1:12-18\tx\n\t...\n",
            "deploy/main.jsonnet:1:12",
            "recurses deeper than 500 calls",
            "end",
        ),
        (
            "RUNTIME ERROR: undefined external variable: zone",
            "deploy/main.jsonnet",
            "external variable zone isn't set",
            "extVars: {zone: …}",
        ),
        (
            "RUNTIME ERROR: Undefined external variable: zone",
            "deploy/main.jsonnet",
            "external variable zone isn't set",
            "extVars: {zone: …}",
        ),
        (
            "RUNTIME ERROR: Missing argument: x\n\tTop-level function call\t",
            "deploy/main.jsonnet",
            "argument x isn't given",
            "topLevelArguments",
        ),
        ("only functions can be called, got null", "deploy/main.jsonnet", "only functions can be called, got null", "std.native"),
        ("RUNTIME ERROR: function parameter x not bound in call.\n\tx", "deploy/main.jsonnet", "argument x isn't given", "topLevel"),
        ("", "deploy/main.jsonnet", "failed and said nothing", ""),
        ("RUNTIME ERROR: two\nlines\x1b[31m", "deploy/main.jsonnet", "“two lines\\x1b[31m”", ""),
    ],
)
def test_messages_are_reduced_to_their_cause(said: str, place: str, message: str, fix: str) -> None:
    found = told(said)
    assert (found.place, found.message) == (place, message)
    assert fix in found.fix


def test_a_message_is_bounded_and_frames_of_elsewhere_are_passed_over() -> None:
    assert len(told("RUNTIME ERROR: " + "x" * 100_000).message) <= 602
    assert told("RUNTIME ERROR: a\n\t/etc/passwd:1:2-3\tx").place == "deploy/main.jsonnet"


def test_go_names_an_import_and_the_worker_knows_where_it_was_looked_for() -> None:
    missing = Problem("nope", "isn't there; looked for at lib/nope", "lib/web.libsonnet:4")
    said = 'RUNTIME ERROR: couldn\'t open import "nope": no match locally or in the Jsonnet library paths\n\tlib/web.libsonnet:4:1-9\tx'
    assert told(said, missing={("lib", "nope"): missing}) is missing
    assert "couldn't open import" in told(said, missing={}).message


def test_a_path_in_the_output_is_written_as_it_would_be_typed() -> None:
    assert pointer(("grafana", "rules", 0, "setup/0namespace")) == '$.grafana.rules[0]["setup/0namespace"]'
