"""Installed by pipx and by uvx, from a clone and from a wheel, into an empty home: the command works in a directory of its user's."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from packaging.version import Version

from handler import __version__
from tests.patience import PATIENCE, until
from tests.uv import uv

MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: front}\ndata: {colour: blue}\n"
NOWHERE = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {token: of-no-cluster}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


def pipx(environ: dict[str, str], source: Path) -> None:
    """Install by pipx, which has uv fill its environments: that takes a second, pip itself half a minute."""
    path = os.pathsep.join((str(Path(uv()).parent), environ["PATH"]))
    command = [str(Path(sys.executable).with_name("pipx")), "install", "--backend", "uv", str(source)]
    done = subprocess.run(command, env=environ | {"PATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(wheel: Path, environ: dict[str, str], foreign: Path) -> Path:
    """The command as pipx installs it from the index of this machine."""
    pipx(environ, wheel)
    return foreign.parent / ".local" / "bin" / "anneal"


class Runner:
    """Runs the installed command in its user's directory."""

    def __init__(self, command: Path, environ: dict[str, str], place: Path) -> None:
        self.command, self.environ, self.place = command, environ, place

    def __call__(self, *arguments: str, code: int = 0, stdin: str | None = None) -> str:
        done = subprocess.run(
            [self.command, *arguments], cwd=self.place, env=self.environ, input=stdin or "", capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def run(installed: Path, environ: dict[str, str], foreign: Path) -> Runner:
    return Runner(installed, environ, foreign)


def test_the_command_says_its_version_and_its_commands(run: Runner) -> None:
    assert run("--version") == f"anneal {__version__}\n"
    assert "apply" in run("--help")


def test_the_resolver_of_uv_took_versions_that_agree(run: Runner) -> None:
    python = run.place.parent / ".local" / "share" / "pipx" / "venvs" / "anneal-gitops" / "bin" / "python"
    subprocess.run([uv(), "pip", "check", "--quiet", "--python", str(python)], env=run.environ, check=True)
    asked = "from importlib.metadata import version; print(version('boto3'), version('kubernetes'))"
    boto3, kubernetes = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    assert_current(boto3, kubernetes)


def test_the_resolver_of_pip_takes_such_versions_too(wheel: Path, environ: dict[str, str], tmp_path: Path) -> None:
    subprocess.run([uv(), "venv", "--quiet", "--seed", "--python", sys.executable, str(tmp_path / "venv")], env=environ, check=True)
    command = [str(tmp_path / "venv" / "bin" / "pip"), "install", "--quiet", "--dry-run", "--report", str(tmp_path / "report"), str(wheel)]
    subprocess.run(command, env=environ, check=True)
    taken = [each["metadata"] for each in json.loads((tmp_path / "report").read_text())["install"]]
    versions = {each["name"]: each["version"] for each in taken}
    assert_current(versions["boto3"], versions["kubernetes"])


def assert_current(boto3: str, kubernetes: str) -> None:
    """Not boto3 0.0.3, to which a resolver goes back where kubernetes has no ceiling."""
    assert Version(boto3) >= Version("1.44")
    assert Version(kubernetes) >= Version("37.0.1")


def test_a_first_configuration_is_written_and_checked(run: Runner) -> None:
    asked = ("--repository", "http://127.0.0.1:9/shop.git", "-n", "shop", "--provider", "none")
    assert "anneal check" in run("init", *asked)
    (run.place / "kubeconfig").write_text(NOWHERE)
    assert "127.0.0.1:9" in run("check", "--kubeconfig", "kubeconfig", code=1)


def test_a_directory_is_rendered_in_the_sandbox_and_a_missing_cluster_is_named(run: Runner) -> None:
    (run.place / "deploy").mkdir()
    (run.place / "deploy" / "front.yaml").write_text(MANIFEST)
    files = ("-f", "deploy", "--name", "shop", "-n", "shop")
    assert "colour: blue" in run("render", *files)
    assert "no kubeconfig was found" in run("apply", *files, "-y", code=1)


def test_the_server_serves_with_its_page(run: Runner, tmp_path: Path) -> None:
    """Its processes find the installed code and what is beside it, and the door answers before any cluster or git host does."""
    config, log = tmp_path / "anneal.yaml", tmp_path / "log"
    config.write_text(
        """
apiVersion: anneal.dev/v1alpha1
kind: Config
webhooks: {github: {secrets: [{env: HOOK}]}}
page:
  url: http://127.0.0.1:8080
  key: {env: KEY}
  tokens: [{name: ada, secret: {env: ADA}}]
  roles: [{role: viewer, users: [ada]}]
targets: [{name: shop, repository: {url: "http://127.0.0.1:9/shop.git"}, namespaces: [shop], cluster: {kubeconfig: {file: missing}}}]
"""
    )
    with log.open("wb") as out:
        command = [str(run.command), "--config", str(config), "serve", "--bind", "127.0.0.1:0"]
        environ = run.environ | {"HOOK": "a secret long enough to start", "KEY": "k" * 32, "ADA": "a token long enough to start"}
        served = subprocess.Popen(command, cwd=run.place, env=environ, stdout=out, stderr=out)
    try:
        door = f"http://127.0.0.1:{_port(log)}"
        assert _read(f"{door}/healthz") == ("application/json", '{"web":"ok"}\n')
        kind, html = _read(f"{door}/ui/login")
        assert (kind, "<h1>Sign in</h1>" in html) == ("text/html; charset=utf-8", True)
        files = set(re.findall(r'"(/ui/static/[^"]+)"', html))
        assert {_read(door + each)[0] for each in files} == {"text/css; charset=utf-8", "text/javascript; charset=utf-8", "image/svg+xml"}
    finally:
        served.send_signal(signal.SIGTERM)
        assert served.wait(PATIENCE) == 0, log.read_text()


def _read(url: str) -> tuple[str, str]:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def _port(log: Path) -> int:
    """Wait for the line that says where it listens."""
    found = until(lambda: [json.loads(line) for line in log.read_text().split("\n")[:-1] if '"listening"' in line], log.read_text)
    return int(found[0]["port"])


def test_pipx_installs_a_clone(clone: Path, environ: dict[str, str], tmp_path: Path) -> None:
    home = environ | {"HOME": str(tmp_path)}
    pipx(home, clone)
    done = subprocess.run([tmp_path / ".local" / "bin" / "anneal", "--version"], cwd=tmp_path, env=home, capture_output=True, check=True)
    assert done.stdout.decode() == f"anneal {__version__}\n"


@pytest.mark.parametrize("source", ["clone", "wheel"])
def test_uvx_runs_it_from(source: str, request: pytest.FixtureRequest, environ: dict[str, str], tmp_path: Path) -> None:
    there: Path = request.getfixturevalue(source)
    command = [uv(), "tool", "run", "--python", sys.executable, "--from", str(there), "anneal", "--version"]
    done = subprocess.run(command, cwd=tmp_path, env=environ | {"HOME": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"anneal {__version__}\n"
