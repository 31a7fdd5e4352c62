"""Both engines make the same of the same programs, whatever of the language they use; imports, configuration, variables, reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handler.config.renderer_settings import RendererSettings
from handler.model.render import RenderRequest
from handler.model.tree import ReadSet
from handler.render import RENDERERS, Sandbox
from tests.fakes.source_tree import FakeTree
from tests.rooms.render.jsonnet_programs import PROGRAM, as_json, both, config, data_of, rendered
from tests.rooms.render.kustomize_trees import public_tools

MAIN = "deploy/main.jsonnet"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with public_tools(), Sandbox() as sandbox:
        yield sandbox


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
