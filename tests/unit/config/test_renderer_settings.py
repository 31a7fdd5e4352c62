"""Options of renderers: each belongs to one of them, values keep their types, and what isn't written changes no digest."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from handler.config import git_settings as g
from handler.config import settings as s
from handler.config.load import parse
from handler.config.renderer_settings import Chart, ChartSource, RendererSettings, ValuesFrom
from handler.config.secrets import resolve_all
from handler.config.settings_digest import settings_digest
from handler.model.errors import ConfigInvalid
from tests.unit.config.config_mistakes import HEAD
from tests.unit.rows import each_row

RENDERERS = ("auto", "file", "kustomize", "helm", "jsonnet", "nix", "own")
START = HEAD + "targets:\n- name: shop\n  repository: {url: 'https://git.example.com/shop.git'}\n  namespaces: [shop]\n"


def target(text: str) -> s.Target:
    return parse(START + text, renderers=RENDERERS).targets[0]


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigInvalid) as caught:
        target(text)
    return str(caught.value).splitlines()


def test_a_hostgroup_is_named_by_expressions_of_any_length() -> None:
    written = target(
        '  renderer:\n    type: nix\n    modules: |\n      (import ./group.nix {\n        stage = "prod";\n      }).network.modules\n'
        "    packages: (import ./group.nix).network.pkgs\n    nixPath: {nixpkgs: /opt/nixpkgs}\n    sources: [../common]\n"
    ).renderer
    assert written.modules == '(import ./group.nix {\n  stage = "prod";\n}).network.modules\n'
    assert (written.packages, written.nix_path, written.sources) == (
        "(import ./group.nix).network.pkgs",
        '{"nixpkgs":"/opt/nixpkgs"}',
        ("../common",),
    )
    assert written.programs == ("nix",)


def test_without_a_word_the_tree_decides_and_globs_mean_files() -> None:
    assert target("").renderer.chosen == "auto"
    assert target("  renderer: {include: ['*.yaml']}\n").renderer.chosen == "file"
    assert target("  renderer: {type: helm}\n").renderer.chosen == "helm"


@each_row(
    ("options", "expected"),
    [
        ("type: helm, include: ['*.yaml']", "renderer.include: is an option of file, and type is helm"),
        ("type: file, generate: true", "renderer.generate: is an option of kustomize, and type is file; write `type: kustomize` beside it"),
        ("valuesFiles: [prod.yaml]", "renderer.valuesFiles: is an option of helm, and type is auto; write `type: helm` beside it"),
        ("type: kustomize, values: {a: b}", "renderer.values: is an option of helm, and type is kustomize; write `type: helm` beside it"),
        ("extVars: {a: b}", "renderer.extVars: is an option of jsonnet, and type is auto; write `type: jsonnet` beside it"),
        ("type: jsonnet, config: {a: b}, configFile: c.yaml", "expected at most one of config, configFile, found config and configFile"),
        ("type: jsonnet, engine: rjsonnet", "renderer.engine: unknown key; leave it out: Google's jsonnet is the one engine"),
        ("type: jsonnet, entrypoint: /main.jsonnet", "which is absolute"),
        ("type: jsonnet, jpath: ['https://a.example/b']", "which is a URL; commit what it names"),
        ("type: jsonnet, extVars: [a]", "renderer.extVars: expected a mapping, found a list"),
        ("type: helm, chart: {version: 1.0.0}", "renderer.chart: expected oci or repository, found none"),
        (
            "type: helm, chart: {oci: 'oci://a.example/b', repository: 'https://a.example', name: b, version: 1.0.0}",
            "renderer.chart: expected oci or repository, found both",
        ),
        (
            "type: helm, chart: {repository: 'https://a.example', version: 1.0.0}",
            "renderer.chart.name: a repository and a name belong together; write `repository` and `name`, or `oci` alone",
        ),
        ("type: helm, valuesFiles: ['https://a.example/b.yaml']", "which is a URL; commit the file, or write what it holds under `values`"),
        ("type: helm, valuesFiles: [/etc/passwd]", "which is absolute"),
        ("type: helm, values: [a]", "renderer.values: expected a mapping, found a list"),
        ("type: helm, values: {a: {b: 1, b: 2}}", "renderer.values.a.b: written twice"),
        ("type: helm, values: {a: on}", "renderer.values.a: expected text in quotes, a number, true or false, found true or false"),
        ("type: helm, values: {a: 2026-01-01}", "renderer.values.a: expected text in quotes, a number, true or false, found a date"),
        (
            "type: helm, valuesFrom: [{kind: Secret, name: db}]",
            "renderer.valuesFrom is read in the target's namespace, and none is written",
        ),
        ("modules: '[ ./a.nix ]'", "renderer.modules: is an option of nix, and type is auto; write `type: nix` beside it"),
        ("type: nix, modules: 'a: {home}'", "which holds {home}; write { home }"),
        ("type: nix, packages: [a]", "renderer.packages: expected a Nix expression of at most 60,000 characters, found a list"),
        ("type: nix, nixPath: {nixpkgs: nixpkgs}", "renderer.nixPath: nixpkgs is no absolute path; write {nixpkgs: /opt/nixpkgs}"),
        ("type: nix, nixPath: {nixpkgs: 1}", "renderer.nixPath: nixpkgs is no absolute path"),
        ("type: nix, nixPath: {'a=b': /opt}", "renderer.nixPath: the name a=b can't be written in <…>"),
        ("type: nix, nixPath: {'anneal:tree': /opt}", "renderer.nixPath: the name anneal:tree can't be written in <…>"),
        ("type: nix, sources: [/etc]", "which is absolute"),
        ("type: helm, valuesFrom: [{kind: Service, name: db}]", "valuesFrom[db].kind: expected one of ConfigMap, Secret"),
    ],
)
def test_an_option_that_would_do_nothing_or_cant_be_read_is_named(options: str, expected: str) -> None:
    found = mistakes(f"  renderer: {{{options}}}\n")
    assert any(expected in line for line in found), found


def test_values_keep_the_types_that_yaml_gives_them() -> None:
    values = "{a: 1, b: 1.5, c: true, d: null, e: 'on', g: [x, {y: []}], h: '1'}"
    text = f"  renderer:\n    type: helm\n    values: {values}\n    set: {{'image.tag': '1.10', n: 3}}\n"
    found = target(text).renderer
    assert json.loads(found.values) == {"a": 1, "b": 1.5, "c": True, "d": None, "e": "on", "g": ["x", {"y": []}], "h": "1"}
    assert json.loads(found.set) == {"image.tag": "1.10", "n": 3}


def test_charts_and_values_from_are_read() -> None:
    found = target(
        "  namespace: shop\n"
        "  charts: [{url: 'oci://registry.example.com/charts', auth: {username: me, password: {env: TOKEN}}}]\n"
        "  renderer:\n    type: helm\n    chart: {oci: 'oci://registry.example.com/charts/web', version: ^1.2}\n"
        "    valuesFrom: [{kind: Secret, name: db, key: password, targetPath: db.password, optional: true}]\n"
    )
    assert found.renderer.chart == Chart("^1.2", "oci://registry.example.com/charts/web")
    assert found.renderer.values_from == (ValuesFrom("Secret", "db", "password", "db.password", True),)
    assert found.charts == (ChartSource("oci://registry.example.com/charts", g.BasicAuth("me", g.SecretRef(env="TOKEN"))),)


def test_a_chart_sources_password_is_resolved() -> None:
    source = ChartSource("https://charts.example.com", g.BasicAuth("me", g.SecretRef(env="TOKEN")))
    settings = s.Settings((s.Target("shop", g.Repository("https://git.example.com/a.git"), ("shop",), charts=(source,)),))
    secrets = resolve_all(settings, {"TOKEN": "canary-value"})
    assert secrets.read(g.SecretRef(env="TOKEN")).reveal() == "canary-value"


def test_what_isnt_written_keeps_the_digest_and_every_option_changes_it() -> None:
    plain = s.Target("shop", g.Repository("https://git.example.com/a.git"), ("shop",))
    written = (
        RendererSettings("file"),
        RendererSettings("kustomize"),
        RendererSettings("kustomize", generate=True),
        RendererSettings("helm"),
        RendererSettings("helm", chart=Chart("1.0.0", "oci://a.example/b")),
        RendererSettings(exclude=("a",)),
    )
    digests = [settings_digest(plain), *(settings_digest(replace(plain, renderer=renderer)) for renderer in written)]
    assert len(set(digests)) == len(digests)
    assert digests[0] == "067ad1dda7eb3abf2bfc9339a69047d0ff62bba0a5ba82fbbbde79bb25360166"  # as before there were renderers
