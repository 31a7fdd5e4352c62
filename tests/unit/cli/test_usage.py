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
from handler.config.load import load
from handler.config.settings import Rollback, Wait

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


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_the_common_options(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    for option in ("--config", "--kubeconfig", "--context", "--output", "--verbose"):
        assert option in result.output


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_called_what_the_table_says(name: str) -> None:
    context = click.Context(anneal)
    command = anneal.get_command(context, name)
    assert command is not None
    assert command.name == name


def test_help_loads_no_room() -> None:
    code = "import sys; from handler.cli.group import anneal\ntry: anneal(['--help'])\nexcept SystemExit: print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1]
    for module in ("'kubernetes'", "'dulwich'", "'rich'", "'handler.build'", "'urllib3'", "'handler.cli.apply'"):
        assert module not in loaded
    assert "completion" in done.stdout


def test_python_m_handler_is_anneal() -> None:
    done = subprocess.run([sys.executable, "-m", "handler", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"anneal {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        (("aply",), "No such command 'aply'"),
        (("plan", "--nope"), "No such option"),
        (("plan",), "which target? configured are: infra, shop"),
        (("plan", "shopp"), "did you mean shop?"),
        (("history", "shop", "-n", "0"), "-n"),
        (("apply", "shop", "--name", "x"), "--name goes with -f DIR"),
        (("apply", "shop", "-n", "x"), "--namespace goes with -f DIR"),
        (("apply", "shop", "--prune"), "--prune goes with -f"),
        (("apply", "shop", "-f", "."), "TARGET doesn't go with it"),
        (("apply", "--commit", "a" * 40, "-f", "."), "--commit doesn't go with it"),
        (("apply", "-f", "."), "-f needs --name NAME and -n NAMESPACE"),
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


@pytest.mark.parametrize("name", ["plan", "apply", "prune", "history", "approve", "unpin", "rollback", "retarget", "unlock", "resume"])
def test_without_a_kubeconfig_the_way_out_is_named(config: str, name: str) -> None:
    result = run("-c", config, name, "shop", "-o", "json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    problems = found["targets"][0]["problems"] if "targets" in found else found["problems"]
    assert "pass --kubeconfig FILE" in problems[0]["fix"]


def test_status_says_what_is_wrong_with_each_target(config: str) -> None:
    result = run("-c", config, "status")
    assert result.exit_code == 1
    assert result.stdout.count(": unknown") == 2
    assert "pass --kubeconfig FILE" in result.stdout


def test_another_targets_missing_credential_is_not_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "anneal.yaml"
    auth = "shop.git, auth: {basic: {username: x, password: {env: NO_SUCH_TOKEN}}}}"
    path.write_text(CONFIG.replace("shop.git}", auth))
    assert "NO_SUCH_TOKEN" in run("-c", str(path), "plan", "shop").stderr
    assert "NO_SUCH_TOKEN" not in run("-c", str(path), "plan", "infra").stderr


# --- init and completion
INIT = ("--repository", "https://git.example.com/acme/shop.git", "-n", "shop", "-n", "jobs", "--path", "")


@pytest.mark.parametrize("provider", ["github", "gitlab"])
def test_init_writes_what_loads_and_never_replaces_it(tmp_path: Path, provider: str) -> None:
    path = tmp_path / "anneal.yaml"
    result = run("init", "-c", str(path), *INIT, "--provider", provider)
    assert result.exit_code == 0, result.output
    (target,) = load(path).targets
    assert (target.name, target.path, target.namespaces, target.namespace) == ("shop", "", ("shop", "jobs"), "shop")
    assert f"/webhooks/{provider}" in result.stdout
    path.write_text(path.read_text().replace("# wait:", "wait:").replace("# rollback:", "rollback:"))  # what it offers loads, too
    (target,) = load(path).targets
    assert (target.wait, target.rollback) == (Wait(), Rollback(on_failure=True))
    assert f'export {provider.upper()}_WEBHOOK_SECRET="$(openssl rand -hex 32)"' in result.stdout
    path.write_text("# mine\n")
    again = run("init", "-c", str(path), *INIT)
    assert (again.exit_code, path.read_text()) == (1, "# mine\n")
    assert "pass --force" in again.stderr
    assert run("init", "-c", str(path), *INIT, "--force", "-o", "json").exit_code == 0
    assert load(path).targets


@pytest.mark.parametrize(
    ("flags", "seen"),
    [
        (("--repository", "https://x:y@git.example.com/a/b.git", "-n", "b"), "holds credentials"),
        (("--repository", "https://git.example.com/a/b.git", "-n", "Shop"), "expected a namespace"),
        (("--repository", "https://git.example.com/a/b.git", "-n", "yes", "--name", "a b"), "expected a DNS label"),
    ],
)
def test_init_refuses_what_would_not_load(tmp_path: Path, flags: tuple[str, ...], seen: str) -> None:
    path = tmp_path / "anneal.yaml"
    result = run("init", "-c", str(path), *flags)
    assert result.exit_code == 1
    assert seen in result.stderr
    assert not path.exists()


def test_init_asks_for_nothing_where_nobody_sits(tmp_path: Path) -> None:
    result = run("init", "-c", str(tmp_path / "a.yaml"))
    assert (result.exit_code, "--repository is needed" in result.stderr) == (64, True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
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
