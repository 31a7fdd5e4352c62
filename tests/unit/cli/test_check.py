"""`anneal check` and `anneal doctor` where no cluster answers: the table, what the configuration refers to, and a server that is asked."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from click.testing import CliRunner, Result

from handler import __version__
from handler.cli.check import _engine, _TargetChecks
from handler.cli.check_table import Findings
from handler.cli.group import anneal
from handler.cli.output import Output
from handler.config.git_settings import Repository
from handler.config.settings import Target
from handler.model.errors import Problem
from handler.model.render import Rendered
from handler.model.tree import ReadSet
from handler.render import render_tools
from tests.unit.cli.scripted import TOKEN, Server
from tests.unit.engine.promoting_targets import PROD, SOAK, STAGING, Line, following

pytestmark = pytest.mark.slow

NOWHERE = "https://127.0.0.1:1/acme"
TOP = """\
apiVersion: anneal.dev/v1alpha1
kind: Config
webhooks: {github: {secrets: [{env: HOOK}]}}
replay: {tokens: [{name: ci, secret: {env: REPLAY}}]}
prometheus: [{url: "https://prometheus.example.com", token: {env: METRICS}}]
page:
  url: https://anneal.example.com
  key: {env: PAGE_KEY}
  proxy: {secret: {env: PROXY}}
  tokens: [{name: ada, secret: {env: ADA}}]
  roles: [{role: viewer, groups: [developers]}]
"""
SHOP = f"""\
  - name: shop
    repository:
      url: {NOWHERE}/shop.git
      auth: {{basic: {{username: x, password: {{env: SHOP_TOKEN}}}}}}
      webhook: {{secrets: [{{env: OWN}}]}}
    namespaces: [shop]
