"""What is typed: usage, mistakes of configuration, exit codes, and how quickly help answers. No cluster, no git host."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from handler import __version__
from handler.cli.group import COMMANDS, anneal
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

CONFIG = """\
apiVersion: anneal.dev/v1alpha1
kind: Config
targets:
  - {name: shop, repository: {url: https://git.example.com/acme/shop.git}, namespaces: [shop]}
  - {name: infra, repository: {url: https://git.example.com/acme/infra.git}, namespaces: [infra]}
"""


def run(*arguments: str, **environ: str) -> Result:
    given = {"ANNEAL_CONFIG": None, "KUBECONFIG": None, "HOME": "/nonexistent", **environ}
    return CliRunner(env=given).invoke(anneal, arguments)


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "anneal.yaml"
    path.write_text(CONFIG)
    return str(path)


@each_row("name", COMMANDS)
def test_each_command_has_help_with_the_common_options(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    for option in ("--config", "--kubeconfig", "--context", "--output", "--verbose"):
        assert option in result.output


@each_row("name", COMMANDS)
def test_a_command_is_called_what_the_table_says(name: str) -> None:
    context = click.Context(anneal)
    command = anneal.get_command(context, name)
    assert command is not None
    assert command.name == name


def test_python_m_handler_is_the_anneal_command() -> None:
    done = subprocess.run([sys.executable, "-m", "handler", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"anneal {__version__}\n"


@each_row(
    ("arguments", "seen"),
    [
        (("aply",), "No such command 'aply'; for that: anneal apply"),
        (("diff",), "No such command 'diff'; for that: anneal plan"),
        (("logs",), "No such command 'logs'; for that: anneal status --logs"),
        (("zzz",), "No such command 'zzz'"),
        (("plan", "--nope"), "No such option"),
        (("plan",), "which target? configured are: infra, shop"),
        (("plan", "shopp"), "did you mean shop?"),
        (("history", "shop", "-n", "0"), "-n 0: expected a number of 1 or more; a namespace goes with --name"),
        (("history", "-n", "shop"), "-n shop: expected a number"),
        (
            ("apply", "-f", "https://example.com/a.yaml"),
            "a URL isn't fetched; pipe it: curl -fsSL https://example.com/a.yaml | anneal apply -f -",
        ),
        (("apply", "-f", "x.yaml", "-n", "a"), "-f needs --name NAME and -n NAMESPACE: anneal apply -f x.yaml --name shop -n a"),
        (("plan", "shop", "--prune"), "--prune goes with -f"),
        (("apply", "shop", "--name", "x"), "--name goes with -f DIR"),
        (("apply", "shop", "-n", "x"), "--namespace goes with -f DIR"),
        (("apply", "shop", "-f", "."), "TARGET doesn't go with it"),
        (("apply", "--commit", "a" * 40, "-f", "."), "--commit doesn't go with it"),
        (("suspend", "shop", "--until", "tomorrow"), "--until tomorrow"),
        (("suspend", "shop", "--until", "2020-01-01T00:00:00Z"), "lies in the past"),
        (("suspend", "--all", "shop"), "exclude each other"),
        (("rbac", "shop", "--service-account", "anneal"), "expected NAMESPACE/NAME"),
        (("rbac", "shop", "--service-account", "a/b", "--group", "c"), "exclude each other"),
        (("completion", "tcsh"), "tcsh"),
        (("plan", "shop", "-o", "xml"), "xml"),
    ],
)
def test_a_mistake_of_usage_exits_with_64(config: str, arguments: tuple[str, ...], seen: str) -> None:
    result = run("-c", config, *arguments)
    assert (result.exit_code, result.stdout) == (64, "")
    assert seen in result.stderr


@each_row("name", ["apply", "plan", "check", "render", "prune", "status", "history"])
def test_every_command_over_files_has_the_same_flags(name: str) -> None:
    shown = run(name, "--help").stdout
    flags = ("-f, --filename", "--name", "-n, --namespace", "--cluster-scoped", "--adopt", "--recreate", "--validate", "--state-namespace")
    assert [flag for flag in flags if flag not in shown] == []


def test_the_common_options_may_stand_before_and_after_the_command(config: str) -> None:
    before, after = run("-c", config, "plan"), run("plan", "-c", config)
    assert before.stderr == after.stderr
    assert "configured are: infra, shop" in after.stderr
    assert "configured are: infra, shop" in run("-c", "/nonexistent", "plan", "-c", config).stderr


def test_every_mistake_of_the_configuration_is_printed_with_its_line_and_way_out(tmp_path: Path) -> None:
    path = tmp_path / "anneal.yaml"
    path.write_text(CONFIG.replace("namespaces: [shop]", "namespace: Shop").replace("kind: Config", "kind: Confix"))
    result = run("-c", str(path), "plan", "shop")
    assert (result.exit_code, result.stdout) == (1, "")
    lines = result.stderr.splitlines()
    assert lines[0].startswith(f"{path}:2: ")
    assert sum(line.startswith(f"{path}:4: ") for line in lines) >= 2
    assert any(line.startswith("    ") for line in lines)
    problems = json.loads(run("-c", str(path), "plan", "shop", "-o", "json").stdout)
    assert (problems["outcome"], problems["code"]) == ("failed", "config-invalid")
    assert {"subject", "message", "place", "fix"} == set(problems["problems"][0])


@pytest.mark.parametrize(
    "name", ["plan", "apply", "prune", "history", "approve", "unpin", "rollback", "promote", "retarget", "unlock", "resume"]
)
def test_without_a_kubeconfig_the_way_out_is_named(config: str, name: str) -> None:
    result = run("-c", config, name, "shop", "-o", "json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    problems = found["targets"][0]["problems"] if "targets" in found else found["problems"]
    assert "pass --kubeconfig FILE" in problems[0]["fix"]


def test_status_says_what_is_wrong_with_each_target(config: str) -> None:
    result = run("-c", config, "status", "--offline")
    assert result.exit_code == 1
    assert [line.split()[:2] for line in result.stdout.splitlines()[1:3]] == [["infra", "unknown"], ["shop", "unknown"]]
    assert result.stdout.count("pass --kubeconfig FILE") == 1, "one verdict a cluster"
    page = run("-c", config, "status", "shop", "--offline")
    assert (page.exit_code, page.stdout.splitlines()[0]) == (1, "shop: unknown")
    assert "pass --kubeconfig FILE" in page.stdout


def test_an_output_form_that_a_command_doesnt_have_is_refused_wherever_it_is_given(config: str) -> None:
    assert run("-c", config, "-o", "wide", "status", "--offline").exit_code == 1
    for arguments in (["-o", "wide", "history", "shop"], ["history", "shop", "-o", "wide"]):
        result = run("-c", config, *arguments)
        assert result.exit_code == 64
        assert "wide" in result.stderr


def test_another_targets_missing_credential_is_not_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "anneal.yaml"
    auth = "shop.git, auth: {basic: {username: x, password: {env: NO_SUCH_TOKEN}}}}"
    path.write_text(CONFIG.replace("shop.git}", auth))
    assert "NO_SUCH_TOKEN" in run("-c", str(path), "plan", "shop").stderr
    assert "NO_SUCH_TOKEN" not in run("-c", str(path), "plan", "infra").stderr


# --- completion
@each_row("shell", ["bash", "zsh", "fish"])
def test_completion_is_clicks_own_code(shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_ANNEAL_COMPLETE" in result.stdout


def test_the_shell_is_offered_commands_and_targets(config: str) -> None:
    environ = {"_ANNEAL_COMPLETE": "bash_complete", "COMP_WORDS": "anneal un", "COMP_CWORD": "1"}
    done = CliRunner(env=environ).invoke(anneal, prog_name="anneal")
    assert done.stdout.split() == ["plain,unpin", "plain,unlock"]
    environ |= {"COMP_WORDS": "anneal plan sh", "COMP_CWORD": "2", "ANNEAL_CONFIG": config}
    assert CliRunner(env=environ).invoke(anneal, prog_name="anneal").stdout.split() == ["plain,shop"]
