"""Variables written into what a real renderer made, by the real child: which ones there are, what is refused, what is hidden."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from handler.config.post_build import PostBuild, SubstituteFrom
from handler.config.settings_shape import Json
from handler.model.errors import ManifestInvalid, ValuesInvalid
from handler.model.render import Rendered, RenderRequest
from handler.render import RENDERERS, Sandbox
from handler.render.target_render import render_target
from tests.fakes.source_tree import FakeTree
from tests.rooms.render.helm_releases import CALLED, Elsewhere

CLUSTER = (SubstituteFrom("ConfigMap", "vars"), SubstituteFrom("Secret", "db"))
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata: {}\n"
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def rendered(sandbox: Sandbox, text: str, values: Mapping[str, str] | None = None, **about: Any) -> Rendered:
    """Render one file. `cluster`: kind -> its variables; `strategy`, `sources`: the settings'."""
    request, outside = asked(values, **about)
    return render_target(RENDERERS["file"], FakeTree({"deploy/a.yaml": text}), replace(request, outside=outside), sandbox)


def asked(
    values: Mapping[str, str] | None, strategy: Any = "Strict", sources: Any = CLUSTER, placeholders: bool = False, **cluster: Any
) -> tuple[RenderRequest, Elsewhere]:
    names = {"ConfigMap": "vars", "Secret": "db"}
    objects = {(kind, names[kind]): {key: value.encode() for key, value in found.items()} for kind, found in cluster.items()}
    outside = Elsewhere(objects={("ConfigMap", "vars"): {}, ("Secret", "db"): {}, **objects})
    settings = PostBuild(Json(json.dumps(values or {})), tuple(sources), strategy)
    return RenderRequest("deploy", called=CALLED, post_build=settings, placeholders=placeholders), outside


def data(found: Rendered) -> Any:
    [manifest] = found.manifests
    return manifest.body()["data"]


def refused(sandbox: Sandbox, text: str, *arguments: Any, **about: Any) -> list[str]:
    with pytest.raises(ManifestInvalid) as error:
        rendered(sandbox, text, *arguments, **about)
    return [str(each) for each in error.value.problems]


def test_the_configurations_variables_stand_above_those_of_the_cluster_and_later_ones_above_earlier(sandbox: Sandbox) -> None:
    text = CONFIG.format("{a: '${a}', b: '${b}', c: '${c}'}")
    found = rendered(sandbox, text, {"a": "git"}, ConfigMap={"a": "map", "b": "map", "c": "m\nap\n"}, Secret={"a": "s", "b": "secret"})
    assert data(found) == {"a": "git", "b": "secret", "c": "map"}
    assert [path for path, _ in found.reads.paths] == ["//values/ConfigMap/vars", "//values/Secret/db", "deploy"]


def test_numbers_and_booleans_are_what_flux_makes_of_them(sandbox: Sandbox) -> None:
    text = DEPLOYMENT + "spec: {replicas: '${N}', paused: \"${P}\", x: '${q}${N}${q}', z: '${E}'}\n"
    [manifest] = rendered(sandbox, text, {"N": "3", "P": "yes", "q": '"', "E": ""}).manifests
    assert manifest.body()["spec"] == {"replicas": 3, "paused": True, "x": "3", "z": None}


def test_texts_of_a_secret_are_substituted_before_they_are_encoded(sandbox: Sandbox) -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {token: '${T}', plain: x}\ndata: {other: JHtUfQ==}\n"
    assert data(rendered(sandbox, text, {"T": "hunter2"})) == {"other": "JHtUfQ==", "plain": "eA==", "token": "aHVudGVyMg=="}
    none = render_target(RENDERERS["file"], FakeTree({"deploy/a.yaml": text}), RenderRequest("deploy"), sandbox)
    assert base64.b64decode(data(none)["token"]) == b"${T}"


def test_what_says_so_stays_as_it_is(sandbox: Sandbox) -> None:
    for where in (
        "annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}",
        "labels: {kustomize.toolkit.fluxcd.io/substitute: Disabled}",
    ):
        text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web, {where}}}\ndata: {{a: '${{a}} $$'}}\n"
        assert data(rendered(sandbox, text, {"a": "1"})) == {"a": "${a} $$"}


def test_a_name_that_nobody_knows_is_refused_unless_the_strategy_says_otherwise(sandbox: Sandbox) -> None:
    text = CONFIG.format("{a: 'x${a}', b: '${b:-1}'}")
    [said] = refused(sandbox, text)
    assert said.startswith("deploy/a.yaml:1: ConfigMap/web: data.a: ${a} names the variable a, which isn't known; add postBuild: {sub")
    assert said.endswith("to the target; or write ${a:-…}, a default, or $${a}")
    text = CONFIG.format("{a: 'x${a}', b: 'y${b:-1}'}")
    assert data(rendered(sandbox, text, strategy="Always")) == {"a": "x", "b": "y1"}
    assert data(rendered(sandbox, text, strategy="WithVariables")) == {"a": "x${a}", "b": "y${b:-1}"}
    assert data(rendered(sandbox, text, {"c": ""}, strategy="WithVariables")) == {"a": "x", "b": "y1"}


