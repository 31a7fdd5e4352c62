"""The published schema is current and agrees with the loader."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from handler.config import schema as module
from handler.config.load import parse
from handler.config.schema import schema
from handler.config.settings import IgnoreRule, Settings, Target
from handler.config.settings_shape import slots, written
from handler.model.errors import ConfigInvalid
from handler.model.names import applyset_id
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

SAMPLES = Path(__file__).with_name("samples")
VALID = Draft202012Validator(schema())
SET = applyset_id("anneal-bank", "bank")
HEAD = "apiVersion: anneal.dev/v1alpha1\nkind: Config\n"
TARGET = HEAD + "targets:\n  - name: shop\n    repository: {url: 'https://git.example.com/shop.git'}\n    namespaces: [shop]\n"
PAGE = "url: 'https://a.example.com', key: {env: K}, roles: [{role: viewer, groups: [a]}]"
TOKEN = "tokens: [{name: ada, secret: {env: A}}]"


def test_schema_json_is_what_the_code_writes() -> None:
    assert module.FILE.read_text(encoding="utf-8") == module.text(), "run `python -m handler.config.schema`"


def test_the_schema_is_of_2020_12() -> None:
    Draft202012Validator.check_schema(schema())


def classes(cls: type) -> set[type]:
    below = {hint for slot in slots(cls) for hint in (slot.item or slot.type,) if is_dataclass(hint) and isinstance(hint, type)}
    return {cls}.union(*(classes(each) for each in below))


def test_every_field_stands_in_it_with_its_description_and_default() -> None:
    definitions = schema()["$defs"] | {"Settings": schema()}
    for cls in classes(Settings):
        properties = definitions[cls.__name__]["properties"]
        for slot in slots(cls):
            assert properties[slot.key]["description"] == slot.doc != ""
            if not slot.required and (cls, slot.name) != (IgnoreRule, "paths"):  # empty by default, but never accepted empty
                assert properties[slot.key]["default"] == written(slot.default, slot.kind)
        assert len(slots(cls)) == len(fields(cls))


def test_every_default_is_valid() -> None:
    whole = schema()
    for name, definition in whole["$defs"].items():
        for key, value in definition["properties"].items():
            if "default" in value:
                errors = list(Draft202012Validator(value | {"$defs": whole["$defs"]}).iter_errors(value["default"]))
                assert not errors, (name, key)


@each_row("name", ["issue.yaml", "full.yaml"])
def test_the_samples_are_valid(name: str) -> None:
    assert [error.message for error in VALID.iter_errors(yaml.safe_load((SAMPLES / name).read_text()))] == []


def test_what_is_written_reads_back_as_the_same_value() -> None:
    settings = parse((SAMPLES / "full.yaml").read_text(), renderers=("own", "file"))
    document: dict[str, Any] = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", **written(settings)}
    assert parse(json.dumps(document), renderers=("own", "file")) == settings
    VALID.validate(document)


@each_row(
    "line",
    [
        "interval: 5 min",
        "interval: 0",
        "intervall: 5m",
        "installation: Blue",
        "installation: 12",
        "webhooks: {github: {secrets: [{}]}}",
        "webhooks: {github: {secrets: [{env: A, file: b}]}}",
        "webhooks: {github: {secrets: [text]}}",
        "replay: {tokens: [{name: ci}]}",
        "replay: {tokens: [{name: ci, secret: {env: A}, may: []}]}",
        "defaults: {name: x}",
        "defaults: {drfit: report}",
        "defaults: {repository: {auth: {basic: {username: 'a:b'}}}}",
        "    path: ../x",
        "    path: /x",
        "    revision: {}",
        "    revision: {branch: a, tag: b}",
        "    revision: {branch: a..b}",
        "    revision: {commit: abc}",
        "    cluster: {inCluster: true, context: a}",
        "    cluster: {server: prod}",
        "    clusterScoped: [namespaces]",
        "    prune: {kinds: [Deployment]}",
        "    prune: {holdAbove: {fraction: 2}}",
        "    prune: {enabled: 'true'}",
        "    impersonate: {serviceAccount: x}",
        "    ignore: [{}]",
        "    adopt: all",
        "    adopt: flux",
        "    adopt: [all]",
        "    adopt: []",
        "    adopt: [applyset-0a]",
        f"    adopt: [{SET}x]",
        "    revision: {semver: latest}",
        "    revision: {semver: v1.2}",
        "    revision: {semver: ^1, tag: a}",
        "    verify: {}",
        "    verify: {ssh: []}",
        "    verify: {ssh: [text]}",
        "    verify: {pgp: [text]}",
        "    suspend: 'true'",
        "webhooks: {maxBody: 1}",
        "webhooks: {generic: {secrets: [{}]}}",
        "metrics: {bind: '9464'}",
        "metrics: {bind: 'h:70000'}",
        "replay: {tokens: [{name: ci, secret: {env: A}, may: [write]}]}",
        f"page: {{{PAGE}}}",
        f"page: {{{PAGE}, tokens: []}}",
        f"page: {{{PAGE}, proxy: {{}}}}",
        f"page: {{{PAGE}, proxy: {{secret: {{env: P}}, userHeader: X_Email}}}}",
        f"page: {{{PAGE}, oidc: {{clientId: a}}}}",
        f"page: {{{PAGE}, oidc: {{clientId: a, issuer: 'http://login.example.com'}}}}",
        f"page: {{{PAGE}, {TOKEN}}}".replace("https://a.example.com", "http://a.example.com"),
        f"page: {{{PAGE}, {TOKEN}}}".replace("https://a.example.com", "https://a.example.com/page"),
        f"page: {{{PAGE}, {TOKEN}}}".replace("https://a.example.com", "https://user@a.example.com"),
        f"page: {{{PAGE}, {TOKEN}}}".replace("groups: [a]", "targets: ['*']"),
        f"page: {{{PAGE}, {TOKEN}}}".replace("groups: [a]", "groups: ['a,b']"),
        f"page: {{{PAGE}, {TOKEN}}}".replace("role: viewer", "role: admin"),
        f"page: {{url: 'https://a.example.com', key: {{env: K}}, {TOKEN}}}",
        f"page: {{url: 'https://a.example.com', key: {{env: K}}, {TOKEN}, roles: []}}",
        f"page: {{key: {{env: K}}, {TOKEN}, roles: [{{role: viewer, users: [a]}}]}}",
    ],
)
def test_loader_and_schema_refuse_alike(line: str) -> None:
    with pytest.raises(ConfigInvalid):
        parse(TARGET + line)
    assert not VALID.is_valid(yaml.safe_load(TARGET + line))


SSH = "{privateKey: {file: k}, knownHosts: h}"
APP = "{appId: a, installationId: 1, privateKey: {file: k}}"
BASIC = "{username: a, password: {env: A}}"


@each_row(
    ("url", "auth", "accepted"),
    [
        ("https://h/x", f"{{basic: {BASIC}}}", True),
        ("https://h/x", f"{{githubApp: {APP}, basic: null}}", True),
        ("https://h/x", "{ssh: null}", True),
        ("ssh://git@h/x", f"{{ssh: {SSH}}}", True),
        ("ssh://git@h/x", f"{{ssh: {SSH}, basic: null}}", True),
        ("https://h/x", f"{{githubApp: {APP}, basic: {BASIC}}}", False),
        ("https://h/x", f"{{ssh: {SSH}}}", False),
        ("ssh://git@h/x", "{}", False),
        ("ssh://git@h/x", "{ssh: null}", False),
        ("ssh://git@h/x", f"{{ssh: {SSH}, githubApp: {APP}}}", False),
        ("ssh://git@h/x", f"{{githubApp: {APP}}}", False),
        ("ssh://git:password@h/x", f"{{ssh: {SSH}}}", False),
    ],
)
def test_loader_and_schema_judge_sign_in_alike(url: str, auth: str, accepted: bool) -> None:
    text = TARGET.replace("{url: 'https://git.example.com/shop.git'}", f"{{url: '{url}', auth: {auth}}}")
    if accepted:
        parse(text)
    else:
        with pytest.raises(ConfigInvalid):
            parse(text)
    assert VALID.is_valid(yaml.safe_load(text)) is accepted


@each_row(
    "text",
    [
        TARGET,
        TARGET + "    namespace: ''",
        TARGET + "    adopt: unowned",
        TARGET + "    adopt: [flux, cli-utils]",
        TARGET + f"    adopt: [flux, {SET}]",
        TARGET + "    cluster: {inCluster: true, server: ''}",
        TARGET + "    cluster: {inCluster: false, context: a}",
        TARGET + "    impersonate: null",
        TARGET.replace("[shop]", '"*"'),
        TARGET.replace("[shop]", '["*"]'),
        HEAD + "defaults: {namespaces: [a], repository: {url: 'https://h/x'}}\ntargets: [{name: a}]",
        HEAD + "targets: []",
        HEAD + f"targets: []\npage: {{{PAGE}, {TOKEN}}}",
        HEAD + f"targets: []\npage: {{{PAGE}, proxy: {{secret: {{env: P}}}}, oidc: null}}",
        HEAD + f"targets: []\npage: {{{PAGE}, {TOKEN}}}".replace("https://a.example.com", "http://127.0.0.1:8080"),
    ],
)
def test_loader_and_schema_accept_alike(text: str) -> None:
    parse(text)
    assert [error.message for error in VALID.iter_errors(yaml.safe_load(text))] == []


def test_the_schema_says_which_target_lacks_what_without_defaults() -> None:
    document = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "targets": [{"name": "a"}]}
    assert {error.message for error in VALID.iter_errors(document)} == {
        "'repository' is a required property",
        "'namespaces' is a required property",
    }
    assert len(slots(Target)) == len(schema()["$defs"]["TargetDefaults"]["properties"])


def inlined(value: Any) -> Any:
    """A part of the schema with what its references name in their place, and without what is required or holds between fields."""
    if isinstance(value, list):
        return [inlined(each) for each in value]
    if not isinstance(value, dict):
        return value
    found: Any = VALID.schema
    for key in value.get("$ref", "").split("/")[1:]:
        found = found[key]
    merged = (found if "$ref" in value else {}) | {key: each for key, each in value.items() if key != "$ref"}
    if "$ref" in merged:
        return inlined(merged)
    rules = {"required", *(key for rule in module._RULES.values() for key in rule)} if "properties" in merged else set()
    return {key: inlined(each) for key, each in merged.items() if key not in rules}


def test_defaults_differ_from_a_target_only_in_what_is_required() -> None:
    definitions = schema()["$defs"]
    assert inlined(definitions["TargetDefaults"]) == inlined(definitions["Target"])
    assert not [
        name for name, each in definitions.items() if name.endswith("Defaults") and {"required", "not", "oneOf", "if"} & each.keys()
    ]
