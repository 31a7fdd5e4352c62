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
from handler.model.render import UPGRADED, Rendered, RenderRequest
from handler.render import RENDERERS, Sandbox
from handler.render.render_tools import DIRECTORY
from handler.render.target_render import render_target
from handler.render.variables.variables import PLACEHOLDERS
from infra.renderers.build import binaries
from tests.fakes.source_tree import FakeTree
from tests.rooms.render.helm_releases import CALLED, CHART, ECHO, HOOK, Elsewhere

CLUSTER = (SubstituteFrom("ConfigMap", "vars"), SubstituteFrom("Secret", "db"))
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata: {}\n"
GENERATOR = "configMapGenerator: [{name: made, literals: ['v=${n}x']}]\n"
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY, str(binaries()))


def rendered(sandbox: Sandbox, text: str, values: Mapping[str, str] | None = None, **about: Any) -> Rendered:
    """Render one file. `cluster`: kind -> its variables; `strategy`, `sources`: the settings'."""
    request, outside = asked(values, **about)
    return render_target(RENDERERS["file"], FakeTree({"deploy/a.yaml": text}), replace(request, outside=outside), sandbox)


def asked(
    values: Mapping[str, str] | None,
    strategy: Any = "Strict",
    sources: Any = CLUSTER,
    placeholders: int = 0,
    keys_known: bool = False,
    **cluster: Any,
) -> tuple[RenderRequest, Elsewhere]:
    names = {"ConfigMap": "vars", "Secret": "db"}
    objects = {(kind, names[kind]): {key: value.encode() for key, value in found.items()} for kind, found in cluster.items()}
    outside = Elsewhere(objects={("ConfigMap", "vars"): {}, ("Secret", "db"): {}, **objects})
    settings = PostBuild(Json(json.dumps(values or {})), tuple(sources), strategy)
    request = RenderRequest("deploy", called=CALLED, post_build=settings, placeholders=placeholders, keys_known=keys_known)
    return request, outside


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


def test_no_mistake_tells_which_of_many_guesses_is_what_a_secret_holds(sandbox: Sandbox) -> None:
    big, guesses = "x" * (4 << 20), "0123456789abcdef"
    tried = "\n---\n".join(CONFIG.replace("web", f"guess-{each}").format("{e: '${PW//hunt" + each + "/${BIG}}'}") for each in guesses)
    cut = CONFIG.format("{e: '${PW:0:5}'}")
    said = {
        tuple(refused(sandbox, text, {"BIG": big}, Secret={"PW": value}))
        for text, value in ((tried, "hunta"), (tried, "huntb"), (cut, "hunt\u00e9"), (CONFIG.format("{e: '${PW}'}"), "7"))
    }
    (told,) = said
    (line,) = told
    assert line.startswith("deploy: fails with the values of Secret db, and not without them: what is said of it isn't shown; who may")
    [alike] = refused(sandbox, tried + "\n---\n" + CONFIG.format("{a: '${nobody}'}"), {"BIG": big}, Secret={"PW": "hunta"})
    assert "names the variable nobody" in alike


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


def hidden(found: Rendered) -> list[tuple[str, ...]]:
    """Return what is hidden of each object."""
    return [each.hidden for each in found.manifests]


def test_what_came_from_a_secret_is_hidden_by_the_field_that_it_stands_in(sandbox: Sandbox) -> None:
    text = CONFIG.format("{a: 'x${p}', b: '${p:0:6}', c: '${t}x', d: '${m}', e: '${n}'}")
    found = rendered(
        sandbox, text, {"n": "git"}, ConfigMap={"m": "map-value"}, Secret={"p": "hunter2hunter2", "t": "true", "n": "unused-secret"}
    )
    assert hidden(found) == [("/data/a", "/data/b", "/data/c")]
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
    found = rendered(sandbox, text, {"g": "git"}, placeholders=1)
    assert found.manifests[0].body()["spec"] == {"replicas": 3, "x": "placeholder", "v": "v-placeholder", "z": "git"}
    assert hidden(found) == [("/spec/v", "/spec/x")]
    assert [path for path, _ in found.reads.paths] == ["deploy"]


@pytest.mark.parametrize("value", ["hunter2-canary", "", "{}", "a: null"])
@pytest.mark.parametrize(("number", "word"), [*enumerate(PLACEHOLDERS)][1:])
@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
def test_a_placeholder_stands_where_a_variable_exists_and_a_default_where_it_does_not_whatever_it_holds(
    sandbox: Sandbox, kind: str, number: int, word: str, value: str
) -> None:
    text = CONFIG.format("{a: '${p:-d}', b: '${p:=d}', c: '${p=d}', d: '${q:-d}', e: '${q:=${p}}', f: '${p}', g: '${v:-d}', h: 'n=${#p}'}")
    found = rendered(sandbox, text, {"v": "git"}, placeholders=number, keys_known=True, **{kind: {"p": value, "no name": "x"}})
    assert data(found) == {"a": word, "b": word, "c": word, "d": "d", "e": word, "f": word, "g": "git", "h": f"n={len(word)}"}
    assert hidden(found) == [tuple(f"/data/{key}" for key in "abcefh") if kind == "Secret" else ()]


