"""Both engines make the same of the same programs, whatever of the language they use; imports, configuration, variables, reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handler.config.renderer_settings import RendererSettings
from handler.model.render import RenderRequest
from handler.model.tree import ReadSet
from handler.render import RENDERERS, Sandbox
from tests.fakes.source_tree import FakeTree
from tests.rooms.render.jsonnet_differences import compare_engines
from tests.rooms.render.jsonnet_expressions import expressions
from tests.rooms.render.jsonnet_programs import ENGINES, PROGRAM, as_json, both, config, data_of, rendered
from tests.rooms.render.kustomize_trees import public_tools

MAIN = "deploy/main.jsonnet"
EXPRESSIONS = {
    "numbers": "{a: 0.1 + 0.2, b: 1e300, c: 12345678901234567890, d: 3.0, e: -0, f: 7 % 3, g: 1 << 40, h: 1.5e-7, i: 9007199254740993}",
    "strings": "{a: 'é\\u0041\\n', b: @'c:\\d', c: |||\n  two\n   lines\n||| + 'x', d: '%05.2f|%s|%d' % [1.5, {a: 1}, 3]}",
    "text": "{a: 'abc'[1:], b: std.split('a,b', ','), c: std.strReplace('aXa', 'X', '-'), e: std.format('%x', 255)}",
    "comprehensions": "{['k' + x]: [y for y in std.range(0, x) if y % 2 == 0] for x in [1, 2, 3]}",
    "objects": "local a = {x: 1, y:: 2, z+: {q: 1}}; {r: a + {w: super.x + 1}, f: std.objectFields(a), h: std.objectHasAll(a, 'y')}",
    "functions": "local f(x, y=x * 2) = x + y; {a: f(1), b: f(y=1, x=3), c: std.foldl(function(s, x) s + x, [1, 2], 0)}",
    "inheritance": "local base = {name: 'a', full: self.name + self.suffix, suffix: '-x'}; {o: base {name: 'b', suffix: '-y'}}",
    "asserts": "{a: {assert self.x > 0 : 'small', x: 1}}",
    "hashes": "{a: std.md5('a'), b: std.base64('e'), c: std.base64Decode('aGk=')}",
    "manifests": "{a: std.manifestYamlDoc({a: [1, {b: null}], c: 'x: y'}), b: std.manifestJsonEx({a: 1}, '  ')}",
    "ini": "{a: std.manifestIni({main: {a: '1'}, sections: {s: {b: ['x', 'y']}}})}",
    "parsed": "{b: std.parseJson('{\"a\": [1, null]}')}",
    "sets": "{a: std.set([3, 1, 3]), b: std.setUnion([1], [2]), c: std.sort([2, 1]), d: std.uniq([1, 1])}",
    "patches": "{a: std.mergePatch({a: 1, b: 2}, {b: null}), c: std.get({x: 1}, 'y', 3)}",
    "unicode keys": "{'é': 1, a: 2, Z: 3, '🎈': 4, 'a b': 5}",
    "prune": "{a: std.prune({a: null, b: [], c: {d: {}}}), b: std.deepJoin(['a', ['b']]), c: std.equals({a: 1}, {a: 1.0})}",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with public_tools(), Sandbox() as sandbox:
        yield sandbox


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_both_engines_make_the_same_values(sandbox: Sandbox, name: str) -> None:
    files = {MAIN: f"{{ apiVersion: 'example.com/v1', kind: 'Made', metadata: {{ name: 'a' }}, spec: {EXPRESSIONS[name]} }}"}
    one, other = (rendered(sandbox, files, engine) for engine in ENGINES)
    assert one.manifests[0].body() == other.manifests[0].body()
    assert one.manifests == other.manifests
    assert one.manifests[0].body()["spec"]


IMPORTING = {
    MAIN: "[import 'own.libsonnet', import 'sub/deep.libsonnet', import 'shared.libsonnet', import 'example.com/v/v.libsonnet']",
    "deploy/own.libsonnet": config("own", "{ text: importstr 'text.txt', bytes: std.toString(importbin 'text.txt') }"),
    "deploy/text.txt": "hé\n",
    "deploy/sub/deep.libsonnet": "(import '../../base/base.libsonnet') { metadata+: { name: 'deep' } }",
    "base/base.libsonnet": config("base", "{ a: (import 'near.libsonnet') }"),
    "base/near.libsonnet": "'near'",
    "lib/shared.libsonnet": config("shared"),
    "deploy/vendor/example.com/v/v.libsonnet": config("below"),
    "vendor/example.com/v/v.libsonnet": config("root"),
    "lib/text.txt": "never read",
}


@both
def test_imports_are_looked_up_as_jsonnet_does(sandbox: Sandbox, engine: str) -> None:
    found = data_of(rendered(sandbox, IMPORTING, engine))
    assert found == {"own": {"text": "hé\n", "bytes": "[104, 195, 169, 10]"}, "deep": {"a": "near"}, "shared": {}, "below": {}}


@both
@pytest.mark.parametrize(
    ("jpath", "wanted"), [((), "vendor"), (("one",), "one"), (("one", "two"), "two"), (("two", "one"), "one"), (("./one/",), "one")]
)
def test_the_last_directory_of_imports_is_the_first(sandbox: Sandbox, engine: str, jpath: tuple[str, ...], wanted: str) -> None:
    files = {MAIN: "import 'a.libsonnet'", **{f"{each}/a.libsonnet": config(each) for each in ("vendor", "one", "two")}}
    assert list(data_of(rendered(sandbox, files, engine, options={"jpath": jpath}))) == [wanted]
    files["deploy/lib/a.libsonnet"] = config("lib")
    assert list(data_of(rendered(sandbox, files, engine, options={"jpath": jpath}))) == ["lib" if wanted == "vendor" else wanted]


@both
def test_links_within_the_repository_are_followed(sandbox: Sandbox, engine: str) -> None:
    files = {MAIN: "import 'lib.libsonnet'", "shared/k/a.libsonnet": "import 'b.libsonnet'", "shared/k/b.libsonnet": config("linked")}
    links = {"deploy/lib.libsonnet": "../vendor/k/a.libsonnet", "vendor/k": "../shared/k", "deploy/b.libsonnet": "../shared/k/b.libsonnet"}
    found = rendered(sandbox, files, engine, links=links)
    assert list(data_of(found)) == ["linked"]
    assert (
        found.reads.on(FakeTree({**files, "shared/k/b.libsonnet": config("other")}, links), dict(found.reads.paths).__getitem__)
        != found.reads
    )


@both
def test_the_configuration_is_imported_and_a_variable(sandbox: Sandbox, engine: str) -> None:
    text = "local c = import 'generic-operator/config'; assert std.extVar('config') == c; " + config("a").replace("'a'", "c.name")
    assert list(data_of(rendered(sandbox, {MAIN: text}, engine, options={"config": as_json('{"name":"written"}')}))) == ["written"]
    files = {MAIN: text, "config/prod.yaml": "# of prod\nname: filed\n"}
    found = rendered(sandbox, files, engine, options={"config_file": "../config/prod.yaml"})
    assert list(data_of(found)) == ["filed"]
    assert dict(found.reads.paths)["config/prod.yaml"]
    handed = rendered(sandbox, files, engine, options={"config_file": "../config/prod.yaml"}, more={"configuration": {"name": "handed"}})
    assert list(data_of(handed)) == ["handed"]
    none = "local c = import 'generic-operator/config'; " + config("a", "{ n: std.toString(c) }")
    assert data_of(rendered(sandbox, {MAIN: none}, engine)) == {"a": {"n": "{ }"}}


@both
def test_variables_and_arguments_are_strings_or_code(sandbox: Sandbox, engine: str) -> None:
    text = "function(name, list, more='d') " + config(
        "a", "{v: std.extVar('v'), n: std.toString(std.extVar('n')), m: more + list[0], c: std.extVar('config')}"
    )
    options = {
        "ext_vars": as_json('{"v":"1 + 1 \\"quoted\\"","n":{"a":[1,null]},"config":"mine"}'),
        "top_level_arguments": as_json('{"name":"a","list":["x"]}'),
    }
    wanted = {"v": '1 + 1 "quoted"', "n": '{"a": [1, null]}', "m": "dx", "c": "mine"}
    assert data_of(rendered(sandbox, {MAIN: text}, engine, options=options)) == {"a": wanted}


@both
def test_every_place_that_was_looked_into_is_read(sandbox: Sandbox, engine: str) -> None:
    files = {MAIN: "(import 'a.libsonnet') { unused:: import 'nowhere.libsonnet' }", "vendor/a.libsonnet": config("a"), "other/x": "a"}
    found = rendered(sandbox, files, engine)

    def reads(more: dict[str, str]) -> ReadSet:
        return found.reads.on(FakeTree({**files, **more}), dict(found.reads.paths).__getitem__)

    assert reads({"other/x": "b"}) == found.reads
    for path in ("deploy/a.libsonnet", "lib/a.libsonnet", "vendor/a.libsonnet", "vendor/nowhere.libsonnet", "lib/nowhere.libsonnet"):
        assert reads({path: config("b")}) != found.reads, path


def test_the_files_of_a_round_are_fetched_at_once(sandbox: Sandbox) -> None:
    files = {MAIN: "[" + ",".join(f"import '{n}.libsonnet'" for n in range(50)) + "]", "lib/x.libsonnet": "{}"}
    files |= {f"lib/{n}.libsonnet": config(f"c{n}", "import 'x.libsonnet'") for n in range(50)}
    tree = FakeTree(files)
    found = RENDERERS["jsonnet"].render(tree, RenderRequest("deploy", options=RendererSettings("jsonnet")), sandbox)
    assert (len(found.manifests), tree.fetched) == (50, 3)


@both
def test_an_entrypoint_of_another_name_and_directory(sandbox: Sandbox, engine: str) -> None:
    files = {"deploy/env/prod.jsonnet": "import 'near.libsonnet'", "deploy/env/near.libsonnet": config("prod")}
    assert list(data_of(rendered(sandbox, files, engine, options={"entrypoint": "env/prod.jsonnet"}))) == ["prod"]


KUBE_LIBRARY = """
{
  values:: { common: { namespace: 'default', labels: { 'app.kubernetes.io/part-of': 'kube' } } },
  grafana: {
    name:: 'grafana',
    service: OBJECT { metadata+: { namespace: $.values.common.namespace, labels+: $.values.common.labels } },
    dashboards: null,
    mixin:: error 'never made',
  },
}
"""
KUBE = """
local kube = (import 'kube/main.libsonnet') + { values+:: { common+: { namespace: 'monitoring' } } };
{ 'setup/0namespace': OBJECT } + { ['grafana-' + name]: kube.grafana[name] for name in std.objectFields(kube.grafana) }
"""


@both
def test_programs_as_kube_prometheus_has_them(sandbox: Sandbox, engine: str) -> None:
    """Hidden fields, mixins that extend each other, names computed for a flat output, folders in keys."""
    files = {
        MAIN: KUBE.replace("OBJECT", config("monitoring")),
        "vendor/kube/main.libsonnet": KUBE_LIBRARY.replace("OBJECT", config("web")),
    }
    found = rendered(sandbox, files, engine)
    assert list(found.keys) == ["grafana-service", "setup/0namespace"]
    (service,) = [each for each in found.manifests if each.identity.name == "web"]
    assert (service.identity.namespace, service.place) == ("monitoring", f'{MAIN}:$["grafana-service"]')


FORMATS = {
    "'%.1fGi' % 1.95": "2.0Gi",
    "'%.0f' % 1.5": "2",
    "'%.2f' % -0.01": "-0.01",
    "'%d' % -3.99": "-3",
    "'%.1f' % 99.995": "100.0",
    "std.toString(std.parseYaml('base: &b {cpu: 1}\\nweb: {<<: *b, memory: 2}').web)": '{"cpu": 1, "memory": 2}',
    "'%e' % -7": "-7.000000e+00",
    "std.thisFile": MAIN,
}
"""What jrsonnet made otherwise, or died of."""


@both
def test_numbers_in_texts_are_the_references(sandbox: Sandbox, engine: str) -> None:
    made = {text: value for text, value in FORMATS.items() if engine == PROGRAM or "parseYaml" not in text}
    files = {MAIN: config("a", f"{{ {', '.join(f't{number}: {text}' for number, text in enumerate(made))} }}")}
    assert list(data_of(rendered(sandbox, files, engine))["a"].values()) == list(made.values())


def test_the_engines_make_the_same_of_generated_expressions_but_for_what_is_listed(sandbox: Sandbox) -> None:
    """A smoke of tests/nightly/test_jsonnet.py."""
    compare_engines(sandbox, expressions(374, 57))
