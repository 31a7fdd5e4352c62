"""A target whose repository holds files that SOPS has encrypted: applied, closed to other targets, and shown nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from handler.config.decryption import Decryption
from handler.config.git_settings import SecretRef
from handler.config.renderer_settings import RendererSettings
from handler.model.names import FIELD_MANAGER
from handler.model.plan import FieldChange
from handler.model.result import Outcome
from handler.model.to_json import plain
from tests.e2e.conftest import Open
from tests.e2e.one_target import Shop, told
from tests.e2e.planted_secrets import CANARY, OTHER, run
from tests.e2e.rendered_trees import CHART, get, push_files
from tests.rooms.render.sops_files import ALICE, VALUES, encrypted

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
