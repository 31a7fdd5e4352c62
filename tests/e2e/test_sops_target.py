"""A target whose repository holds files that SOPS has encrypted: applied, closed to other targets, and shown nowhere."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from handler.config.decryption import Decryption
from handler.config.git_settings import SecretRef
from handler.config.renderer_settings import RendererSettings
from handler.model.errors import DecryptionRefused
from handler.model.names import FIELD_MANAGER
from handler.model.plan import FieldChange
from handler.model.result import Outcome, Result
from handler.model.to_json import plain
from tests.e2e.conftest import Open
from tests.e2e.one_target import Shop, told
from tests.e2e.planted_secrets import CANARY, OTHER, assert_silent, run, spellings
from tests.e2e.rendered_trees import CHART, get, push_files, unchanged
from tests.rooms.render.sops_files import ALICE, BOB, VALUES, encrypted

PLANTED = (CANARY, OTHER)
TREES: dict[str, tuple[RendererSettings, dict[str, str]]] = {
    "file": (RendererSettings(), {}),
    "kustomize": (
        RendererSettings("kustomize"),
        {"deploy/kustomization.yaml": "resources: [login.yaml]\nconfigMapGenerator: [{name: made, envs: [made.env]}]\n"},
    ),
    "helm": (
        RendererSettings("helm", values_files=("made.yaml",)),
        {
            "deploy/Chart.yaml": CHART,
            "deploy/templates/a.yaml": (
                "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: {{ .Values.password | quote }}}\n---\n"
                'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\ndata: {url: {{ printf "db=%s;" .Values.other | quote }}}\n'
            ),
        },
    ),
}


def files(name: str, password: str, other: str, to: str = ALICE.recipient) -> dict[str, str]:
    secret = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: login}}\nstringData: {{password: {json.dumps(password)}}}\n"
    made = {
        "file": {"deploy/login.yaml": encrypted("a.yaml", secret, *VALUES, to=to)},
        "kustomize": {
            "deploy/login.yaml": encrypted("a.yaml", secret, *VALUES, to=to),
            "deploy/made.env": encrypted("made.env", f"OTHER={other}\n", to=to),
        },
        "helm": {"deploy/made.yaml": encrypted("a.yaml", json.dumps({"password": password, "other": other}), to=to)},
    }
    return {**TREES[name][1], **{path: data.decode() for path, data in made[name].items()}}


@pytest.fixture(params=TREES)
def shop(open_shop: Open, renderers: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Shop:
    monkeypatch.setenv("AGE_KEYS", ALICE.secret)
    opened = open_shop()
    opened.create_namespace()
    settings = Decryption(age=(SecretRef(env="AGE_KEYS"),))
    opened.configure(namespace=opened.name, namespaces=(opened.name,), renderer=TREES[request.param][0], decryption=settings)
    return opened


def renderer(shop: Shop) -> str:
    return "file" if shop.target.renderer.type == "auto" else shop.target.renderer.type


def test_what_was_encrypted_is_applied_and_shows_nowhere(shop: Shop, logged: io.StringIO) -> None:
    name = renderer(shop)
    push_files(shop, files(name, CANARY, OTHER))
    results: list[Result] = [run(shop, shop.job("oneoff", dry_run=True)), run(shop, shop.job())]
    assert results[1].outcome is Outcome.APPLIED, told(results[1])
    assert get(shop, "secret", "login")["data"].keys() == {"password"}
    unchanged(shop.run("drift"))
    push_files(shop, files(name, OTHER, CANARY))
    results += [run(shop, shop.job("oneoff", dry_run=True)), run(shop, shop.job())]
    assert results[3].outcome is Outcome.APPLIED, told(results[3])
    push_files(shop, {**files(name, CANARY, OTHER), **broken(name)})
    results.append(run(shop, shop.job()))
    assert results[-1].outcome is Outcome.FAILED, told(results[-1])
    assert_silent(shop, logged, *results, planted=(*PLANTED, ALICE.secret))
    shown = [json.dumps(plain(result.plan)) for result in results if result.plan]
    assert [text for text in shown for value in PLANTED for each in spellings(value) if each in text] == []
    events = shop.kubectl.run("get", "events", "-n", shop.name, "-o", "yaml")
    assert not any(text in events for value in PLANTED for text in spellings(value))


def broken(name: str) -> dict[str, str]:
    """Return a file by whose mistake a value would be quoted: by the API server, by helm."""
    if name == "helm":
        return {"deploy/templates/bad.yaml": "{{ fail .Values.password }}"}
    service = f"apiVersion: v1\nkind: Service\nmetadata: {{name: bad}}\nspec: {{clusterIP: {json.dumps(CANARY)}, ports: [{{port: 1}}]}}\n"
    made = {"deploy/bad.yaml": encrypted("a.yaml", service, "--encrypted-regex", "^clusterIP$").decode()}
    if name == "kustomize":
        made["deploy/kustomization.yaml"] = TREES[name][1]["deploy/kustomization.yaml"].replace("login.yaml", "login.yaml, bad.yaml")
    return made


def kept(value: str, annotations: str = "kustomize.toolkit.fluxcd.io/ssa: IfNotPresent") -> str:
    """An object that is only created where it is missing, as long as it says so."""
    return f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: kept, annotations: {{{annotations}}}}}\ndata: {{url: {value}}}\n"


@pytest.mark.parametrize("shop", ["helm"], indirect=True)
def test_what_lives_of_an_encrypted_value_isnt_shown_once_git_writes_another_in_the_clear(shop: Shop) -> None:
    def planned() -> list[Any]:
        result = run(shop, shop.job("oneoff", dry_run=True))
        assert result.plan, told(result)
        assert OTHER not in json.dumps(plain(result.plan))
        return [(str(each.action), each.identity.name, each.fields) for each in result.plan.writes]

    given = files("helm", CANARY, OTHER)
    template = "deploy/templates/a.yaml"
    push_files(shop, given | {template: given[template] + kept("{{ .Values.other | quote }}")})
    assert shop.run().outcome is Outcome.APPLIED
    patch = json.dumps({"data": {"extra": "by hand"}})
    shop.kubectl.run("patch", "configmap", "made", "-n", shop.name, "--field-manager=kubectl-edit", "-p", patch)
    plainly = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\ndata: {url: in-the-clear}\n"
    push_files(shop, given | {template: plainly + kept("in-the-clear")})
    assert planned() == [("update", "made", ()), ("prune", "login", ())]
    assert shop.run().outcome is Outcome.APPLIED
    assert [get(shop, "configmap", name)["data"] for name in ("made", "kept")] == [{"url": "in-the-clear"}, {"url": OTHER}]
    push_files(shop, given | {template: plainly.replace("in-", "out-") + kept("in-the-clear", "a: b")})
    changed = FieldChange("data.url", "out-the-clear", "in-the-clear", FIELD_MANAGER)
    assert planned() == [("update", "kept", ()), ("update", "made", (changed,))]


def test_a_file_that_was_copied_from_another_repository_stays_closed(shop: Shop) -> None:
    push_files(shop, files(renderer(shop), CANARY, OTHER, to=BOB.recipient))
    refused = shop.run()
    assert (refused.outcome, refused.code) == (Outcome.FAILED, DecryptionRefused.code), told(refused)
    assert BOB.recipient in refused.problems[0].message
    assert shop.kubectl.tried("get", "secret", "login", "-n", shop.name).returncode