def test_a_name_that_no_variable_has_is_refused_with_placeholders_as_in_a_run(sandbox: Sandbox) -> None:
    [said] = refused(sandbox, CONFIG.format("{a: '${q}'}"), placeholders=1, keys_known=True, Secret={"p": "x"})
    assert "names the variable q, which isn't known" in said
    found = rendered(sandbox, CONFIG.format("{a: 'x${q}'}"), strategy="Always", placeholders=1, keys_known=True)
    assert data(found) == {"a": "x"}
    found = rendered(sandbox, CONFIG.format("{a: 'x${q}'}"), strategy="WithVariables", placeholders=1, keys_known=True)
    assert data(found) == {"a": "x${q}"}


def test_the_sets_of_placeholders_share_no_letter() -> None:
    assert not set(PLACEHOLDERS[1].upper()) & set(PLACEHOLDERS[2].upper())


def test_without_a_variable_nothing_is_asked(sandbox: Sandbox) -> None:
    found = rendered(sandbox, CONFIG.format("{a: '$x'}"), sources=(SubstituteFrom("Secret", "none"),))
    assert [path for path, _ in found.reads.paths] == ["deploy"]


# --- other renderers, and again
def test_what_kustomize_prints_is_substituted_and_a_rollout_may_call_it_by_either_name(sandbox: Sandbox, tools: None) -> None:
    request, outside = asked({"env": "prod", "n": "2"})
    tree = FakeTree(
        {
            "deploy/kustomization.yaml": "namePrefix: ${env}-\nresources: [a.yaml]\n" + GENERATOR,
            "deploy/a.yaml": DEPLOYMENT + "spec: {replicas: '${n}', selector: {}, template: {}}\n",
        }
    )
    found = render_target(RENDERERS["kustomize"], tree, replace(request, outside=outside), sandbox)
    bodies = {str(each.identity): each.body() for each in found.manifests}
    assert bodies["Deployment/prod-web"]["spec"]["replicas"] == 2
    [made] = [body["data"] for name, body in bodies.items() if name.startswith("ConfigMap/prod-made-")]
    assert made == {"v": "2x"}
    assert found.keys["Deployment/prod-web"] == found.keys["Deployment/${env}-web"]
    assert found.keys["ConfigMap/${env}-made"][0].name.startswith("prod-made-")


def test_a_charts_hooks_that_rest_are_named_as_they_were(sandbox: Sandbox, tools: None) -> None:
    request, outside = asked({"env": "prod"})
    hook = HOOK.format("${env}-setup", "pre-install")
    tree = FakeTree({"deploy/Chart.yaml": CHART, "deploy/templates/a.yaml": hook, "deploy/templates/b.yaml": ECHO})
    found = render_target(RENDERERS["helm"], tree, replace(request, outside=outside, installed=UPGRADED), sandbox)
    assert [str(each.identity) for each in found.rests] == ["Job/prod-setup"]


def test_what_was_rendered_before_is_substituted_again(sandbox: Sandbox) -> None:
    request, outside = asked({"a": "1x"})
    tree = FakeTree({"deploy/a.yaml": CONFIG.format("{a: '${a}'}")})
    first = render_target(RENDERERS["file"], tree, replace(request, outside=outside), sandbox)
    request, outside = asked({"a": "2x"})
    again = render_target(RENDERERS["file"], tree, replace(request, outside=outside, known=first.files), sandbox)
    assert (data(first), data(again)) == ({"a": "1x"}, {"a": "2x"})
    assert [each.raw for found in again.files.values() for each in found] == [each.raw for found in first.files.values() for each in found]


def test_what_a_chart_makes_anew_is_found_under_its_new_name(sandbox: Sandbox, tools: None) -> None:
    request, outside = asked({"env": "prod"})
    made = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${env}-made'}\ndata: {k: {{ randAlphaNum 20 | quote }}}\n"
    tree = FakeTree({"deploy/Chart.yaml": CHART, "deploy/templates/a.yaml": made})
    found = render_target(RENDERERS["helm"], tree, replace(request, outside=outside), sandbox)
    assert {str(identity): each.paths for identity, each in found.unstable.items()} == {"ConfigMap/prod-made": ("/data/k",)}


