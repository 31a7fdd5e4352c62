"""Messages that only some versions of helm write, or that no chart of the other tests makes."""

from __future__ import annotations

from handler.model.errors import Problem
from handler.render.helm.helm_errors import TemplateSources, problems, warnings

SOURCES = TemplateSources("deploy", {"web": "deploy", "web/charts/db": "libs/db"}, {"values/0.yaml": "prod.yaml"}, "/tmp/run-1/files")


def said(text: str, code: int = 1) -> list[Problem]:
    return problems(text, SOURCES, code)


def test_a_schema_of_helm_before_3_18_is_read_too() -> None:
    text = (
        "Error: values don't meet the specifications of the schema(s) in the following chart(s):\nweb:\n- (root): image is required\n"
        "- db.port: Invalid type. Expected: integer, given: string\n\ndb:\n- user: Must be short\n"
    )
    assert said(text) == [
        Problem("values", "“image is required”", "deploy/values.schema.json"),
        Problem("values db.port", "“Invalid type. Expected: integer, given: string”", "deploy/values.schema.json"),
        Problem("values db.user", "“Must be short”", "libs/db/values.schema.json"),
    ]


def test_a_template_of_a_chart_that_was_put_there_is_found_in_git() -> None:
    text = 'Error: template: web/charts/db/templates/a.yaml:7:3: executing "x" at <.Values.a>: oops\n\nUse --debug flag to render it\n'
    assert said(text) == [Problem("template", "“at <.Values.a>: oops”", "libs/db/templates/a.yaml:7")]


def test_words_that_no_rule_knows_are_shown_clean() -> None:
    assert said("Error: cannot do /tmp/run-1/files/chart with\n\x1b[31mcolour\n") == [
        Problem("helm", "“cannot do chart with \\x1b[31mcolour”", "deploy")
    ]


def test_a_tool_that_says_nothing_is_named_by_its_end() -> None:
    assert said("", -9) == [Problem("helm", "ended with exit code -9: it said nothing", "deploy")]
    assert said("fatal error: out of memory", 2)[0].message == "ended with exit code 2: “fatal error: out of memory”"


def test_a_file_of_values_is_called_as_people_do() -> None:
    text = "Error: failed to parse /tmp/run-1/files/values/0.yaml: error converting YAML to JSON: yaml: line 3: bad\n"
    assert said(text) == [Problem("values", "bad", "prod.yaml:3")]


def test_warnings_are_without_what_stands_in_brackets() -> None:
    text = "coalesce.go:286: warning: cannot overwrite table with non table for web.db (map[a:S3CRET])\n" * 2
    assert list(warnings(text, SOURCES)) == ["“cannot overwrite table with non table for web.db”"]
