"""Commands in a stranger's checkout: its ./anneal.yaml counts once a person said so. A real listener, a real terminal, a real shell."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.in_process import typed_in
from tests.patience import PATIENCE
from tests.terminal import EOF, INTERRUPT, typed

ROOT = Path(__file__).resolve().parents[3]
ANNEAL = [sys.executable, "-P", "-m", "handler"]
QUESTION = "names just this? [y/N]: "
CANARY = "canary-of-the-persons-own-file"
MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
EXEC = """
apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "http://127.0.0.1:PORT"}}]
users:
- name: a
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: sh, args: [-c, "touch ran"]}}
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
"""
HOSTILE = """apiVersion: anneal.dev/v1alpha1
kind: Config
targets:
- name: a
  repository: {url: "http://127.0.0.1:PORT/a.git", auth: {basic: {username: u, password: {file: FILE}}}}
  cluster: {kubeconfig: {file: kubeconfig}}
  namespaces: [default]
"""


class Listener:
    """Writes down what it is sent, and hangs up."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                given, _ = self._socket.accept()
            except OSError:
                return
            with given:
                self.got.append(given.recv(65536))

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def stranger() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


@pytest.fixture
def checkout(tmp_path: Path, stranger: Listener) -> Path:
    """A checkout whose configuration sends a file of the person's, and whose kubeconfig runs a program."""
    for name in ("home", "checkout/deploy", "checkout/.git", "bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home/key").write_text(CANARY)
    found = tmp_path / "checkout"
    for name, text in {"anneal.yaml": HOSTILE, "kubeconfig": EXEC}.items():
        (found / name).write_text(text.replace("PORT", str(stranger.port)).replace("FILE", str(tmp_path / "home/key")))
    (found / "deploy/m.yaml").write_text(MANIFEST)
    (tmp_path / "bin/anneal").write_text(f'#!/bin/sh\nexec {shlex.join(ANNEAL)} "$@"\n')
    (tmp_path / "bin/anneal").chmod(0o755)
    return found


def environ(checkout: Path) -> dict[str, str]:
    home = checkout.parent / "home"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANNEAL_", "XDG_", "KUBE"))}
    return {
        **kept,
        "HOME": str(home),
        "KUBECONFIG": str(home / "none"),
        "PYTHONPATH": str(ROOT),
        "PATH": f"{checkout.parent}/bin:{kept['PATH']}",
    }


