"""What a chart says of itself before helm reads it."""

from __future__ import annotations

import pytest

from handler.render.helm.chart_facts import ChartFacts, Dependency, Use, decode_facts, encode_facts
from handler.render.helm.chart_scan import ChartScan, scan_chart


def uses(text: str) -> list[str]:
    scan = ChartScan()
    scan.text(text.encode(), "x.yaml")
    return [f"{use.function}:{use.place.removeprefix('x.yaml:')}" for use in scan.uses]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{{ randAlphaNum 5 }}", ["randAlphaNum:1"]),
        ('\n{{- $a := lookup "v1" "Secret" "" "" -}}', ["lookup:2"]),
        ('{{ include "a" (dict\n  "b" (uuidv4)\n  "c" now) }}', ["uuidv4:2", "now:3"]),
        ('{{ $c := genSignedCertWithKey "a" nil nil 1 $ca "k" }}', ["genSignedCertWithKey:1"]),
        ("{{ .Values.now }}{{ $now }}{{ .Values.lookup.x }}{{ $.now }}", []),
        ('{{ fail "lookup failed" }}{{ include `now` . }}{{ index . "uuidv4" }}', []),
        ('{{ printf "\\"now\\" %s" now }}', ["now:1"]),
        ("{{/* now */}}{{- /* lookup }} now */ -}}{{ now }}", ["now:1"]),
        ("{{/*\nnow\n*/}}\n{{ now }}", ["now:4"]),
        ("now lookup randAlphaNum", []),
        ("{{ nowhere }}{{ knowledge }}{{ randAlphaNumX }}", []),
        ("{{ derivePassword 1 }}{{ date .x }}", []),
        ("{{ now", []),
    ],
)
def test_calls_are_found_and_other_words_are_not(text: str, wanted: list[str]) -> None:
    assert uses(text) == wanted


def test_a_text_of_open_actions_costs_no_more_than_its_length() -> None:
    assert uses("{{" * 2_000_000) == []
    assert uses('{{ "' * 300_000) == []


def facts(files: dict[str, str], **options: object) -> ChartFacts:
    given = {"place": "deploy", "paths": [*files], "archive": False, "moved": {}, "beside": [], **options}
    return scan_chart(given, [each.encode() for each in files.values()])


def test_charts_are_known_by_helms_path_and_by_that_in_git() -> None:
    files = {
        "Chart.yaml": "name: web\ndependencies:\n- {name: db, alias: one}\n- {name: db, alias: two}\n- {name: lost, version: 2}\n",
        "charts/database/Chart.yaml": "name: db\n",
        "charts/database/charts/in/Chart.yaml": "name: inner\n",
        "charts/_skipped/Chart.yaml": "name: lost\n",
        "charts/README.md": "",
    }
    found = facts(files)
    assert found.name == "web"
    assert found.roots == {
        "web": "deploy",
        "web/charts/one": "deploy/charts/database",
        "web/charts/one/charts/inner": "deploy/charts/database/charts/in",
        "web/charts/two": "deploy/charts/database",
        "web/charts/two/charts/inner": "deploy/charts/database/charts/in",
    }
    assert found.missing == (Dependency("", "lost", "2", "", "", "deploy/Chart.yaml:5"),)


def test_what_a_chart_in_charts_needs_is_its_own_matter_unless_it_was_put_there() -> None:
    files = {"Chart.yaml": "name: web\n", "charts/db/Chart.yaml": "name: db\ndependencies: [{name: lib}]\n"}
    assert facts(files).missing == ()
    assert facts(files, moved={"charts/db": "libs/db"}).missing == (Dependency("charts/db", "lib", "", "", "", "libs/db/Chart.yaml:2"),)


@pytest.mark.parametrize("text", ["x: [", "- a", "", "name: {a: b}\n", "dependencies: 5\n", "dependencies: [5, {name: [a]}]\n"])
def test_a_chart_that_cant_be_read_is_left_to_helm(text: str) -> None:
    found = facts({"Chart.yaml": text})
    assert found.name == ""
    assert {each.name for each in found.missing} <= {""}


def test_values_beside_the_chart_are_searched_too() -> None:
    options = {"place": "deploy", "paths": [], "archive": False, "moved": {}, "beside": ["prod.yaml"]}
    assert scan_chart(options, [b"a: '{{ randAlpha 3 }}{{ .Capabilities.KubeVersion }}'"]).uses == (Use("randAlpha", "prod.yaml:1"),)
    assert scan_chart(options, [b"a: '{{ .Capabilities.KubeVersion }}'"]).asks_cluster


def test_the_kind_of_an_object_has_a_line_where_it_is_said_once() -> None:
    text = "kind: A\n---\nkind: 'B'\nspec:\n  kind: C\n---\nkind: B\n---\nkind: {{ .x }}\n"
    assert facts({"templates/x.yaml": text, "files/y.yaml": "kind: A\n"}).kinds == {"deploy/templates/x.yaml": {"A": 1}}


def test_facts_cross_the_pipe_whole() -> None:
    found = ChartFacts(
        "web", (Dependency("", "db", "1", "", "x", "Chart.yaml:1"),), (Use("now", "a:1"),), {"web": ""}, {"a": {"A": 1}}, True
    )
    assert decode_facts(encode_facts(found)) == found


@pytest.mark.parametrize(
    "frame",
    [b"{}", b"[]", b"null", b"{", encode_facts(ChartFacts()).replace(b'""', b"5"), encode_facts(ChartFacts(kinds={"a": {"A": -1}}))],
)
def test_facts_of_another_shape_arent_believed(frame: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - what JSON says of itself is one too
        decode_facts(frame)
