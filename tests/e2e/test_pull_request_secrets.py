"""No pull request shows a value that isn't in git, nor an object that isn't the target's, however its templates try."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from handler.config.decryption import Decryption
from handler.config.git_settings import SecretRef
from handler.config.post_build import PostBuild, SubstituteFrom
from handler.config.renderer_settings import RendererSettings, ValuesFrom
from handler.model.result import Outcome
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map
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


@pytest.fixture
def substituted(open_shop: Open) -> PullRequests:
    """A shop whose ConfigMap holds a password of the cluster."""
    shop = open_shop()
    shop.create_namespace()
    secret(shop, "login", PASSWORD=CANARY)
    post_build = PostBuild(substitute_from=(SubstituteFrom("Secret", "login"),))
    pulls = PullRequests.of(shop, namespace=shop.name, namespaces=(shop.name,), post_build=post_build)
    push_files(shop, {f"{PATH}/a.yaml": configured("a", url="db=${PASSWORD};", plain="1", half="${PASSWORD:0:10}")})
    shop.applied()
    pulls.reconnect()
    return pulls


def test_a_substituted_value_is_a_placeholder_whatever_a_pull_request_makes_of_it(substituted: PullRequests, logged: io.StringIO) -> None:
    head = substituted.branch(
        {
            "a.yaml": configured("a", url="now plain", plain="2", half="guess"),
            "b.yaml": configured(
                "b", whole="${PASSWORD}", half="${PASSWORD:0:10}", rest="${PASSWORD:10}", loud="${PASSWORD^^}", long="n=${#PASSWORD}"
            ),
        }
    )
    result = substituted.plan(head)
    assert result.outcome is Outcome.PLANNED, told(result)
    said = substituted.host.text
    assert "data.plain: 1 → 2" in said
    assert "placeholder; → now plain" in said
    assert "+ create ConfigMap" in said
    assert_nothing_shown(substituted, logged, CANARY)


def planned(pulls: PullRequests, guess: str) -> list[str]:
    """Return the lines of a plan, the same whatever the guess was, where none is confirmed."""
    lines = (line for line in pulls.host.text.splitlines() if line.startswith(("~", "+", "-", "    ")))
    return [line.replace(guess, "(the guess)") for line in lines]


@pytest.mark.parametrize("guess", [f"db={CANARY};", "db=wrong;"])
def test_a_guess_is_not_told_from_the_value(substituted: PullRequests, guess: str, logged: io.StringIO) -> None:
    head = substituted.branch({"a.yaml": configured("a", url=guess, plain="1", half="x"), "c.yaml": configured("c", key="1")})
    substituted.plan(head)
    name = substituted.shop.name
    assert planned(substituted, guess) == [
        f"~ change ConfigMap/{name}/a  deploy/a.yaml:1",
        "    data.half: placeholde → x",
        "    data.url: db=placeholder; → (the guess)",
        f"+ create ConfigMap/{name}/c  deploy/c.yaml:1",
    ]
    assert [each.text for each in substituted.host.statuses] == ["1 to change, 1 to create"]
    assert "guess" not in logged.getvalue()


@pytest.mark.parametrize(
    ("before", "tip", "guess"),
    [
        ("db=${PASSWORD:-none}", None, None),
        ("x${PASSWORD:2:1}${PASSWORD:11}", None, None),
        ("db=${PASSWORD}", configured("a", url="vault", plain="1", half="x"), None),
        ("db=${PASSWORD}", "a: [broken", f"db={CANARY}"),
        ("db=${PASSWORD}", "a: [broken", "db=wrong"),
    ],
    ids=["default", "pieces", "not deployed yet", "broken, guessed", "broken, not guessed"],
)
def test_what_lives_of_a_value_shows_by_no_default_piece_or_commit_before(
    substituted: PullRequests, logged: io.StringIO, before: str, tip: str | None, guess: str | None
) -> None:
    push_files(substituted.shop, {f"{PATH}/a.yaml": configured("a", url=before, plain="1", half="x")})
    substituted.shop.applied()
    if tip:
        push_files(substituted.shop, {f"{PATH}/a.yaml": tip})
    substituted.reconnect()
    changes: dict[str, str | None] = {"c.yaml": configured("c", key="1")}
    if guess:
        changes["a.yaml"] = configured("a", url=guess, plain="1", half="x")
    substituted.plan(substituted.branch(changes))
    name = substituted.shop.name
    changed = [f"~ change ConfigMap/{name}/a  deploy/a.yaml:1", "    data.url: db=placeholder → (the guess)"] if guess else []
    assert planned(substituted, guess or "no guess") == [*changed, f"+ create ConfigMap/{name}/c  deploy/c.yaml:1"]
    if not guess:
        assert_nothing_shown(substituted, logged, CANARY)


@pytest.mark.parametrize("value", ["", CANARY])
@pytest.mark.parametrize("guess", ["db=none", f"db={CANARY}", "db=wrong"])
def test_neither_a_guess_nor_an_empty_value_is_told_where_a_default_stands_beside_the_variable(
    substituted: PullRequests, value: str, guess: str
) -> None:
    shop = substituted.shop
    push_files(shop, {f"{PATH}/a.yaml": configured("a", url="db=${PASSWORD:-none}", plain="${ABSENT:-one}", half="x")})
    secret(shop, "login", PASSWORD=value)
    shop.applied()
    substituted.reconnect()
    substituted.plan(substituted.branch({"a.yaml": configured("a", url=guess, plain="${ABSENT:=two}", half="x")}))
    assert planned(substituted, guess) == [
        f"~ change ConfigMap/{shop.name}/a  deploy/a.yaml:1",
        "    data.plain: one → two",
        "    data.url: db=placeholder → (the guess)",
    ]


def test_what_lives_by_hand_in_a_member_shows_nowhere_beside_values_that_are_not_in_git(
    substituted: PullRequests, logged: io.StringIO
) -> None:
    shop = substituted.shop
    shop.kubectl.run(
        "patch", "configmap", "a", "-n", shop.name, "--type=merge", "-p", json.dumps({"data": {"extra": DRIFT, "plain": "by hand"}})
    )
    head = substituted.branch({"a.yaml": configured("a", url="db=${PASSWORD};", plain="1", half="${PASSWORD:0:10}", extra="mine")})
    substituted.plan(head)
    assert "by hand" not in substituted.host.text
    assert "data.extra: " in substituted.host.text
    assert_nothing_shown(substituted, logged, CANARY, DRIFT)


def test_a_strangers_object_is_not_looked_at_and_its_values_show_nowhere(substituted: PullRequests, logged: io.StringIO) -> None:
    shop = substituted.shop
    shop.kubectl.apply(config_map(shop.name, "theirs", {"key": DRIFT}))
    secret(shop, "login-of-others", key=DRIFT)
    forged = {"applyset.kubernetes.io/part-of": shop.applyset}
    shop.kubectl.apply(config_map(shop.name, "forged", {"key": DRIFT}, labels=forged))
    head = substituted.branch(
        {
            "theirs.yaml": configured("theirs", key="1"),
            "forged.yaml": configured("forged", key="1"),
            "login.yaml": json.dumps(
                {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login-of-others"}, "stringData": {"key": DRIFT}}
            ),
        }
    )
    substituted.plan(head)
    assert sorted(line.split()[2].rpartition("/")[2] for line in substituted.host.text.splitlines() if line.startswith("+ create")) == [
        "forged",
        "login-of-others",
        "theirs",
    ]
    assert_nothing_shown(substituted, logged, CANARY, DRIFT)


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


def test_the_plan_of_a_pull_request_writes_nothing_but_which_comment_is_ours(substituted: PullRequests) -> None:
    shop = substituted.shop
    before, record = shop.versions(), shop.state()
    substituted.plan(substituted.branch({"c.yaml": configured("c", key="1")}))
    assert shop.versions() == before
    assert replace(shop.state(), pull_requests=()) == record
    assert len(shop.state().pull_requests) == 1
