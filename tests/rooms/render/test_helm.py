"""The Helm renderer against the real helm: the same objects, values in their order, install and upgrade, what is made anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handler.config.renderer_settings import RendererSettings, ValuesFrom
from handler.model.errors import AuthorError, OperatorError, ValuesInvalid
from handler.model.manifest import Manifest
from handler.model.outside_inputs import ClusterFacts, NothingOutside
from handler.model.render import Called, RenderRequest
from handler.render import RENDERERS, Sandbox
from handler.render.programs.program import Program
from tests.fakes.source_tree import FakeTree
from tests.rooms.render.helm_releases import (
    CHART,
    CONFIG,
    ECHO,
    HOOK,
    Elsewhere,
    by_helm,
    chart,
    names,
    options,
    packed,
    rendered,
    sandbox,
    seen,
)

__all__ = ["sandbox"]

DB = {"Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.2.3\n", "templates/db.yaml": CONFIG.format("{{ .Chart.Name }}")}
CRD = (
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: tills.shop.example.com}\nspec:\n"
    "  group: shop.example.com\n  names: {kind: Till, plural: tills}\n  scope: Namespaced\n  versions: []\n"
)
SAMPLES: dict[str, dict[str, str | bytes]] = {
    "crds": {"crds/till.yaml": CRD, "templates/a.yaml": CONFIG.format("a")},
    "hooks": {"templates/job.yaml": HOOK.format("migrate", "pre-install,pre-upgrade"), "templates/a.yaml": CONFIG.format("a")},
    "test hook": {"templates/tests/t.yaml": HOOK.format("try", "test")},
    "subchart in a directory": {f"charts/database/{path}": data for path, data in DB.items()},
    "subchart as archive": {"charts/db-1.2.3.tgz": packed({f"db/{path}": data for path, data in DB.items()})},
    "aliases": {
        "Chart.yaml": f"{CHART}dependencies:\n- {{name: db, version: 1.x, alias: one}}\n- {{name: db, version: 1.x, alias: two}}\n",
        **{f"charts/db/{path}": data for path, data in DB.items()},
    },
    "library": {
        "Chart.yaml": f"{CHART}dependencies: [{{name: lib, version: 1.0.0}}]\n",
        "charts/lib/Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library\n",
        "charts/lib/templates/_names.tpl": '{{ define "lib.name" }}{{ .Release.Name }}-lib{{ end }}',
        "templates/a.yaml": CONFIG.format('{{ include "lib.name" . }}'),
    },
    "tpl and files": {
        "values.yaml": "text: '{{ .Release.Name }}-{{ .Release.Namespace }}'\n",
        "files/motd.txt": "welcome\nto the shop\n",
        "templates/a.yaml": CONFIG.format("a")
        + 'data:\n  motd: {{ .Files.Get "files/motd.txt" | quote }}\n  t: {{ tpl .Values.text . }}\n',
    },
    "schema": {"values.schema.json": '{"required": ["a"]}', "values.yaml": "a: 1\n", "templates/a.yaml": CONFIG.format("a")},
    "capabilities": {
        "templates/a.yaml": CONFIG.format("v{{ .Capabilities.KubeVersion.Minor }}")
        + 'data: {has: {{ .Capabilities.APIVersions.Has "shop.example.com/v1/Till" | quote }}}\n'
    },
    "several documents": {"templates/a.yaml": "---\n".join((CONFIG.format("b"), "# nothing\n", CONFIG.format("a")))},
    "helmignore": {".helmignore": "templates/b.yaml\n", "templates/a.yaml": CONFIG.format("a"), "templates/b.yaml": "kind: [\n"},
    "requirements of v1": {
        "Chart.yaml": "apiVersion: v1\nname: web\nversion: 0.1.0\n",
        "requirements.yaml": "dependencies: [{name: db, version: 1.x}]\n",
        **{f"charts/db/{path}": data for path, data in DB.items()},
    },
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_objects_are_those_of_helm_itself(sample: str, sandbox: Sandbox, tmp_path: Path) -> None:
    files = chart(SAMPLES[sample])
    facts = Elsewhere().facts
    wanted = by_helm(tmp_path, files, "--kube-version", facts.version, "--api-versions", ",".join(facts.api_versions))
    found = rendered(sandbox, files)
    assert wanted
    assert [each.body() for each in found.manifests] == wanted
    assert found.renderer == "helm"


def test_a_release_is_named_by_its_target_or_its_setting(sandbox: Sandbox) -> None:
    files = chart({"templates/a.yaml": CONFIG.format("{{ .Release.Name }}-{{ .Release.Namespace }}")})
    assert names(rendered(sandbox, files)) == ["ConfigMap/web-shop"]
    assert names(rendered(sandbox, files, options(release_name="till"))) == ["ConfigMap/till-shop"]


def test_auto_renders_a_directory_with_a_chart(sandbox: Sandbox) -> None:
    request = RenderRequest("deploy", called=Called("web", ("*",)))
    found = RENDERERS["auto"].render(FakeTree(chart({"templates/a.yaml": CONFIG.format("{{ .Release.Namespace }}")})), request, sandbox)
    assert (found.renderer, names(found)) == ("helm", ["ConfigMap/default"])
    assert dict(found.reads.paths).keys() >= {"deploy", "deploy/Chart.yaml", "//tool/helm"}


def test_crds_are_left_out_on_request(sandbox: Sandbox) -> None:
    assert names(rendered(sandbox, chart(SAMPLES["crds"]), options(skip_crds=True))) == ["ConfigMap/a"]


# --- places
def test_an_object_stands_where_its_template_says_its_kind(sandbox: Sandbox) -> None:
    files = chart(
        {
            "templates/a.yaml": "{{- /* first */}}\n" + CONFIG.format("a"),
            "templates/many.yaml": "---\n".join(CONFIG.format(f"{name}") for name in "bc"),
            "charts/db-1.2.3.tgz": SAMPLES["subchart as archive"]["charts/db-1.2.3.tgz"],
            **{
                f"charts/other/{path}": data for path, data in {**DB, "Chart.yaml": "name: other\nversion: 1.0.0\napiVersion: v2\n"}.items()
            },
        }
    )
    places = {each.identity.name: each.place for each in rendered(sandbox, files).manifests}
    assert places == {
        "a": "deploy/templates/a.yaml:3",
        "b": "deploy/templates/many.yaml:1",
        "c": "deploy/templates/many.yaml:1",
        "db": "deploy/charts/db-1.2.3.tgz/templates/db.yaml:2",
        "other": "deploy/charts/other/templates/db.yaml:2",
    }


def test_a_rollout_calls_objects_by_their_template_or_their_name(sandbox: Sandbox) -> None:
    rollout = "apiVersion: workflow.kubernetes.io/v1alpha1\nkind: Rollout\nmetadata: {name: r}\nspec: {groups: []}\n"
    files = {**chart(SAMPLES["several documents"]), "rollout.yaml": rollout}
    found = rendered(sandbox, files, rollout="rollout.yaml")
    assert found.rollout is not None
    assert found.rollout.place == "rollout.yaml:1"
    assert found.where(["spec.groups"]) == [4]
    assert {key: len(each) for key, each in found.keys.items()} == {"templates/a.yaml": 2, "ConfigMap/a": 1, "ConfigMap/b": 1}
    assert dict(found.reads.paths)["rollout.yaml"]


# --- values
def test_later_values_stand_above_earlier_ones(sandbox: Sandbox) -> None:
    files = {
        **chart(
            {
                "values.yaml": "a: chart\nb: chart\nc: chart\nd: chart\ne: chart\nf: chart\nm: {x: chart, z: chart}\n",
                "templates/a.yaml": ECHO,
            }
        ),
        "values/one.yaml": "b: one\nc: one\nd: one\ne: one\nf: one\nm: {w: one}\n",
        "deploy/two.yaml": "c: two\nd: two\ne: two\nf: two\n",
    }
    settings = options(
        values_files=("../values/one.yaml", "two.yaml"),
        values_from=(ValuesFrom("Secret", "db"), ValuesFrom("ConfigMap", "db", "e", "m.z")),
        values={"e": "inline", "f": "inline"},
        assigned={"f": "set"},
    )
    outside = Elsewhere(objects={("Secret", "db"): {"values.yaml": b"d: secret\ne: secret\nf: secret\n"}, ("ConfigMap", "db"): {"e": b"7"}})
    wanted = {"a": "chart", "b": "one", "c": "two", "d": "secret", "e": "inline", "f": "set", "m": {"x": "chart", "w": "one", "z": 7}}
    found = rendered(sandbox, files, settings, outside)
    assert seen(found) == wanted
    reads = dict(found.reads.paths)
    assert reads.keys() == {"deploy", "values/one.yaml", "deploy/two.yaml", "//tool/helm", "//values/Secret/db", "//values/ConfigMap/db"}
    assert reads["//values/Secret/db"] == outside.ask("//values/Secret/db")


@pytest.mark.parametrize(
    ("assigned", "wanted"),
    [
        ({"image.tag": "v1"}, {"image": {"tag": "v1"}}),
        ({"a": "1", "b": 1, "c": True, "d": 1.5}, {"a": "1", "b": 1, "c": True, "d": 1.5}),
        ({"a": "x,y=z"}, {"a": "x,y=z"}),
        ({"a": "{x,y}"}, {"a": "{x,y}"}),
        ({"a": r"back\slash, [0]"}, {"a": r"back\slash, [0]"}),
        ({"a": "{home}", "b": ["{home}"]}, {"a": "{home}", "b": ["{home}"]}),
        ({"a": "two\nlines"}, {"a": "two\nlines"}),
        ({"a": ""}, {"a": ""}),
        ({r"sel.kubernetes\.io/os": "linux"}, {"sel": {"kubernetes.io/os": "linux"}}),
        ({"list[1].name": "b"}, {"list": [None, {"name": "b"}]}),
        ({"a": {"b": [1, "x"]}}, {"a": {"b": [1, "x"]}}),
        ({"a=b": "c", "d,e": 1}, {"a=b": "c", "d,e": 1}),
        ({"a": 3000000000}, {"a": 3000000000}),
    ],
)
def test_set_gives_helm_just_this_value(assigned: dict[str, Any], wanted: object, sandbox: Sandbox) -> None:
    assert seen(rendered(sandbox, chart({"templates/a.yaml": ECHO}), options(assigned=assigned))) == wanted


def test_null_of_set_removes_a_value_of_the_chart(sandbox: Sandbox) -> None:
    files = chart({"values.yaml": "a: 1\nb: 2\n", "templates/a.yaml": ECHO})
    assert seen(rendered(sandbox, files, options(assigned={"a": None}))) == {"b": 2}


def test_a_whole_number_of_set_stays_one_in_a_template(sandbox: Sandbox) -> None:
    files = chart({"templates/a.yaml": CONFIG.format("n{{ .Values.n }}")})
    assert names(rendered(sandbox, files, options(assigned={"n": 1000000}))) == ["ConfigMap/n1000000"]


@pytest.mark.parametrize(
    ("text", "wanted"), [("7", 7), ("true", True), ("'7'", "7"), ('"true"', "true"), ("a,b=c", "a,b=c"), ("p: [", "p: ["), ("null", None)]
)
def test_one_value_of_the_cluster_is_typed_as_flux_does(text: str, wanted: object, sandbox: Sandbox) -> None:
    settings = options(values_from=(ValuesFrom("ConfigMap", "db", "k", r"db.pass\.word"),))
    outside = Elsewhere(objects={("ConfigMap", "db"): {"k": text.encode()}})
    found = seen(rendered(sandbox, chart({"templates/a.yaml": ECHO}), settings, outside))
    assert found["db"]["pass.word"] == wanted


@pytest.mark.parametrize(
    ("data", "source", "message"),
    [
        (None, ValuesFrom("Secret", "db"), "isn't there, in namespace shop"),
        ({"other": b""}, ValuesFrom("Secret", "db"), "has no key values.yaml"),
        ({"k": b"\xff"}, ValuesFrom("Secret", "db", "k"), "isn't UTF-8"),
        ({"k": b"1"}, ValuesFrom("Secret", "db", "k", "list[0]"), "targetPath 'list[0]' is no path of mappings"),
        ({"k": b"1"}, ValuesFrom("Secret", "db", "k", "a..b"), "targetPath 'a..b' is no path of mappings"),
    ],
)
def test_values_of_the_cluster_that_are_missing_are_the_operators(
    data: dict[str, bytes] | None, source: ValuesFrom, message: str, sandbox: Sandbox
) -> None:
    outside = Elsewhere(objects={("Secret", "db"): data} if data is not None else {})
    with pytest.raises(ValuesInvalid, match="Secret db") as caught:
        rendered(sandbox, chart({"templates/a.yaml": ECHO}), options(values_from=(source,)), outside)
    assert message in str(caught.value)


def test_optional_values_of_the_cluster_may_be_missing_and_are_still_read(sandbox: Sandbox) -> None:
    settings = options(values_from=(ValuesFrom("Secret", "db", optional=True),))
    found = rendered(sandbox, chart({"templates/a.yaml": ECHO}), settings)
    assert seen(found) == {}
    assert "//values/Secret/db" in dict(found.reads.paths)


def test_without_a_cluster_values_from_it_are_refused(sandbox: Sandbox) -> None:
    settings = options(values_from=(ValuesFrom("Secret", "db"),))
    with pytest.raises(OperatorError, match="no cluster is asked here"):
        rendered(sandbox, chart({"templates/a.yaml": ECHO}), settings, NothingOutside())


def test_values_that_may_be_secret_are_no_arguments(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = options(values_from=(ValuesFrom("Secret", "db"), ValuesFrom("Secret", "db", "k", "db.pass")), values={"token": "hunter3"})
    outside = Elsewhere(objects={("Secret", "db"): {"values.yaml": b"a: hunter2", "k": b"hunter1"}})
    programs: list[Program] = []
    run = sandbox.run

    def noting(*arguments: Any, **others: Any) -> list[Any]:
        programs.extend([others["program"]] if "program" in others else [])
        return run(*arguments, **others)

    monkeypatch.setattr(sandbox, "run", noting)
    assert seen(rendered(sandbox, chart({"templates/a.yaml": ECHO}), settings, outside))["db"] == {"pass": "hunter1"}
    [program] = programs
    assert "hunter" not in repr((program.arguments, program.environment))


# --- the cluster
def test_a_chart_is_bound_to_the_cluster_only_where_it_looks(sandbox: Sandbox) -> None:
    plain = rendered(sandbox, chart({"README.md": "{{ .Capabilities }}", "templates/a.yaml": CONFIG.format("a")}))
    assert not any(path.startswith("//cluster") for path, _ in plain.reads.paths)
    for files in (
        {"templates/a.yaml": CONFIG.format("v{{ .Capabilities.KubeVersion.Minor }}")},
        {"Chart.yaml": f"{CHART}kubeVersion: '>=1.20'\n", "templates/a.yaml": CONFIG.format("v36")},
        {"values.yaml": "t: '{{ .Capabilities.KubeVersion.Minor }}'\n", "templates/a.yaml": CONFIG.format("v{{ tpl .Values.t . }}")},
    ):
        found = rendered(sandbox, chart(files))
        assert names(found) == ["ConfigMap/v36"]
        assert {"//cluster/version", "//cluster/apis"} < dict(found.reads.paths).keys()


def test_a_cluster_that_isnt_known_leaves_helm_its_own(sandbox: Sandbox) -> None:
    files = chart({"templates/a.yaml": CONFIG.format("v{{ .Capabilities.KubeVersion.Major }}")})
    assert names(rendered(sandbox, files, outside=Elsewhere(ClusterFacts("", ())))) == ["ConfigMap/v1"]


def test_thousands_of_api_versions_reach_the_chart(sandbox: Sandbox) -> None:
    apis = tuple(f"group-{number}.with-a-rather-long-name.example.com/v1alpha1/SomeKindOfObject" for number in range(4_000))
    files = chart({"templates/a.yaml": CONFIG.format(f'has-{{{{ .Capabilities.APIVersions.Has "{apis[-1]}" }}}}')})
    assert names(rendered(sandbox, files, outside=Elsewhere(ClusterFacts("v1.36.0", apis)))) == ["ConfigMap/has-true"]


# --- reads
def test_the_read_set_is_the_charts_directory_and_the_tool(sandbox: Sandbox) -> None:
    files = chart({"templates/a.yaml": CONFIG.format("a")})
    found = rendered(sandbox, files)
    assert dict(found.reads.paths).keys() == {"deploy", "//tool/helm"}
    outside = Elsewhere()
    assert found.reads.on(FakeTree({**files, "elsewhere/x": ""}), lambda name: dict(found.reads.paths)[name]) == found.reads
    assert found.reads.on(FakeTree({**files, "deploy/x": ""}), outside.ask) != found.reads


def test_a_mistake_follows_from_what_was_read(sandbox: Sandbox) -> None:
    with pytest.raises(AuthorError) as caught:
        rendered(sandbox, chart({"templates/a.yaml": "{{ .Values.a.b }}"}))
    assert {path for path, _ in caught.value.basis.reads} == {"deploy", "//tool/helm"}


def test_settings_of_another_kind_are_the_defaults(sandbox: Sandbox) -> None:
    files = chart({"templates/a.yaml": CONFIG.format("a")})
    assert rendered(sandbox, files, None).installs == rendered(sandbox, files, RendererSettings()).installs


def test_a_mistake_follows_from_all_that_was_looked_at_until_then(sandbox: Sandbox) -> None:
    files = chart({"templates/a.yaml": CONFIG.format("a")})
    request = RenderRequest("deploy", called=Called("web"), options=options(values_files=("../missing.yaml",)))
    with pytest.raises(AuthorError) as caught:
        RENDERERS["auto"].render(FakeTree(files), request, sandbox)
    reads = dict(caught.value.basis.reads)
    assert (set(reads), reads["missing.yaml"]) == ({"deploy", "deploy/Chart.yaml", "missing.yaml"}, "")
    with pytest.raises(AuthorError) as caught:
        RENDERERS["auto"].render(FakeTree({**files, "deploy/templates/a.yaml": "{{ nope }}"}), RenderRequest("deploy"), sandbox)
    assert {path for path, _ in caught.value.basis.reads} == {"deploy", "deploy/Chart.yaml", "//tool/helm"}


def test_a_chart_may_be_the_whole_repository(sandbox: Sandbox) -> None:
    files = {"Chart.yaml": CHART, "templates/a.yaml": ECHO, "charts/db/Chart.yaml": DB["Chart.yaml"], "prod.yaml": "a: 1\n"}
    found = rendered(sandbox, files, options(values_files=("prod.yaml",)), path=".")
    assert seen(found)["a"] == 1
    assert [each.place for each in found.manifests] == ["templates/a.yaml:2"]
    assert found.keys.keys() == {"templates/a.yaml", "ConfigMap/web"}
    with pytest.raises(AuthorError, match=r"^templates/a\.yaml:1: template:"):
        rendered(sandbox, {**files, "templates/a.yaml": "{{ .Values.a.b.c }}"}, path=".")


def test_what_helm_prints_again_isnt_read_again(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    files = chart({"templates/a.yaml": CONFIG.format("a"), "templates/b.yaml": f"{CONFIG.format('b')}data: {{n: '{{{{ .Values.n }}}}'}}\n"})
    first = rendered(sandbox, files, options(assigned={"n": 1}))
    asked: list[int] = []
    run = sandbox.run

    def counting(*arguments: Any, **others: Any) -> list[Any]:
        found = run(*arguments, **others)
        asked.append(sum(isinstance(each, Manifest) for each in found))
        return found

    monkeypatch.setattr(sandbox, "run", counting)
    again = rendered(sandbox, files, options(assigned={"n": 2}), known=first.files)
    monkeypatch.undo()
    fresh = rendered(sandbox, files, options(assigned={"n": 2}))
    assert asked == [0, 1]
    assert (again.manifests, again.files, again.reads) == (fresh.manifests, fresh.files, fresh.reads)
    moved = {**files, "deploy/templates/a.yaml": f"{{{{- /* a */}}}}\n{CONFIG.format('a')}"}
    assert rendered(sandbox, moved, known=first.files).manifests[0].place == "deploy/templates/a.yaml:3"
