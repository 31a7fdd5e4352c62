"""What the real helm says of broken charts, as Anneal says it: file:line of the source, helm's own words, no value that may be secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from handler.config.renderer_settings import ValuesFrom
from handler.model.errors import AnnealError, ManifestInvalid, PathMissing, Problem, SourceRefused, ValuesInvalid
from handler.model.quotation import quoted
from handler.model.render import RenderRequest
from handler.render import RENDERERS, Sandbox
from handler.render.target_render import render_target
from tests.fakes.source_tree import FakeTree
from tests.rooms.render.helm_releases import CALLED, CHART, CONFIG, ECHO, Elsewhere, chart, options, rendered, sandbox

__all__ = ["sandbox"]
X = "templates/x.yaml"
DEEP = '{{ define "deep" }}{{ include "deep" . }}{{ end }}'
SEE = "see what it renders: helm template deploy --debug"
SCHEMA = (
    '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["image"], "additionalProperties": false,'
    ' "properties": {"replicas": {"type": "integer", "minimum": 3},'
    ' "db": {"properties": {"password": {"pattern": "^[a-z]+$"}, "kind": {"enum": ["a", "b"]}, "host": {"format": "ipv4"}}}}}'
)
TABLE: dict[str, tuple[Mapping[str, str], Problem]] = {
    "an action that isn't closed": (
        {X: "a: 1\nb: {{ .Values.x\n"},
        Problem("template", "unclosed action started at deploy/templates/x.yaml:2", "deploy/templates/x.yaml:3"),
    ),
    "an unknown function": ({X: "a: 1\nb: {{ nope }}\n"}, Problem("template", 'function "nope" not defined', "deploy/templates/x.yaml:2")),
    "a nil pointer": (
        {X: "a: 1\nb: {{ .Values.x.y.z }}\n"},
        Problem("template", "at <.Values.x.y.z>: nil pointer evaluating interface {}.y", "deploy/templates/x.yaml:2"),
    ),
    "required": (
        {X: '\n{{ required "image.tag is needed" .Values.x }}'},
        Problem("template", "image.tag is needed", "deploy/templates/x.yaml:2"),
    ),
    "fail": ({X: '{{ fail "do not\\ndo this" }}'}, Problem("template", "do not do this", "deploy/templates/x.yaml:1")),
    "a named template": (
        {X: 'a: 1\nb: {{ include "named" . }}\n', "templates/_h.tpl": '{{ define "named" }}\n{{ .Values.x.y }}{{ end }}'},
        Problem(
            "template",
            "at <.Values.x.y>: nil pointer evaluating interface {}.y (called at deploy/templates/x.yaml:2)",
            "deploy/templates/_h.tpl:2",
        ),
    ),
    "an unknown named template": (
        {X: '{{ include "nope" . }}'},
        Problem(
            "template",
            'at <include "nope" .>: error calling include: template: no template "nope" in the chart',
            "deploy/templates/x.yaml:1",
        ),
    ),
    "tpl": (
        {X: '{{ tpl "S3CRET {{ .Values.a.b }}" . }}'},
        Problem(
            "template",
            'at <tpl "S3CRET {{ .Values.a.b }}" .>: error calling tpl: at <.Values.a.b>: nil pointer evaluating interface {}.b',
            "deploy/templates/x.yaml:1",
        ),
    ),
    "a template without end": (
        {X: '{{ include "deep" . }}', "templates/_h.tpl": DEEP},
        Problem(
            "template",
            'at <include "deep" .>: error calling include:'
            " rendering template has a nested reference name: deep: unable to execute template",
            "deploy/templates/_h.tpl:1",
        ),
    ),
    "a subchart": (
        {"charts/db/Chart.yaml": CHART.replace("web", "database"), "charts/db/templates/x.yaml": "\n\n{{ .Values.x.y }}"},
        Problem("template", "at <.Values.x.y>: nil pointer evaluating interface {}.y", "deploy/charts/db/templates/x.yaml:3"),
    ),
    "rendered YAML": (
        {X: "kind: A\napiVersion: v1\nb: [\n"},
        Problem(
            "rendered YAML", "line 3 of a document that it renders: did not find expected node content", "deploy/templates/x.yaml", SEE
        ),
    ),
    "a rendered list": ({X: "- a\n"}, Problem("rendered YAML", "a document that it renders is a list", "deploy/templates/x.yaml", SEE)),
    "an annotation that is a mapping": (
        {X: "kind: A\napiVersion: v1\nmetadata: {annotations: {a: {b: c}}}\n"},
        Problem("rendered YAML", "a document that it renders has a mapping in metadata.annotations", "deploy/templates/x.yaml", SEE),
    ),
    "an object without kind": ({X: "apiVersion: v1\nmetadata: {name: x}\n"}, Problem("x", "kind is missing", "deploy/templates/x.yaml:1")),
    "a key written twice": (
        {X: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b, a: c}\n"},
        Problem("key a", "written twice, first in line 4 (line 4 of what it renders)", "deploy/templates/x.yaml"),
    ),
    "kubeVersion": (
        {"Chart.yaml": f'{CHART}kubeVersion: ">=1.99"\n'},
        Problem(
            "kubeVersion",
            "chart requires kubeVersion: >=1.99 which is incompatible with Kubernetes v1.36.3",
            "deploy/Chart.yaml:4",
            "take a version of the chart that is made for this cluster",
        ),
    ),
    "a library": (
        {"Chart.yaml": f"{CHART}type: library\n"},
        Problem(
            "chart",
            "library charts are not installable",
            "deploy/Chart.yaml:4",
            "make it a dependency of a chart of `type: application`, and render that",
        ),
    ),
    "a version that is none": (
        {"Chart.yaml": CHART.replace("0.1.0", "foo")},
        Problem("Chart.yaml", 'chart.metadata.version "foo" is invalid', "deploy/Chart.yaml:3"),
    ),
    "Chart.yaml that is no YAML": (
        {"Chart.yaml": f"{CHART}x: [\n"},
        Problem("Chart.yaml", "did not find expected node content", "deploy/Chart.yaml:4"),
    ),
    "values.yaml that is no YAML": (
        {"values.yaml": "a: 1\nb: [\n"},
        Problem("values.yaml", "did not find expected node content", "deploy/values.yaml:2"),
    ),
    "a schema that isn't JSON": (
        {"values.schema.json": '{"type":'},
        Problem("values.schema.json", "unexpected EOF", "deploy/values.schema.json"),
    ),
    "a schema elsewhere": (
        {"values.schema.json": '{"$ref": "http://127.0.0.1:9/x.json"}'},
        Problem(
            "values.schema.json",
            "refers to http://127.0.0.1:9/x.json, which isn't read here",
            "deploy/values.schema.json",
            "write it into the schema itself, below $defs",
        ),
    ),
    "a schema on the host": (
        {"values.schema.json": '{"$ref": "file:///etc/passwd"}'},
        Problem(
            "values.schema.json",
            "refers to file:///etc/passwd, which isn't read here",
            "deploy/values.schema.json",
            "write it into the schema itself, below $defs",
        ),
    ),
}


@pytest.mark.parametrize("sample", TABLE)
def test_a_broken_chart_is_named_by_its_source(sample: str, sandbox: Sandbox) -> None:
    files, wanted = TABLE[sample]
    with pytest.raises(ManifestInvalid) as caught:
        rendered(sandbox, chart(files))
    [problem] = caught.value.problems
    assert replace(problem, message=problem.message.strip("“”")) == wanted


def test_a_schema_of_the_wrong_form_is_one_mistake(sandbox: Sandbox) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        rendered(sandbox, chart({"values.schema.json": '{"type": "nope"}'}))
    [problem] = caught.value.problems
    assert (problem.subject, problem.place) == ("values.schema.json", "deploy/values.schema.json")
    assert problem.message.startswith("“is not valid against metaschema")


def test_each_refused_value_has_the_place_where_it_is_written(sandbox: Sandbox) -> None:
    files = {
        **chart({"values.schema.json": SCHEMA, "values.yaml": "replicas: two\ndb:\n  password: S3CRET\n  host: S3CRET\n"}),
        "values/prod.yaml": "extra: 1\ndb:\n  kind: S3CRET\n",
    }
    with pytest.raises(ManifestInvalid) as caught:
        rendered(sandbox, files, options(values_files=("../values/prod.yaml",)))
    assert {(each.subject, each.message.strip("“”"), each.place) for each in caught.value.problems} == {
        ("values", "missing property 'image'", "deploy/values.schema.json"),
        ("values replicas", "got string, want integer", "deploy/values.yaml:1"),
        ("values db.password", "does not match pattern '^[a-z]+$'", "deploy/values.yaml:3"),
        ("values db.host", "is not valid ipv4", "deploy/values.yaml:4"),
        ("values db.kind", "value must be one of 'a', 'b'", "values/prod.yaml:3"),
        ("values extra", "additional properties 'extra' not allowed", "values/prod.yaml:1"),
    }


def test_the_schema_of_a_subchart_is_its_own(sandbox: Sandbox) -> None:
    inner = {"Chart.yaml": CHART.replace("web", "db"), "values.schema.json": '{"required": ["a"]}', "values.yaml": "b: 1\n"}
    with pytest.raises(ManifestInvalid) as caught:
        rendered(sandbox, chart({f"charts/db/{path}": data for path, data in inner.items()}))
    assert caught.value.problems == (Problem("values db", "“missing property 'a'”", "deploy/charts/db/values.schema.json"),)


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("a: 1\nb: [x\n", "did not find expected ',' or ']'", ":2"),
        ("- S3CRET\n", "is array, not a mapping", ""),
        ("S3CRET\n", "is string, not a mapping", ""),
    ],
)
def test_a_file_of_values_that_cant_be_read_is_named(text: str, message: str, line: str, sandbox: Sandbox) -> None:
    files = {**chart({X: ECHO}), "prod.yaml": text}
    with pytest.raises(ManifestInvalid) as caught:
        rendered(sandbox, files, options(values_files=("../prod.yaml",)))
    assert caught.value.problems == (Problem("values", quoted(message), f"prod.yaml{line}"),)


def test_set_that_helm_cant_read_is_the_operators(sandbox: Sandbox) -> None:
    with pytest.raises(ValuesInvalid, match=r"renderer\.set: “can't be read"):
        rendered(sandbox, chart({X: ECHO}), options(assigned={"a[": 1}))


SECRET = b"password: hunter2-long\nnested: {token: 'tok-en-9'}\nlist: [item-secret]\nport: 54321\n"


@pytest.mark.parametrize(
    "template",
    [
        '{{ fail (printf "bad %s" .Values.password) }}',
        '{{ fail (printf "bad %s" .Values.nested.token) }}',
        '{{ fail (printf "bad %v %v" .Values.list (int .Values.port)) }}',
        "{{ fail (toYaml .Values) }}",
        '{{ required .Values.password "" }}',
        '{{ mustToDate "2006" .Values.password }}',
        "{{ fail (b64enc .Values.password) }}",
        "apiVersion: v1\nkind: {{ .Values.password }}!\nmetadata: {name: a}\n",
        CONFIG.format("a") + "data: {{{{ .Values.nested.token }}: a, {{ .Values.nested.token }}: b}\n".replace("{{{{", "{ {{"),
    ],
)
def test_no_value_of_a_secret_is_in_what_helm_says_of_a_target(template: str, sandbox: Sandbox) -> None:
    outside = Elsewhere(objects={("Secret", "db"): {"values.yaml": SECRET, "k": b"plain-value"}})
    settings = options(values_from=(ValuesFrom("Secret", "db"), ValuesFrom("Secret", "db", "k", "one")))
    asked = RenderRequest("deploy", called=CALLED, options=settings, outside=outside)
    with pytest.raises(AnnealError) as caught:
        render_target(RENDERERS["helm"], FakeTree(chart({X: template})), asked, sandbox)
    said = str(caught.value)
    assert not any(text in said for text in ("hunter2", "tok-en-9", "item-secret", "54321", "plain-value"))


def test_a_secret_of_broken_yaml_is_named_and_not_shown(sandbox: Sandbox) -> None:
    outside = Elsewhere(objects={("Secret", "db"): {"values.yaml": b"password: hunter2-long\nbroken: [\n"}})
    with pytest.raises(ManifestInvalid) as caught:
        rendered(sandbox, chart({X: ECHO}), options(values_from=(ValuesFrom("Secret", "db"),)), outside)
    assert caught.value.problems[0].place == "Secret db (key values.yaml):2"
    assert "hunter2" not in str(caught.value)


# --- what isn't there
def test_a_path_that_isnt_there_is_missing(sandbox: Sandbox) -> None:
    with pytest.raises(PathMissing):
        rendered(sandbox, {"other/x": ""})


def test_a_directory_without_a_chart_is_named(sandbox: Sandbox) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        rendered(sandbox, {"deploy/values.yaml": "a: 1\n"})
    assert caught.value.problems == (
        Problem("chart", "“Chart.yaml file is missing”", "deploy/Chart.yaml", "correct `path` of the target, or add the file"),
    )


def test_every_file_of_values_that_is_missing_is_named(sandbox: Sandbox) -> None:
    with pytest.raises(SourceRefused) as caught:
        rendered(sandbox, chart({}), options(values_files=("a.yaml", "../b.yaml")))
    assert [each.subject for each in caught.value.problems] == ["deploy/a.yaml", "b.yaml"]


# --- hostile
@pytest.mark.parametrize("path", ["../../etc/passwd", "../../../../../../etc/passwd", "../.."])
def test_values_outside_the_repository_are_refused(path: str, sandbox: Sandbox) -> None:
    with pytest.raises(SourceRefused, match="leads out of the repository"):
        rendered(sandbox, chart({X: ECHO}), options(values_files=(path,)))


@pytest.mark.parametrize("link", ["/etc/passwd", "../../../etc/passwd", "nowhere"])
def test_a_link_out_of_the_repository_is_refused(link: str, sandbox: Sandbox) -> None:
    with pytest.raises(SourceRefused, match="deploy/files/link: this symbolic link"):
        rendered(sandbox, chart({X: ECHO}), links={"deploy/files/link": link})


def test_a_link_in_the_repository_is_what_it_leads_to(sandbox: Sandbox) -> None:
    files = {**chart({X: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Files.Get "files/link" }}}\n'}), "shared/name": "linked"}
    found = rendered(sandbox, files, links={"deploy/files/link": "../../shared/name"})
    assert [each.identity.name for each in found.manifests] == ["linked"]
    assert "shared/name" in dict(found.reads.paths)


def test_a_file_of_the_host_is_never_read(sandbox: Sandbox) -> None:
    template = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: {{ .Files.Get "../../../../../etc/hostname" | quote }}}\n'
    [manifest] = rendered(sandbox, chart({X: template})).manifests
    assert manifest.body()["data"] == {"a": ""}


def test_a_large_file_pointer_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(SourceRefused, match=r"deploy/values\.yaml: is a Git LFS pointer"):
        rendered(sandbox, chart({"values.yaml": "version https://git-lfs.github.com/spec/v1\n"}))


def test_a_schema_that_refers_to_itself_ends(sandbox: Sandbox) -> None:
    schema = '{"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}'
    with pytest.raises(ManifestInvalid, match=r"values\.schema\.json"):
        rendered(sandbox, chart({"values.schema.json": schema, X: ECHO}))


def test_the_environment_of_the_handler_never_shows(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELM_NAMESPACE", "canary-namespace")
    monkeypatch.setenv("CANARY", "canary-value")
    template = ECHO.replace("toJson .Values", "toYaml $").replace(".Values | toJson", "toYaml $")
    [manifest] = rendered(sandbox, chart({X: template})).manifests
    assert b"canary" not in manifest.raw