def test_an_object_of_the_cluster_that_is_missing_is_named(sandbox: Sandbox) -> None:
    text, missing = CONFIG.format("{a: 'x${a}'}"), SubstituteFrom("Secret", "none")
    with pytest.raises(ValuesInvalid, match=r"^Secret none: isn't there, in namespace shop; postBuild\.substituteFrom"):
        rendered(sandbox, text, {"a": "1"}, sources=(missing,))
    found = rendered(sandbox, text, {"a": "1"}, sources=(replace(missing, optional=True),))
    assert data(found) == {"a": "x1"}
    assert found.reads.paths[0][0] == "//values/Secret/none"


@pytest.mark.parametrize(
    "field",
    [
        "metadata.name",
        "metadata.namespace",
        "roleRef.name",
        "subjects[0].name",
        "spec.template.spec.serviceAccountName",
        "spec.jobs[0].template.serviceAccount",
        "metadata.ownerReferences[0].uid",
    ],
)
def test_the_cluster_cannot_say_what_an_object_is_or_whose_rights_it_has(sandbox: Sandbox, field: str) -> None:
    body: dict[str, Any] = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "x", "namespace": "shop"}}
    node: Any = body
    *steps, last = field.replace("[0]", "").split(".")
    for step in steps:
        below: dict[str, Any] = node.get(step) or {}
        node[step] = [below] if f"{step}[0]" in field else below
        node = below
    node[last] = "p${v}"
    [said] = refused(sandbox, json.dumps(body), ConfigMap={"v": "a"})
    assert f"{field}: would be what ConfigMap vars says in the variable v: the cluster can't decide that" in said
    assert rendered(sandbox, json.dumps(body), {"v": "a"}, ConfigMap={"v": "b"}).manifests


def test_kinds_and_names_are_the_configurations_to_say_and_keys_follow(sandbox: Sandbox) -> None:
    text = "apiVersion: ${g/x/y}.io/v1\nkind: ${k}\nmetadata: {name: '${n/a/b}'}\n"
    found = rendered(sandbox, text, {"g": "x", "k": "Thing", "n": "aa"})
    assert [str(each.identity) for each in found.manifests] == ["Thing/ba"]
    assert found.keys == {"a.yaml": (found.manifests[0].identity,)}
    assert refused(sandbox, text, {"g": "x", "k": "a/b", "n": "a"}) == ["deploy/a.yaml:1: a/b/b: kind can't be 'a/b'"]


def test_what_came_from_a_secret_is_hidden_by_field_and_where_it_tells_something_by_text(sandbox: Sandbox) -> None:
    text = CONFIG.format("{a: 'x${p}', b: '${p:0:6}', c: '${t}x', d: '${m}', e: '${n}'}")
    found = rendered(
        sandbox, text, {"n": "git"}, ConfigMap={"m": "map-value"}, Secret={"p": "hunter2hunter2", "t": "true", "n": "unused-secret"}
    )
    assert found.hidden == {found.manifests[0].identity: ("/data/a", "/data/b", "/data/c")}
    assert sorted(found.secrets) == ["hunter", "hunter2hunter2"]
    assert "hunter2" not in repr(found)


def test_two_objects_that_become_one_are_refused(sandbox: Sandbox) -> None:
    text = CONFIG.format("{}").replace("web", "'${a}'") + "---\n" + CONFIG.format("{}").replace("web", "'${b}'")
    assert refused(sandbox, text, {"a": "x", "b": "x"}) == ["deploy/a.yaml:6: ConfigMap/x: declared twice, first at deploy/a.yaml:1"]


def test_what_is_made_is_judged_as_if_git_had_declared_it(sandbox: Sandbox) -> None:
    said = refused(sandbox, CONFIG.format("{a: '${q}${a}${q}', '${b}': x}"), {"a": "1", "b": "a", "q": '"'})
    assert said == ["deploy/a.yaml:1: ConfigMap/web: data.${b}: and a are the same key once their variables are written out"]
    said = refused(sandbox, CONFIG.format("{a: '${a}'}"), {"a": "1"})
    way = "a text is written ${quote}…${quote}, with postBuild: {substitute: {quote: '\"'}}"
    assert said == [f"deploy/a.yaml:1: ConfigMap/web: data.a is a number, not text; {way}"]


def test_without_the_cluster_its_values_are_placeholders(sandbox: Sandbox) -> None:
    text = DEPLOYMENT + "spec: {replicas: '${N:-3}', x: '${a}', v: 'v-${s}', z: '${g}'}\n"
    found = rendered(sandbox, text, {"g": "git"}, placeholders=True)
    assert found.manifests[0].body()["spec"] == {"replicas": 3, "x": "placeholder", "v": "v-placeholder", "z": "git"}
    assert found.hidden == {found.manifests[0].identity: ("/spec/v", "/spec/x")}
    assert [path for path, _ in found.reads.paths] == ["deploy"]
    assert found.secrets == ()


def test_without_a_variable_nothing_is_asked(sandbox: Sandbox) -> None:
    found = rendered(sandbox, CONFIG.format("{a: '$x'}"), sources=(SubstituteFrom("Secret", "none"),))
    assert [path for path, _ in found.reads.paths] == ["deploy"]
