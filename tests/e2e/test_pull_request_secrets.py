"""No pull request shows a value that isn't in git, however its templates try, by the programs that render them."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import pytest

from handler.config.decryption import Decryption
from handler.config.git_settings import SecretRef
from handler.config.renderer_settings import RendererSettings, ValuesFrom
from handler.model.result import Outcome
from tests.e2e.conftest import Open
from tests.e2e.one_target import PATH, Shop, told
from tests.e2e.pull_request_canaries import CANARY, DRIFT, assert_nothing_shown
from tests.e2e.pull_request_host import PullRequests
from tests.e2e.rendered_trees import chart, push_files
from tests.rooms.render.sops_files import ALICE, VALUES, encrypted


def secret(shop: Shop, name: str, **values: str) -> None:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": shop.name}, "data": data}
    shop.kubectl.run("apply", "--server-side", "--force-conflicts", "-f", "-", given=json.dumps(body))


def configured(name: str, **data: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})


def test_charts_that_reverse_split_digest_or_fail_with_a_value_show_nothing_of_it(
    open_shop: Open, renderers: Path, logged: io.StringIO
) -> None:
    assert renderers
    shop = open_shop()
    shop.create_namespace()
    secret(shop, "login", **{"values.yaml": json.dumps({"db": {"password": CANARY}, "port": 5432})})
    renderer = RendererSettings("helm", values_from=(ValuesFrom("Secret", "login"),))
    pulls = PullRequests.of(shop, namespace=shop.name, namespaces=(shop.name,), renderer=renderer)
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {key: {{ %s | quote }}, plain: %s}\n"
    password = ".Values.db.password"
    push_files(shop, chart({"templates/a.yaml": template % ("a", f'printf "db=%s;" {password}', "x")}))
    shop.applied()
    pulls.reconnect()
    tricks = {
        "reversed": f'{password} | splitList "" | reverse | join ""',
        "spread": f'{password} | splitList "" | join "-"',
        "digest": f"{password} | sha256sum",
        "encoded": f"{password} | b64enc | b32enc",
        "half": f"{password} | trunc 10",
        "rest": f"{password} | trunc -10",
        "long": f"len {password}",
    }
    files: dict[str, str | None] = {f"templates/{name}.yaml": template % (name, trick, "x") for name, trick in tricks.items()}
    result = pulls.plan(pulls.branch(files | {"templates/a.yaml": template % ("a", '"plain"', "z")}))
    assert result.outcome is Outcome.PLANNED, told(result)
    assert pulls.host.text.count("+ create ConfigMap") == len(tricks)
    assert "data.plain: x → z" in pulls.host.text
    for number, mistake in enumerate(
        (f"{{{{ fail {password} }}}}", f"{{{{ fail ({password} | b64enc) }}}}", f"a: b: {{{{ {password} }}}}")
    ):
        pulls.plan(pulls.branch({"templates/bad.yaml": mistake}), 20 + number)
        assert "can't be planned" in pulls.host.text
    assert_nothing_shown(pulls, logged, CANARY)


def test_what_a_chart_decides_by_comparing_a_value_shows_neither_by_fields_nor_by_objects(
    open_shop: Open, renderers: Path, logged: io.StringIO
) -> None:
    assert renderers
    shop = open_shop()
    shop.create_namespace()
    secret(shop, "login", **{"values.yaml": json.dumps({"mode": "secretly"})})
    renderer = RendererSettings("helm", values_from=(ValuesFrom("Secret", "login"),))
    pulls = PullRequests.of(shop, namespace=shop.name, namespaces=(shop.name,), renderer=renderer)
    is_it = '{{ if eq .Values.mode "secretly" }}'
    kind = "apiVersion: v1\nkind: ConfigMap\n"
    templates = {
        "templates/a.yaml": f"{kind}metadata: {{name: a}}\ndata: {{key: {is_it}{CANARY}{{{{ else }}}}other{{{{ end }}}}, plain: x}}\n",
        "templates/b.yaml": f"{is_it}{kind}metadata: {{name: of-canary}}\n{{{{ else }}}}{kind}metadata: {{name: of-other}}\n{{{{ end }}}}",
    }
    push_files(shop, chart(templates))
    shop.applied()
    pulls.reconnect()
    changed = templates["templates/a.yaml"].replace("plain: x", "plain: z")
    pulls.plan(pulls.branch({"templates/a.yaml": changed}))
    assert "data.plain: x → z" in pulls.host.text
    assert "of-" not in pulls.host.text
    assert "other" not in pulls.host.text
    assert_nothing_shown(pulls, logged, CANARY)
    pulls.plan(pulls.branch({"templates/a.yaml": changed.replace(is_it, "").replace("{{ else }}other{{ end }}", "")}), 2)
    guess = pulls.host.text
    assert f"data.key: other → {CANARY}" in guess  # as git has it, whether or not that is what lives
    pulls.plan(
        pulls.branch(
            {"templates/a.yaml": changed.replace(is_it, "").replace(f"{CANARY}{{{{ else }}}}other", "wrong").replace("{{ end }}", "")}
        ),
        3,
    )
    assert "data.key: other → wrong" in pulls.host.text
    assert "of-" not in guess + pulls.host.text


def test_what_sops_has_encrypted_is_a_placeholder(
    open_shop: Open, renderers: Path, logged: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert renderers
    monkeypatch.setenv("AGE_KEY", ALICE.secret)
    shop = open_shop()
    shop.create_namespace()
    pulls = PullRequests.of(
        shop,
        namespace=shop.name,
        namespaces=(shop.name,),
        renderer=RendererSettings("kustomize"),
        decryption=Decryption((SecretRef(env="AGE_KEY"),)),
    )
    login = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: login}}\nstringData: {{password: {CANARY}}}\n"
    made = {
        f"{PATH}/kustomization.yaml": "resources: [login.yaml]\nconfigMapGenerator: [{name: made, envs: [made.env]}]\n",
        f"{PATH}/login.yaml": encrypted("a.yaml", login, *VALUES, to=ALICE.recipient).decode(),
        f"{PATH}/made.env": encrypted("made.env", f"OTHER={DRIFT}\n", to=ALICE.recipient).decode(),
    }
    push_files(shop, made)
    shop.applied()
    pulls.reconnect()
    more = "resources: [login.yaml, c.yaml]\nconfigMapGenerator: [{name: made, envs: [made.env]}]\n"
    result = pulls.plan(pulls.branch({"kustomization.yaml": more, "c.yaml": configured("c", key="1")}))
    assert result.outcome is Outcome.PLANNED, told(result)
    said = pulls.host.text
    assert f"+ create ConfigMap/{shop.name}/c" in said
    assert "- delete" not in said, "the name of a generated object is another with placeholders: it isn't deleted"
    assert_nothing_shown(pulls, logged, CANARY, DRIFT)