"""
INFRA = f"  - {{name: infra, repository: {{url: {NOWHERE}/infra.git}}, namespaces: [infra]}}\n"
LONG = "canary-of-sixteen-letters-and-more"
SET = {
    "HOOK": LONG,
    "REPLAY": f"{LONG}-2",
    "METRICS": "m",
    "SHOP_TOKEN": "t",
    "OWN": f"{LONG}-3",
    "PAGE_KEY": f"{LONG}-4",
    "PROXY": f"{LONG}-5",
    "ADA": f"{LONG}-6",
}
Checks = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "anneal.yaml"
    path.write_text(f"{TOP}targets:\n{SHOP}{INFRA}")
    return path


def run(config: Path, *arguments: str, **environ: str | None) -> Result:
    none = dict.fromkeys(("KUBECONFIG", "ANNEAL_QUEUE_URL", "ANNEAL_SERVER", "ANNEAL_TOKEN", *SET))
    given = {**none, "ANNEAL_CONFIG": str(config), "HOME": "/nonexistent", **environ}
    result = CliRunner(env=given).invoke(anneal, arguments)
    assert LONG not in result.output
    return result


def checks(config: Path, *arguments: str, **environ: str | None) -> Checks:
    """Return the rows by (target, subject)."""
    found = json.loads(run(config, *arguments, "-o", "json", **environ).stdout)
    assert found["ok"] is all(row["verdict"] != "failed" for row in found["checks"])
    return {(row["target"], row["subject"]): row for row in found["checks"]}


# --- what is referred to
@pytest.mark.parametrize(
    ("name", "subject", "path", "fix"),
    [
        ("HOOK", "webhooks", "webhooks.github.secrets", 'export HOOK="$(openssl rand -hex 32)"; or '),
        ("OWN", "webhooks", "targets[shop].repository.webhook.secrets", 'export OWN="$(openssl rand -hex 32)"; or '),
        ("REPLAY", "tokens", "replay.tokens[ci].secret", 'export REPLAY="$(openssl rand -hex 32)"; or '),
        ("PAGE_KEY", "page", "page.key", 'export PAGE_KEY="$(openssl rand -hex 32)"; or '),
        ("PROXY", "page", "page.proxy.secret", 'export PROXY="$(openssl rand -hex 32)"; or '),
        ("ADA", "page", "page.tokens[ada].secret", 'export ADA="$(openssl rand -hex 32)"; or '),
        ("METRICS", "prometheus", "prometheus[https://prometheus.example.com].token", "export METRICS=VALUE, where Anneal runs"),
        ("SHOP_TOKEN", "credentials", "targets[shop].repository.auth.basic.password", "export SHOP_TOKEN=VALUE, where Anneal runs"),
    ],
)
def test_check_names_missing_secrets_that_serve_refuses_to_start_without(
    config: Path, name: str, subject: str, path: str, fix: str
) -> None:
    environ = {**SET, name: None}
    refused = run(config, "serve", "--bind", "127.0.0.1:0", **environ)
    (problem,) = checks(config, "check", **environ)["", subject]["problems"]
    assert (refused.exit_code, problem["subject"]) == (1, path)
    assert f"{path}: environment variable {name} is not set" in refused.stderr
    assert problem["fix"].startswith(fix)
    others = {subject for (target, subject), row in checks(config, "check", **environ).items() if not target and row["verdict"] == "failed"}
    assert others == {subject}


def test_short_secrets_and_a_queue_that_is_none_are_told(config: Path) -> None:
    found = checks(config, "check", **{**SET, "HOOK": "short", "ANNEAL_QUEUE_URL": "https://sqs.example.com/1/plain"})
    assert "is shorter than 16 characters" in found["", "webhooks"]["problems"][0]["message"]
    assert "expected the URL of a FIFO queue" in found["", "queue"]["problems"][0]["message"]


def test_a_file_that_isnt_there_is_told_with_the_command_that_makes_it(config: Path, tmp_path: Path) -> None:
    config.write_text(config.read_text().replace("{env: HOOK}", f"{{file: {tmp_path}/hook}}"))
    (problem,) = checks(config, "check", **SET)["", "webhooks"]["problems"]
    assert problem["fix"].startswith(f"(umask 077; openssl rand -hex 32 > {tmp_path}/hook); or ")


def test_successful_checks_say_what_they_found(config: Path) -> None:
    found = checks(config, "check", **SET)
    assert {subject: row["seen"] for (target, subject), row in found.items() if not target} == {
        "configuration": f"{config}: 2 targets",
        "webhooks": "github: 1 secret, shop: 1 secret of its own",
        "tokens": "ci",
        "page": "https://anneal.example.com, signed in to by a trusted proxy, tokens",
        "prometheus": "https://prometheus.example.com with a token",
        "credentials": "1 git credential found",
        "queue": "none; requests wait in the server's memory, and what is lost there is found by looking at git",
    }
    config.write_text(f"apiVersion: anneal.dev/v1alpha1\nkind: Config\ntargets:\n{INFRA}")
    found = checks(config, "check")
    assert found["", "webhooks"]["seen"] == "none; pushes are found by looking at git each 5m"
    assert not {("", "tokens"), ("", "page")} & found.keys()


def test_what_functions_on_a_queue_leave_out_is_named(config: Path) -> None:
    trigger = "trigger: {resource: {mainResource: g, resources: [{name: g, apiVersion: example.com/v1, kind: Grafana}]}}"
    url = "https://sqs.eu-central-1.amazonaws.com/111122223333/anneal.fifo"
    config.write_text(f"apiVersion: anneal.dev/v1alpha1\nkind: Config\ntargets:\n{INFRA}")
    assert checks(config, "check", ANNEAL_QUEUE_URL=url)["", "queue"]["seen"] == f"{url} (ANNEAL_QUEUE_URL)"
    config.write_text(config.read_text().replace("[infra]}", f"[infra], renderer: {{type: jsonnet}}, {trigger}}}"))
    seen = checks(config, "check", ANNEAL_QUEUE_URL=url)["", "queue"]["seen"]
    assert seen == f"{url} (ANNEAL_QUEUE_URL); functions that share it don't run infra: `anneal serve` does"


def test_check_of_a_named_target_needs_no_webhook_secrets(config: Path) -> None:
    found = checks(config, "check", "shop", METRICS="m", SHOP_TOKEN="t")
    assert found["", "door"]["verdict"] == "skipped"
    assert {target for target, _ in found} == {"", "shop"}
    assert not {("", "webhooks"), ("", "tokens"), ("", "page"), ("", "queue")} & found.keys()
    assert found["", "credentials"]["verdict"] == "ok"


def test_a_missing_credential_keeps_no_other_target_from_being_looked_at(config: Path) -> None:
    found = checks(config, "check", **{**SET, "SHOP_TOKEN": None})
    assert (found["shop", "git"]["verdict"], found["infra", "git"]["verdict"]) == ("skipped", "failed")
    assert "refuses connections" in found["infra", "git"]["problems"][0]["message"]


# --- the forms
@pytest.mark.parametrize(
    ("renderer", "sandbox", "seen"),
    [
        ("file", "strict", "0 objects in deploy"),
        ("kustomize", "strict", "0 objects in deploy, by kustomize; no cloud function renders it without `sandbox: weak`"),
        ("helm", "weak", "0 objects in deploy, by helm"),
    ],
)
def test_check_says_which_form_cannot_render_a_target(
    renderer: str, sandbox: Literal["strict", "weak"], seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handler.cli.check.rendered_at", lambda *_: (None, Rendered((), ReadSet(()), renderer=renderer)))
    target = Target("shop", Repository(f"{NOWHERE}/shop.git"), ("shop",), path="deploy", sandbox=sandbox)
    session: Any = None
    assert _TargetChecks(session, target, Findings(Output(as_json=True)), {}, None)._render() == seen


@pytest.mark.parametrize(
    ("read", "installed", "seen"),
    [
        ("jsonnet", True, "evaluated by Google's program, jsonnet 0.22.0"),
        (
            "libjsonnet",
            False,
            "evaluated by Google's library in C++, which takes several times as long as its program: isn't installed here, and ",
        ),
        ("libjsonnet", True, "as long as its program: its walls don't stand here, where the target isn't `sandbox: weak`"),
        ("helm", True, ""),
    ],
)
def test_check_says_which_engine_evaluates_jsonnet_and_why(
    read: str,
    installed: bool,
    seen: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if installed:
        monkeypatch.setattr(render_tools, "find", lambda name: render_tools.RenderTool(name, "/jsonnet", "0.22.0", "d"))
    else:
        monkeypatch.setenv(render_tools.DIRECTORY, "")
        monkeypatch.setenv("PATH", "")
    made = "; ".join(_engine(Rendered((), ReadSet.of({render_tools.read_name(read): "d"}))))
    assert seen in made
    assert bool(seen) is bool(made)


def test_check_says_what_a_target_comes_after_before_anything_is_proven_that_might_wait() -> None:
    line = Line((STAGING, PROD, following("late", "staging", depends_on=("prod",))))
    line.commit("1")
    checks = _TargetChecks(SimpleNamespace(handler=line.handler), line.targets[2], Findings(Output(as_json=True)), {}, None)  # type: ignore[arg-type]  # what it asks
    assert checks._order() == "after prod; nothing is proven yet that might wait"
    line.done("staging")
    line.later(SOAK)
    assert checks._order() == "after prod, for which a run would wait: it never ran"


# --- the table
def test_the_table_has_a_row_a_line_where_nobody_looks(config: Path) -> None:
    result = run(config, "check", **{**SET, "HOOK": None})
    lines = result.stdout.splitlines()
    assert result.exit_code == 1
    assert lines[:5] == [
        "SUBJECT        VERDICT  SEEN",
        f"configuration  ok       {config}: 2 targets",
        "webhooks       failed   webhooks.github.secrets: environment variable HOOK is not set",
        '    → export HOOK="$(openssl rand -hex 32)"',
        "      or set it to what the other side has already",
    ]
    assert lines[10:12] == ["shop", f"git            failed   repository {NOWHERE}/shop.git: its host refuses connections"]


def test_a_common_fix_of_several_problems_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    findings = Findings(Output())
    findings.bad("rights", [Problem("rights", "may not a", fix="grant it"), Problem("x", "may not b", "f:1", "grant it")])
    assert capsys.readouterr().out.splitlines()[1:] == [
        "rights         failed   may not a",
        "                        f:1: x: may not b",
        "    → grant it",
    ]
    assert findings.failed


# --- the server that doctor asks
PAGE = {"version": __version__, "targets": [{"target": "infra"}], "next": "infra"}


def asked(server: Server, config: Path, *arguments: str, token: str | None = TOKEN) -> Checks:
    found = checks(config, "doctor", *arguments, ANNEAL_SERVER=server.url, ANNEAL_TOKEN=token, **SET)
    assert TOKEN not in json.dumps(list(found.values()))
    return found


def test_doctor_asks_the_server_whether_it_works_and_knows_the_targets(server: Server, config: Path) -> None:
    server.answers |= {"/readyz": [(200, {"web": "ok", "worker": "ok"})], "/api/targets": [(200, PAGE)]}
    server.answers["/api/targets?after=infra"] = [(200, PAGE | {"targets": [{"target": "shop"}], "next": None})]
    found = asked(server, config)
    assert found["", "server"]["seen"] == f"{server.url} is ready, its worker too"
    assert found["", "its targets"]["seen"] == f"version {__version__}, 2 targets"
    assert [headers["Authorization"] for _, path, headers, _ in server.seen] == [f"Bearer {TOKEN}"] * 3


@pytest.mark.parametrize(
    ("page", "seen", "fix"),
    [
        (PAGE | {"next": None}, "it doesn't show shop", "restart it with this configuration"),
        (PAGE | {"version": "9.9.9", "targets": [{"target": "shop"}, {"target": "infra"}], "next": None}, "version 9.9.9", "same version"),
    ],
)
def test_doctor_warns_of_a_server_that_is_another_one(server: Server, config: Path, page: dict[str, Any], seen: str, fix: str) -> None:
    server.answers |= {"/readyz": [(200, {"web": "ok", "worker": "ok"})], "/api/targets": [(200, page)]}
    row = asked(server, config)["", "its targets"]
    assert row["verdict"] == "warning"
    assert seen in row["problems"][0]["message"]
    assert fix in row["problems"][0]["fix"]


def test_doctor_says_that_a_server_has_no_worker_isnt_there_or_is_something_else(server: Server, config: Path) -> None:
    server.answers["/readyz"] = [(503, {"web": "ok", "worker": "unreachable"})]
    (problem,) = asked(server, config)["", "server"]["problems"]
    assert "its worker is unreachable: nothing runs" in problem["message"]
    server.answers["/readyz"] = [(404, {})]
    assert "not as Anneal does" in asked(server, config)["", "server"]["problems"][0]["message"]
    server.url = "http://127.0.0.1:1"
    (problem,) = asked(server, config)["", "server"]["problems"]
    assert problem["message"].startswith("can't be reached")
    assert problem["fix"].endswith("curl -i http://127.0.0.1:1/readyz")


def test_without_a_token_or_with_one_that_may_not_read_the_targets_arent_known(server: Server, config: Path) -> None:
    server.answers |= {"/readyz": [(200, {"web": "ok", "worker": "ok"})], "/api/targets": [(403, {"error": "token ci: may not read"})]}
    assert asked(server, config, token=None)["", "its targets"]["problems"][0]["message"].startswith("ANNEAL_TOKEN isn't set")
    assert asked(server, config)["", "its targets"]["problems"][0]["message"] == "token ci: may not read"


def test_without_a_server_doctor_says_one_line_and_check_nothing(config: Path) -> None:
    assert checks(config, "doctor", **SET)["", "server"]["verdict"] == "skipped"
    assert ("", "server") not in checks(config, "check", **SET)


def test_doctor_looks_at_a_machine_where_nothing_is_configured(tmp_path: Path) -> None:
    found = checks(tmp_path / "none.yaml", "doctor")
    assert found["", "configuration"]["verdict"] == "warning"
    assert found["", "sandbox"]["verdict"] == "ok"
    assert "--kubeconfig FILE" in found["", "cluster"]["problems"][0]["fix"]
