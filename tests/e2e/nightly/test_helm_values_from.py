"""Values of a chart that live in the cluster: seen when they change, shown nowhere."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from handler.config.renderer_settings import RendererSettings, ValuesFrom
from handler.model.result import Outcome
from tests.e2e.api_proxy import Wired
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map
from tests.e2e.one_target import Shop, told
from tests.e2e.planted_secrets import CANARY, OTHER, assert_plans_silent, assert_silent, run, spellings
from tests.e2e.rendered_trees import chart, get, push_files, unchanged

LATER = "canary/third%24+f1a0"
PLANTED = (CANARY, OTHER, LATER)
SOURCES = (
    ValuesFrom("ConfigMap", "settings"),
    ValuesFrom("Secret", "login", "whole.yaml"),
    ValuesFrom("Secret", "login", "password", "db.password"),
)
TREE = {
    "values.yaml": "colour: red\n",
    "templates/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out}\ndata: {colour: {{ .Values.colour }}}\n",
    "templates/login.yaml": (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: out}\nstringData:\n"
        "  password: {{ .Values.db.password | quote }}\n  key: {{ .Values.api.key | quote }}\n"
    ),
}
LEAKS = {
    "templates/url.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: url}\n"
        'data:\n  url: {{ printf "db={{ .Values.db.password }}" | quote }}\n  note: {{ .Values.api.key | quote }}\n'
    ).replace('{{ printf "db={{ .Values.db.password }}" | quote }}', '{{ printf "db=%s;" .Values.db.password | quote }}'),
}
"""Objects that aren't Secrets, and hold what is one."""


@pytest.fixture
def shop(open_shop: Open, renderers: Path) -> Shop:
    opened = open_shop()
    opened.create_namespace()
    opened.configure(namespace=opened.name, namespaces=(opened.name,), renderer=RendererSettings(values_from=SOURCES))
    settle(opened)
    return opened


def settle(shop: Shop, colour: str = "green", password: str = CANARY, key: str = OTHER) -> None:
    """Write the values by hand."""
    login = {"whole.yaml": json.dumps({"api": {"key": key}}), "password": password}
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in login.items()}
    metadata = {"name": "login", "namespace": shop.name}
    shop.kubectl.apply(config_map(shop.name, "settings", {"values.yaml": f"colour: {colour}\n"}))
    shop.kubectl.run(
        "apply", "--server-side", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded})
    )


def seen(shop: Shop) -> tuple[str, Mapping[str, str]]:
    """Return what the chart made of the values."""
    login = {name: base64.b64decode(text).decode() for name, text in get(shop, "secret", "out")["data"].items()}
    return str(get(shop, "configmap", "out")["data"]["colour"]), login


def test_a_changed_value_is_seen_by_the_next_drift_run_and_by_the_next_push(shop: Shop, wired: Callable[[], Wired]) -> None:
    push_files(shop, chart(TREE))
    shop.applied()
    assert seen(shop) == ("green", {"password": CANARY, "key": OTHER})
    unchanged(shop.run("drift"))
    wire = wired()
    handler = shop.handler_at(wire.kubeconfig)
    handler.run(shop.job("drift"))
    settle(shop, "blue")
    wire.forget()
    assert handler.run(shop.job(hint=shop.head)).outcome is Outcome.UNCHANGED
    assert [method for method, _ in wire.seen] == ["GET"], "a push without change asks for no value"
    assert seen(shop)[0] == "green"
    assert handler.run(shop.job("drift")).outcome is Outcome.APPLIED
    assert seen(shop)[0] == "blue"
    settle(shop, "blue", password="another")
    push_files(shop, chart(TREE) | {"docs/readme.md": "words"})
    assert handler.run(shop.job()).outcome is Outcome.APPLIED
    assert seen(shop) == ("blue", {"password": "another", "key": OTHER})


@pytest.mark.parametrize("tree", [TREE, TREE | LEAKS], ids=["in-a-secret", "elsewhere"])
def test_no_value_of_a_secret_shows_anywhere(shop: Shop, logged: io.StringIO, tree: dict[str, str]) -> None:
    push_files(shop, chart(tree))
    results = [run(shop, shop.job("oneoff", dry_run=True)), run(shop, shop.job())]
    assert results[1].outcome is Outcome.APPLIED, told(results[1])
    settle(shop, password=LATER, key=CANARY)
    results += [run(shop, shop.job("oneoff", dry_run=True)), run(shop, shop.job("drift"))]
    assert results[3].outcome is Outcome.APPLIED, told(results[3])
    for mistake in ("{{ fail .Values.db.password }}", "{{ .Values.db.password.more }}", "a: b: {{ .Values.db.password }}"):
        push_files(shop, chart(tree | {"templates/bad.yaml": mistake}))
        results.append(run(shop, shop.job()))
        assert results[-1].outcome is Outcome.FAILED, told(results[-1])
    port = (
        "apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {clusterIP: {{ .Values.db.password | quote }}, ports: [{port: 1}]}\n"
    )
    push_files(shop, chart(tree | {"templates/bad.yaml": port}))
    results.append(run(shop, shop.job()))
    assert results[-1].outcome is Outcome.FAILED, told(results[-1])
    assert_silent(shop, logged, *results, planted=PLANTED)
    assert_plans_silent(results, PLANTED)
    events = shop.kubectl.run("get", "events", "-A", "-o", "yaml")
    assert not any(text in events for value in PLANTED for text in spellings(value))