def run(checkout: Path, command: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell where no terminal is."""
    return typed_in(command, {**environ(checkout), **more}, checkout, "sh")


def at_terminal(checkout: Path, command: str, *answers: str) -> tuple[int, str]:
    wanted: dict[str, str | None] = {"XDG_STATE_HOME": None, "ANNEAL_CONFIG": None, **environ(checkout)}
    return typed(shlex.split(command), [(QUESTION, each) for each in answers], environ=wanted, cwd=checkout)


def harmless(checkout: Path, stranger: Listener) -> bool:
    return not stranger.got and not (checkout / "ran").exists()


CONFIGURED = (
    "anneal status",
    "anneal render a",
    "anneal plan",
    "anneal apply -y a",
    "anneal check a",
    "anneal doctor",
    "anneal history a",
    "anneal run",
    "anneal serve --bind 127.0.0.1:0",
    "anneal suspend a --reason 'no; touch ran'",
    "anneal rbac a -f deploy",
    "anneal retire b --keep",
    "anneal -o json status",
    "anneal status | cat",
)


@pytest.mark.parametrize("command", CONFIGURED)
def test_without_a_terminal_nothing_is_sent_or_run(checkout: Path, stranger: Listener, command: str) -> None:
    done = run(checkout, command)
    assert str(checkout / "anneal.yaml") in done.stdout + done.stderr
    assert harmless(checkout, stranger)
    assert done.returncode == ("|" not in command)


def test_a_terminal_asks_and_lists_all_that_is_named(checkout: Path, stranger: Listener) -> None:
    code, shown = at_terminal(checkout, "anneal render a", "")
    assert (code, harmless(checkout, stranger)) == (1, True)
    for each in (
        f"http://127.0.0.1:{stranger.port}/a.git",
        f"http://127.0.0.1:{stranger.port}\n",
        "home/key",
        "kubeconfig",
        "sh -c 'touch ran'",
    ):
        assert each in shown, each


@pytest.mark.parametrize("answer", ["n", "", EOF, INTERRUPT])
def test_anything_but_yes_is_no_and_nothing_is_remembered(checkout: Path, stranger: Listener, answer: str) -> None:
    for _ in range(2):
        code, _ = at_terminal(checkout, "anneal render a", answer)
        assert code != 0
    assert (harmless(checkout, stranger), [*(checkout.parent / "home").rglob("trusted")]) == (True, [])


def test_yes_is_remembered_until_something_else_is_named(checkout: Path, stranger: Listener) -> None:
    at_terminal(checkout, "anneal render a", "y")
    assert any(b"Authorization" in each for each in stranger.got)
    (state,) = (checkout.parent / "home/.local/state/anneal").rglob("trusted/*")
    assert [each.stat().st_mode & 0o777 for each in (state, state.parent, state.parent.parent)] == [0o600, 0o700, 0o700]
    file = checkout / "anneal.yaml"
    file.write_text(file.read_text().replace("[default]", "[default, other]\n  path: deploy"))
    stranger.got.clear()
    assert run(checkout, "anneal render a").returncode == 1
    assert stranger.got, "an edit of a namespace and a path doesn't ask again, and a terminal isn't needed for what is remembered"
    file.write_text(file.read_text().replace("home/key", "home/.netrc"))
    stranger.got.clear()
    assert at_terminal(checkout, "anneal render a", "n")[0] == 1, "another file is asked for again"
    assert harmless(checkout, stranger)


def test_each_name_is_one_line_that_nothing_can_forge(checkout: Path) -> None:
    evil = r'"touch ran\e[2J\nUse it, now and whenever it names just this? [y/N]: y\u202e' + " " * 90 + "x" * 500 + 'END"'
    (checkout / "kubeconfig").write_text((checkout / "kubeconfig").read_text().replace('"touch ran"', evil))
    code, shown = at_terminal(checkout, "anneal render a", "n")
    assert (code, shown.count("\nUse it"), "END" in shown) == (1, 1, True)
    assert not any(each in shown for each in ("\x1b", "\u202e", " " * 10))


# --- what needs no configuration
BARE = {
    "anneal render -f deploy --name x -n x": 0,
    "anneal plan -f deploy --name x -n x": 1,
    "anneal apply -f deploy --name x -n x -y": 1,
    "anneal check -f deploy --name x -n x": 1,
    "anneal vendor .": 0,
    "anneal vendor . --lock": 0,
    "anneal import -f deploy": 1,
    "anneal init -c new.yaml --repository https://git.example.com/b.git -n x --path ''": 0,
    "anneal init --force --repository https://git.example.com/b.git -n x --path ''": 0,
    "anneal locutus --one-off --render-only --renderer.file.dir=deploy": 0,
    "anneal kubernixos": 1,
    "anneal completion bash": 0,
    "anneal --help": 0,
}


@pytest.mark.parametrize(("command", "code"), BARE.items())
def test_what_needs_no_configuration_doesnt_read_it(checkout: Path, stranger: Listener, command: str, code: int) -> None:
    (checkout / "anneal.yaml").write_text(f"{(checkout / 'anneal.yaml').read_text()}installation: strangers\nunknown: 1\n")
    done = run(checkout, command)
    assert (done.returncode, "counts" in done.stdout + done.stderr) == (code, False), done.stdout + done.stderr
    assert ("unknown" in done.stderr, harmless(checkout, stranger)) == (False, True)
    assert "strangers" not in "".join(each.read_text() for each in checkout.glob("*.yaml") if f"-c {each.name}" in command)


@pytest.mark.parametrize(("flag", "signs"), [("", False), ("-c anneal.yaml", True)])
def test_vendor_signs_in_by_a_configuration_that_is_named_alone(checkout: Path, stranger: Listener, flag: str, signs: bool) -> None:
    (checkout / "deploy/kustomization.yaml").write_text(f"resources: ['http://127.0.0.1:{stranger.port}/a.git?ref=v1']\n")
    run(checkout, f"anneal vendor deploy {flag}")
    assert stranger.got
    assert any(b"Authorization" in each for each in stranger.got) is signs


def test_completion_completes_nothing_of_it_until_it_counts(checkout: Path) -> None:
    words = {"_ANNEAL_COMPLETE": "bash_complete", "COMP_WORDS": "anneal render ", "COMP_CWORD": "2"}
    asked = run(checkout, "anneal", **words)
    assert (asked.stdout.strip(), asked.stderr) == ("", "")
    at_terminal(checkout, "anneal render a", "y")
    assert "plain,a" in run(checkout, "anneal", **words).stdout


def test_what_init_writes_counts_at_once_until_it_names_something_else(checkout: Path, stranger: Listener) -> None:
    (checkout / "anneal.yaml").unlink()
    made = run(checkout, f"anneal init --repository http://127.0.0.1:{stranger.port}/a.git -n x --path deploy --provider none -o json")
    assert json.loads(made.stdout)["next"] == ["anneal check", "anneal run --trigger interval"]
    assert "http://127.0.0.1" in run(checkout, "anneal render").stderr
    assert stranger.got
    file = checkout / "anneal.yaml"
    file.write_text(file.read_text() + f"prometheus: [{{url: 'http://127.0.0.1:{stranger.port}', token: {{env: HOME}}}}]\n")
    stranger.got.clear()
    assert run(checkout, "anneal render").returncode == 1
    assert harmless(checkout, stranger)


def test_where_nothing_can_be_remembered_init_prints_commands_that_name_the_file(checkout: Path) -> None:
    made = run(
        checkout,
        "anneal init --force --repository https://git.example.com/b.git -n x --path '' --provider none -o json",
        HOME="/nonexistent",
    )
    assert json.loads(made.stdout)["next"][0] == "anneal check -c anneal.yaml"


def test_init_writes_through_no_link_that_lies_there(checkout: Path) -> None:
    (checkout / "anneal.yaml").unlink()
    kept = checkout.parent / "home/key"
    script = (
        f"import os; os.symlink({str(kept)!r}, f'.anneal.yaml.part-{{os.getpid()}}');"
        f" os.execv({sys.executable!r}, {[*ANNEAL, 'init', '--repository', 'https://git.example.com/b.git', '-n', 'x', '--path', '']!r})"
    )
    run(checkout, shlex.join([sys.executable, "-c", script]))
    assert kept.read_text() == CANARY


# --- what else lies in a checkout
def test_programs_that_git_would_run_arent_run_and_its_work_tree_isnt_followed(checkout: Path, stranger: Listener) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=checkout, check=True)
    touch = f"touch {checkout}/ran"
    for key in (
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "credential.helper",
        "filter.a.clean",
        "filter.a.smudge",
        "filter.a.process",
    ):
        subprocess.run(["git", "config", key, f"!{touch}" if key == "credential.helper" else touch], cwd=checkout, check=True)
    subprocess.run(["git", "config", "remote.origin.url", "https://git.example.com/strange.git"], cwd=checkout, check=True)
    for hook in ("post-checkout", "pre-commit", "post-index-change", "fsmonitor-watchman"):
        (checkout / ".git/hooks" / hook).write_text(f"#!/bin/sh\n{touch}\n")
        (checkout / ".git/hooks" / hook).chmod(0o755)
    (checkout / ".gitattributes").write_text("* filter=a\n")
    subprocess.run(["git", "config", "core.worktree", str(checkout.parent / "home")], cwd=checkout, check=True)
    (checkout.parent / "home/k8s").mkdir()
    (checkout.parent / "home/k8s/secret.yaml").write_text(MANIFEST.replace("name: a", "name: a, namespace: persons-own"))
    (checkout / "anneal.yaml").unlink()
    assert run(checkout, "anneal render -f deploy --name x -n x").returncode == 0
    made = run(checkout, "anneal init -n x -o json")
    assert (made.returncode, harmless(checkout, stranger)) == (0, True), made.stderr
    text = (checkout / "anneal.yaml").read_text()
    assert ("https://git.example.com/strange.git" in text, "path: deploy" in text, "persons-own" in text) == (True, True, False)


def test_a_lock_and_rules_of_sops_in_a_checkout_are_asked_and_opened_by_nothing(checkout: Path, stranger: Listener) -> None:
    url = f"http://127.0.0.1:{stranger.port}"
    lock = f'charts:\n- url: "{url}"\n  name: "a"\n  version: "1.0.0"\n  digest: "sha256:{"0" * 64}"\n'
    (checkout / "anneal.lock").write_text(lock)
    (checkout / "deploy/anneal.lock").write_text(lock)
    (checkout / ".sops.yaml").write_text(
        f"creation_rules: [{{hc_vault_transit_uri: '{url}/v1/transit/keys/a', key_groups: [{{age: [a]}}]}}]\n"
    )
    bare = run(checkout, "anneal render -f deploy/m.yaml --name x -n x")
    assert (bare.returncode, "name: a" in bare.stdout) == (0, True)
    closed = "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\nstringData: {a: 'ENC[AES256_GCM,data:YQ==,iv:YQ==,tag:YQ==,type:str]'}\n"
    key = f"hc_vault: [{{vault_address: '{url}', engine_path: transit, key_name: a, created_at: '2024-01-01T00:00:00Z', enc: a}}]"
    (checkout / "deploy/s.yaml").write_text(
        f"{closed}sops: {{{key}, lastmodified: '2024-01-01T00:00:00Z', mac: 'ENC[a]', version: 3.9.0}}\n"
    )
    refused = run(
        checkout, "anneal render -f deploy --name x -n x", SOPS_AGE_KEY_FILE=str(checkout.parent / "home/key"), VAULT_TOKEN=CANARY
    )
    locked = run(checkout, "anneal vendor deploy --lock")
    assert (refused.returncode, locked.returncode, harmless(checkout, stranger)) == (1, 0, True), refused.stderr + locked.stderr


def test_serve_loads_no_code_of_the_working_directory(checkout: Path, stranger: Listener) -> None:
    touch = f"import pathlib\npathlib.Path({str(checkout / 'ran')!r}).touch()\n"
    for name in ("handler/__init__.py", "handler/web/__init__.py", "handler/web/__main__.py", "flask.py", "yaml.py", "gunicorn.conf.py"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(touch)
    config = checkout.parent / "own.yaml"
    config.write_text("apiVersion: anneal.dev/v1alpha1\nkind: Config\ntargets: []\n")
    command = [*ANNEAL, "serve", "-c", str(config), "--bind", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=checkout, env=environ(checkout), stderr=subprocess.PIPE, text=True) as served:
        assert served.stderr
        try:
            for line in served.stderr:
                if '"listening"' in line and "port" in line:
                    answer = _asked(json.loads(line)["port"])
                    break
        finally:
            served.terminate()
    assert (answer.startswith(b"HTTP/1.1 200"), (checkout / "ran").exists()) == (True, False)


def _asked(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as asking:
        asking.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        return asking.recv(4096)
