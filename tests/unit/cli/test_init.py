"""`anneal init`: its questions on a terminal of 80 columns, its flags where there is none, and what it writes, or doesn't."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from handler.cli import init_hosts
from handler.cli.group import anneal
from handler.cli.init_questions import followed, name_of, url_wrong
from handler.config.load import load
from handler.config.settings import Rollback, Wait
from handler.model.advice import word
from handler.triggers import WEBHOOKS
from tests.terminal import EOF, INTERRUPT, too_wide, typed
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
URL = "https://git.example.com/acme/shop.git"
BY_SSH, SSH = "ssh://git@git.example.com/a/web.git", "/h/.ssh"
FLAGS = ("--repository", URL, "-n", "shop", "-n", "jobs", "--path", "")


def run(*arguments: str, **environ: str) -> Result:
    given = {"ANNEAL_CONFIG": None, "HOME": "/nonexistent", **environ}
    return CliRunner(env=given).invoke(anneal, arguments)


def asked(directory: Path, *dialogue: tuple[str, str], flags: tuple[str, ...] = ()) -> tuple[int, str]:
    environ = {"PYTHONPATH": str(ROOT), "ANNEAL_CONFIG": None, "HOME": "/h"}
    code, shown = typed([sys.executable, "-m", "handler", "init", *flags], dialogue, environ=environ, cwd=directory)
    assert too_wide(shown) == []
    return code, shown


# --- on a terminal
TO_PROVIDER = (
    ("Repository", URL),
    ("Variable of the environment", ""),
    ("Branch [main]: ", ""),
    ("[deploy]: ", ""),
    ("Name of the target [shop]: ", ""),
    ("Namespaces", "shop, jobs"),
)


@pytest.mark.parametrize("provider", ["gitlab", init_hosts.NONE])
def test_a_provider_can_be_chosen_and_is_explained(tmp_path: Path, provider: str) -> None:
    code, shown = asked(tmp_path, *TO_PROVIDER, ("[none]: ", provider))
    assert (code, "wrote anneal.yaml" in shown) == (0, True), shown
    settings = load(tmp_path / "anneal.yaml")
    (target,) = settings.targets
    assert (target.name, target.path, target.namespaces, target.namespace) == ("shop", "deploy", ("shop", "jobs"), "shop")
    chosen = [name for name in WEBHOOKS if getattr(settings.webhooks, name).secrets]
    assert chosen == [provider] * (provider != init_hosts.NONE)
    first = "anneal check" if provider == init_hosts.NONE else f'export {provider.upper()}_WEBHOOK_SECRET="$(openssl rand -hex 32)"'
    assert f"Next:\n  {first}\n" in shown
    assert (f"https://HOST/webhooks/{provider}" in shown) is (provider != init_hosts.NONE)
    assert "0.0.0.0" not in shown


def test_each_wrong_answer_is_told_and_asked_again(tmp_path: Path) -> None:
    code, shown = asked(
        tmp_path,
        ("Repository", "git@github.com:acme/shop.git"),
        ("or with a key ssh://git@github.com/acme/shop.git\nRepository", "https://u:p@github.com/acme/shop.git"),
        ("credentials go under", "https://github.com/acme/shop.git"),
        ("Variable of the environment", "ghp_0123456789"),
        ("looks like a token", "GIT-TOKEN"),
        ("e.g. GIT_TOKEN; its value is never asked for", "GIT_TOKEN"),
        ("Branch", "refs/heads/main"),
        ("leave out `refs/heads/`", "main"),
        ("Directory", "../up"),
        ("never leaves the repository", "."),
        ("Name of the target", "The Shop"),
        ("expected a DNS label", "shop"),
        ("Namespaces", "Shop"),
        ("expected a namespace", " , "),
        ("expected at least one namespace", "shop jobs"),
        ("Webhooks come from", "githab"),
        ("found 'githab'", ""),
    )
    assert code == 0, shown
    assert "→ write https://github.com/acme/shop.git\n" in shown
    (target,) = load(tmp_path / "anneal.yaml").targets
    assert (target.path, target.namespaces) == ("", ("shop", "jobs"))
    assert target.repository.auth.basic is not None
    assert str(target.repository.auth.basic.password) == "environment variable GIT_TOKEN"
    assert "  read -rs GIT_TOKEN; export GIT_TOKEN\n" in shown


def test_a_repository_by_ssh_is_asked_for_its_key(tmp_path: Path) -> None:
    code, shown = asked(
        tmp_path,
        ("Repository", "ssh://git@gitlab.example.com/acme/shop.git"),
        ("private key that may read it [/h/.ssh/id_ed25519]: ", "key"),
        ("expected the absolute path", "/keys/shop"),
        ("known_hosts lines [/h/.ssh/known_hosts]: ", ""),
        ("Branch", ""),
        ("Directory", ""),
        ("Name", ""),
        ("Namespaces", ""),
        ("[gitlab]: ", ""),
    )
    assert code == 0, shown
    ssh = load(tmp_path / "anneal.yaml").targets[0].repository.auth.ssh
    assert ssh is not None
    assert (str(ssh.private_key), ssh.known_hosts) == ("file /keys/shop", "/h/.ssh/known_hosts")


@pytest.mark.parametrize(("end", "after"), [(EOF, 0), (INTERRUPT, len(TO_PROVIDER))], ids=["EOF", "Ctrl-C"])
def test_an_aborted_init_writes_no_file(tmp_path: Path, end: str, after: int) -> None:
    prompts = [*TO_PROVIDER, ("[none]: ", "")]
    code, shown = asked(tmp_path, *prompts[:after], (prompts[after][0], end))
    assert (code, shown.rstrip().endswith("aborted")) == (1, True), shown
    assert list(tmp_path.iterdir()) == []


def test_init_doesnt_ask_for_values_of_flags(tmp_path: Path) -> None:
    code, shown = asked(tmp_path, ("Branch", "stable"), flags=(*FLAGS, "--name", "web", "--token-env", "T", "--provider", "gitea"))
    assert code == 0, shown
    (target,) = load(tmp_path / "anneal.yaml").targets
    assert (target.name, target.revision.branch) == ("web", "stable")


def test_a_file_that_is_there_is_never_replaced_unless_asked(tmp_path: Path) -> None:
    mine = tmp_path / "anneal.yaml"
    mine.write_text("# mine\n")
    code, shown = asked(tmp_path)
    assert (code, mine.read_text()) == (1, "# mine\n")
    assert "  anneal init -c anneal.yaml --force\n" in shown
    code, shown = asked(tmp_path, ("Repository", EOF), flags=("--force",))
    assert (code, mine.read_text()) == (1, "# mine\n"), "ended halfway, it is as it was"


# --- in a checkout
def checkout(directory: Path, remote: str, branch: str = "trunk", *files: str) -> Path:
    subprocess.run(["git", "init", "-q", "-b", branch, str(directory)], check=True)
    subprocess.run(["git", "-C", str(directory), "remote", "add", "origin", remote], check=True)
    for file in files:
        (directory / file).parent.mkdir(parents=True, exist_ok=True)
        (directory / file).touch()
    return directory


def test_a_checkout_suggests_its_repository_branch_and_directory(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work", "git@github.com:acme/shop.git", "trunk", "k8s/web.yaml")
    dialogue = (("[https://github.com/acme/shop.git]: ", ""), ("Variable", ""), ("Branch [trunk]: ", ""), ("[k8s]: ", ""))
    code, shown = asked(work, *dialogue, ("[shop]: ", ""), ("[shop]: ", ""), ("[github]: ", ""))
    assert code == 0, shown
    assert "Target shop follows trunk of https://github.com/acme/shop.git, k8s\n" in shown.replace("\r", "")
    (target,) = load(work / "anneal.yaml").targets
    assert (target.repository.url, target.revision.branch, target.path) == ("https://github.com/acme/shop.git", "trunk", "k8s")


def test_namespaces_that_manifests_name_are_suggested_and_those_that_may_be_missing_get_their_command(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work", URL, "main", "web/web.yaml")
    named = "apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n  namespace: {name}\n"
    (work / "web" / "web.yaml").write_text("---\n".join(named.format(kind=kind, name=kind.lower()) for kind in ("Job", "Service")))
    (work / "web" / "job.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: job\n")
    dialogue = (("Repository", ""), ("Variable", ""), ("Branch", ""), ("[web]: ", ""), ("[shop]: ", ""), ("[job service]: ", ""))
    code, shown = asked(work, *dialogue, ("[none]: ", ""))
    assert code == 0, shown
    assert "If the cluster lacks them:\n  kubectl create namespace service\n\nNext:" in shown.replace("\r", "")
    flags = ("-n", "default", "-n", "jobs", "-n", "jobs", "-o", "json", "--repository", URL)
    assert json.loads(run("init", "-c", str(tmp_path / "a.yaml"), *flags).stdout)["namespaces"] == ["jobs"]
    assert load(tmp_path / "a.yaml").targets[0].namespaces == ("default", "jobs")


def test_neither_a_directory_without_manifests_is_suggested_nor_a_name_that_isnt_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = checkout(tmp_path / "work", URL, "main", "web/web.yaml", "docs/readme.md")
    (work / "web" / "web.yaml").write_text("apiVersion: v1\nkind: Service\nmetadata: \n  name: web\n")
    for place, path in (("docs", "web"), ("web", "web")):
        monkeypatch.chdir(work / place)
        assert run("init", "-n", "shop", "-c", "a.yaml").exit_code == 0
        assert load(work / place / "a.yaml").targets[0].path == path
    (work / "web").rename(work / "a\nb")
    monkeypatch.chdir(work)
    assert run("init", "-n", "shop").exit_code == 0
    assert load(work / "anneal.yaml").targets[0].path == "deploy"


@each_row(
    ("remote", "url"),
    [
        (URL, URL),
        ("https://me:token-of-mine@git.example.com/acme/shop.git", URL),
        ("git@git.example.com:acme/shop.git", URL),
        (BY_SSH, BY_SSH),
        ("git@ssh.dev.azure.com:v3/o/p/r", "https://dev.azure.com/o/p/_git/r"),
        ("git://git.example.com/acme/shop.git", URL),
        ("/srv/git/shop.git", None),
        ("../shop.git", None),
        ("", None),
    ],
)
def test_a_remote_is_suggested_as_a_server_follows_it(remote: str, url: str | None) -> None:
    assert followed(remote) == url


def test_where_no_person_can_be_asked_a_checkout_needs_its_namespace_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout(tmp_path, URL, "trunk", "web.yaml"))
    result = run("init", "-n", "shop")
    assert result.exit_code == 0, result.output
    (target,) = load(tmp_path / "anneal.yaml").targets
    assert (target.repository.url, target.revision.branch, target.path, target.namespaces) == (URL, "trunk", "", ("shop",))
    assert target.renderer.exclude == ("anneal.yaml",), "it lies among the manifests"
    assert "anneal init --namespace" in run("init", "--force").stderr
    assert run("init", "-n", "shop", "-c", "prod.yaml").exit_code == 0
    assert load(tmp_path / "prod.yaml").targets[0].renderer.exclude == ("prod.yaml",)
    elsewhere = tmp_path / "etc"
    elsewhere.mkdir()
    assert run("init", "-n", "shop", "-c", str(elsewhere / "anneal.yaml")).exit_code == 0
    (target,) = load(elsewhere / "anneal.yaml").targets
    assert (target.repository.url, target.renderer.exclude) == (URL, ())


def test_another_repository_than_the_checkouts_gets_nothing_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout(tmp_path, URL, "trunk", "k8s/web.yaml"))
    assert run("init", "--repository", "https://git.example.com/acme/store.git", "-n", "shop").exit_code == 0
    (target,) = load(tmp_path / "anneal.yaml").targets
    assert (target.name, target.revision.branch, target.path, target.renderer.exclude) == ("store", "main", "deploy", ())
    (tmp_path / "k8s" / "web.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
    flags = ("--repository", "https://git.example.com/acme/store.git", "-n", "shop", "--path", "k8s", "--force")
    assert "kubectl create namespace shop" in run("init", *flags).stdout
    assert "kubectl create namespace shop" not in run("init", "--repository", URL, *flags[2:]).stdout


# --- where no person can be asked
@pytest.mark.parametrize("provider", [*WEBHOOKS, init_hosts.NONE])
def test_flags_alone_write_what_loads(tmp_path: Path, provider: str) -> None:
    path = tmp_path / "anneal.yaml"
    result = run("init", "-c", str(path), *FLAGS, "--provider", provider)
    assert result.exit_code == 0, result.output
    path.write_text(path.read_text().replace("# wait:", "wait:").replace("# rollback:", "rollback:"))  # what it offers loads, too
    (target,) = load(path).targets
    assert (target.wait, target.rollback) == (Wait(), Rollback(on_failure=True))
    assert f"anneal check -c {path}" in result.stdout
    again = run("init", "-c", str(path), *FLAGS)
    assert (again.exit_code, "is there already" in again.stderr) == (1, True)
    found = json.loads(run("init", "-c", str(path), *FLAGS, "--force", "-o", "json").stdout)
    assert found["next"] == [f"anneal check -c {path}", f"anneal run --trigger interval -c {path}"]
    assert load(path).targets


@pytest.mark.parametrize(
    ("flags", "missing", "command"),
    [
        ((), "--repository and --namespace", f"anneal init --repository {URL} --namespace shop"),
        (("-n", "web"), "--repository", f"anneal init --repository {URL} --namespace web"),
        (("--repository", URL, "--branch", "x"), "--namespace", f"anneal init --repository {URL} --branch x --namespace shop"),
        (
            ("--repository", BY_SSH, "-n", "web"),
            "--ssh-key and --known-hosts",
            f"anneal init --repository {BY_SSH} --ssh-key {SSH}/id_ed25519 --known-hosts {SSH}/known_hosts --namespace web",
        ),
    ],
)
def test_a_missing_flag_of_init_is_named_with_the_whole_command(tmp_path: Path, flags: tuple[str, ...], missing: str, command: str) -> None:
    result = run("init", "-c", str(tmp_path / "a.yaml"), *flags, HOME="/h")
    assert (result.exit_code, list(tmp_path.iterdir())) == (64, [])
    assert f"{missing}: missing, and there is no terminal to ask on. The whole command:\n  {command}\n" in result.stderr
    assert run(*shlex.split(command)[1:], "-c", str(tmp_path / "a.yaml")).exit_code == 0, "it can be pasted"


@pytest.mark.parametrize(
    ("flags", "code", "seen"),
    [
        (("--repository", "https://x:y@git.example.com/a/b.git", "-n", "b"), 1, "holds credentials"),
        (("--repository", "git@git.example.com:a/b.git", "-n", "b"), 1, "write https://git.example.com/a/b.git; or with a key ssh://"),
        (("--repository", URL, "-n", "Shop", "--name", "a b"), 1, "--name: expected a DNS label"),
        (("--repository", URL, "-n", "Shop", "--name", "a b"), 1, "--namespace: expected a namespace"),
        (("--repository", URL, "-n", "b", "--provider", "githab"), 1, "expected one of github, gitlab, gitea, bitbucket"),
        (("--repository", URL, "-n", "b", "--ssh-key", "/k"), 64, "--ssh-key doesn't go with this --repository"),
    ],
)
def test_flags_that_would_not_load_are_refused_at_once(tmp_path: Path, flags: tuple[str, ...], code: int, seen: str) -> None:
    result = run("init", "-c", str(tmp_path / "anneal.yaml"), *flags)
    assert (result.exit_code, list(tmp_path.iterdir())) == (code, [])
    assert seen in result.stderr


def test_where_it_cant_be_written_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    assert f"mkdir -p {tmp_path}/none" in run("init", "-c", f"{tmp_path}/none/anneal.yaml").stderr
    assert f"anneal init -c {tmp_path}/anneal.yaml" in run("init", "-c", str(tmp_path)).stderr


def test_the_file_that_the_environment_names_is_written_and_needs_no_flag(tmp_path: Path) -> None:
    result = run("init", *FLAGS, ANNEAL_CONFIG=f"{tmp_path}/mine.yaml")
    assert load(tmp_path / "mine.yaml").targets
    assert "\n  anneal check\n" in result.stdout


# --- what is suggested
@each_row(
    ("written", "meant"),
    [
        ("git@github.com:acme/shop.git", "write https://github.com/acme/shop.git; or with a key ssh://git@github.com/acme/shop.git"),
        (
            "gitlab.example.com:acme/shop",
            "write https://gitlab.example.com/acme/shop; or with a key ssh://git@gitlab.example.com/acme/shop",
        ),
        ("git@ssh.dev.azure.com:v3/o/p/r", "write https://dev.azure.com/o/p/_git/r; or with a key ssh://git@ssh.dev.azure.com/v3/o/p/r"),
        ("github.com/acme/shop", "write https://github.com/acme/shop"),
        ("git://git.example.com/acme/shop.git", "write https://git.example.com/acme/shop.git"),
        ("/srv/shop", "apply it as it is: anneal apply -f /srv/shop --name shop -n shop"),
        ("acme/shop", "write https://<host>/<path> or ssh://git@<host>/<path>"),
        ("https://github.com", f"write it like {URL}"),
        ("", "write https://<host>/<path> or ssh://git@<host>/<path>"),
    ],
)
def test_a_url_that_is_none_is_told_how_to_write_it(written: str, meant: str) -> None:
    wrong = url_wrong(written)
    assert wrong is not None
    assert wrong[1] == meant
    for url in re.findall(r"(?:https|ssh)://[^ ;<]+", meant if "<host>" not in meant else ""):
        assert url_wrong(url) is None


@each_row(("url", "name"), [(URL, "shop"), ("https://x.example.com/A/My_Shop.app/", "my-shop-app"), ("https://x.example.com/a/_", "app")])
def test_a_target_is_called_like_its_repository(url: str, name: str) -> None:
    assert name_of(url) == name


@each_row(
    ("url", "provider"),
    [
        ("https://github.example.com/a/b", "github"),
        ("ssh://git@gitlab.com/a/b", "gitlab"),
        ("https://codeberg.org/a/b", "gitea"),
        ("https://bitbucket.org/a/b", "bitbucket"),
        ("https://dev.azure.com/o/p/_git/r", "azuredevops"),
        ("https://git.example.com/github/b", init_hosts.NONE),
    ],
)
def test_a_provider_is_guessed_by_the_host_alone(url: str, provider: str) -> None:
    assert init_hosts.guess(url, WEBHOOKS) == provider


def test_there_is_a_row_for_each_trigger_and_its_page_says_the_same() -> None:
    assert init_hosts.HOSTS.keys() == WEBHOOKS.keys()
    table = (ROOT / "docs" / "webhooks.md").read_text().partition("| provider | path |")[2].partition("\n\n")[0]
    for provider, row in init_hosts.HOSTS.items():
        (told, *_) = [line for line in table.splitlines() if f"`/webhooks/{provider}`" in line]
        labels = re.findall(r"^  ([A-Z][A-Za-z ]+?)  ", row.steps, re.MULTILINE)
        assert [label for label in labels if label not in told and label not in ("SSL", "Events", "Trigger")] == []


def test_what_any_sender_is_told_to_send_is_accepted(tmp_path: Path) -> None:
    """The lines are run by a shell, with a curl that only says what it was given."""
    curl = tmp_path / "curl"
    curl.write_text('#!/bin/sh\nprintf "%s\\0" "$@"\n')
    curl.chmod(0o755)
    secret = "canary-of-sixteen-letters-and-more"
    lines = (
        init_hosts.of("generic")
        .steps.partition("\n")[2]
        .format(url="https://h/webhooks/generic", secret="S", body=word(json.dumps({"repository": URL, "ref": "refs/heads/main"})))
    )
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "S": secret}
    sent = subprocess.run(["sh", "-c", lines], env=environ, capture_output=True, text=True, check=True).stdout.split("\0")[:-1]
    body = sent[-1].encode()
    headers = dict(each.split(": ", 1) for each in sent if ": " in each and not each.startswith("{"))
    assert headers["X-Signature-256"] == "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    event = WEBHOOKS["generic"].read({**headers, "Content-Type": "application/json"}, body)
    assert [change.ref for change in event.changes] == ["refs/heads/main"]