# --- hostile
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("${a:-" * 5_000 + "}" * 5_000, "has more than 20 expressions in each other"),
        ("${a" * 2_000, "can't be read"),
        ("${a//x/${a}}", "makes or needs a text of 1,000,001,000,000 characters"),
        ("${a" + "#" * 100_000 + "}", "pattern of 99,998 characters"),
        ("${a:-" + "${b:-" * 15 + "}" * 15, "isn't closed"),
        ("${q}${a}", "begins with a quote"),
    ],
)
def test_a_text_that_would_grow_or_never_end_is_refused_with_its_place(sandbox: Sandbox, text: str, says: str) -> None:
    found = refused(sandbox, json.dumps(document(a=text)), {"a": "x" * 1_000_000, "q": '"'})
    assert found[0].startswith("deploy/a.yaml:1: ConfigMap/web: data.a: ")
    assert says in found[0]
    assert "xxx" not in found[0]


def document(**fields: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": fields}


@pytest.mark.parametrize(
    ("kind", "name", "value", "says"),
    [
        ("Secret", "app.conf", b"x", "Secret db: has the key app.conf, and postBuild takes each as the name of a variable"),
        ("ConfigMap", "a", b"x" * 10_000_000, "ConfigMap vars: holds more in a than the 1,048,576 bytes that a variable has"),
        ("Secret", "a", b"\xff", "Secret db: isn't UTF-8 in a"),
    ],
)
def test_an_object_that_cant_hold_variables_is_named(sandbox: Sandbox, kind: str, name: str, value: bytes, says: str) -> None:
    request, outside = asked({})
    outside = replace(outside, objects={**outside.objects, (kind, "vars" if kind == "ConfigMap" else "db"): {name: value}})
    with pytest.raises(ValuesInvalid) as error:
        render_target(
            RENDERERS["file"], FakeTree({"deploy/a.yaml": CONFIG.format("{a: '${a}'}")}), replace(request, outside=outside), sandbox
        )
    assert says in str(error.value)


VALUES = ["a: b", "x\ny: z", "{}", "[", "*x", "&a", "- x", "k: |", "#", "\0", "]}", '{"a": 1}', "a\u2028b: c"]
REFUSED = ["'a': b", '"a', "'"]


@pytest.mark.parametrize("value", REFUSED)
def test_a_value_that_begins_with_a_quote_is_read_as_a_text_in_quotes(sandbox: Sandbox, value: str) -> None:
    assert "begins with a quote" in refused(sandbox, CONFIG.format("{a: '${v}'}"), ConfigMap={"v": value})[0]


@pytest.mark.parametrize("value", VALUES)
def test_no_value_leaves_its_field(sandbox: Sandbox, value: str) -> None:
    body = {**document(), "kind": "Secret", "stringData": {"s": "${v}"}}
    texts = {"a": "${v}", "b": "x: ${v}", "c": "l\n${v}\n"}
    found = rendered(sandbox, json.dumps(document(**texts)), ConfigMap={"v": value})
    flat = value.replace("\n", "")
    assert data(found) == {"a": flat, "b": f"x: {flat}", "c": f"l\n{flat}\n"}
    secret = rendered(sandbox, json.dumps(body), ConfigMap={"v": value})
    assert base64.b64decode(data(secret)["s"]).decode() == flat


def test_a_secret_is_no_key_and_the_clusters_word_makes_no_field_of_rights(sandbox: Sandbox) -> None:
    assert "is a key with the variable v of Secret db" in refused(sandbox, CONFIG.format("{'${v}': x}"), Secret={"v": "hunter2"})[0]
    text = DEPLOYMENT + "spec: {template: {spec: {'${k}': admin}}}\n"
    [said] = refused(sandbox, text, ConfigMap={"k": "serviceAccountName"})
    assert "spec.template.spec.serviceAccountName: would be what ConfigMap vars says in the variable k" in said


def test_texts_of_a_secret_are_hidden_where_they_are_applied(sandbox: Sandbox) -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {token: 'x${p}'}\n"
    assert hidden(rendered(sandbox, text, Secret={"p": "hunter2"})) == [("/data/token",)]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("items", "apiVersion: x.io/v1\nkind: ThingList\nmetadata: {name: a}\n'${k}': [{metadata: {name: b}}]\n"),
        ("spec", DEPLOYMENT + "'${k}': {template: {spec: {serviceAccountName: admin}}}\n"),
        ("template", DEPLOYMENT + "spec: {'${k}': {spec: {containers: [], serviceAccountName: admin}}}\n"),
    ],
)
def test_a_key_of_the_cluster_decides_neither_what_an_object_is_nor_whose_rights_it_has(sandbox: Sandbox, key: str, text: str) -> None:
    [said] = refused(sandbox, text, ConfigMap={"k": key})
    assert f"{key}: would be what ConfigMap vars says in the variable k: the cluster can't decide that" in said
    assert rendered(sandbox, text, {"k": key}).manifests
