"""Secrets are resolved at the last moment, refused when weak, and never shown."""

from __future__ import annotations

import copy
import logging
import os
import pickle
import traceback
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from handler.config.git_settings import BasicAuth, GitHubAppAuth, Repository, RepositoryAuth, SecretRef, SshAuth, WebhookSecrets
from handler.config.secret_sources import LARGEST
from handler.config.secrets import RUNS, Secret, resolve, resolve_all
from handler.config.settings import PrometheusSettings, ReplaySettings, ReplayToken, Settings, Target, WebhookSettings
from handler.model.errors import SecretUnavailable
from tests.unit.rows import each_row

CANARY = "CANARY-6f1e0b-do-not-show"
OTHER = "CANARY-another-secret-value"


def ref(name: str) -> SecretRef:
    return SecretRef(env=name)


def target(name: str, *, password: str = "", webhook: str = "") -> Target:
    auth = RepositoryAuth(BasicAuth("oauth2", ref(password)) if password else None)
    own = WebhookSecrets((ref(webhook),) if webhook else ())
    return Target(name, Repository(f"https://git.example.com/{name}.git", auth=auth, webhook=own), (name,))


SETTINGS = Settings(
    targets=(target("shop", password="PASSWORD"), target("web"), target("infra", webhook="INFRA")),
    webhooks=WebhookSettings(WebhookSecrets((ref("NEW"), ref("OLD"))), WebhookSecrets((ref("GITLAB"),))),
    replay=ReplaySettings((ReplayToken("ci", ref("CI"), ("shop",)), ReplayToken("ops", ref("OPS")))),
)
ENVIRON = {name: f"{CANARY}-{name}" for name in ("PASSWORD", "INFRA", "NEW", "OLD", "GITLAB", "CI", "OPS")}


def test_a_secret_shows_itself_only_when_asked(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret(CANARY)
    logging.getLogger("test").error("%s %r %s", secret, secret, [secret])
    shown = f"{secret} {secret!r} {secret!s:>5} {[secret]} {caplog.text}"
    assert CANARY not in shown
    assert secret.reveal() == CANARY
    with pytest.raises(AttributeError, match="doesn't change"):
        secret._value = OTHER


@each_row("send", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_secret_is_never_sent_anywhere(send: object) -> None:
    assert callable(send)
    with pytest.raises(TypeError, match="can't be pickled"):
        send(Secret(CANARY))


@each_row(("candidate", "same"), [(CANARY, True), (CANARY + " ", False), (CANARY[:-1], False), ("", False), ("é", False)])
def test_a_secret_is_compared_by_digest(candidate: str, same: bool) -> None:
    assert Secret(CANARY).matches(candidate.encode()) is same
    assert not Secret(CANARY).matches(b"\xff\xfe")
    assert Secret(CANARY) != Secret(CANARY)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_secret_file_loses_one_trailing_newline(tmp_path: Path, end: str) -> None:
    (tmp_path / "token").write_bytes(f"{CANARY} \n{end}".encode() if end else CANARY.encode())
    value = resolve(SecretRef(file=str(tmp_path / "token")), {}).reveal()
    assert value == (f"{CANARY} \n" if end else CANARY)


@each_row(
    ("value", "message"),
    [
        (None, "environment variable TOKEN: is not set"),
        ("", "environment variable TOKEN: is empty"),
        (" \t\n", "environment variable TOKEN: is empty"),
        (f"{CANARY}\udcff", "environment variable TOKEN: is not UTF-8 text"),
    ],
)
def test_a_variable_that_holds_no_secret(value: str | None, message: str) -> None:
    with pytest.raises(SecretUnavailable) as caught:
        resolve(ref("TOKEN"), {} if value is None else {"TOKEN": value})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "doesn't exist"),
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (CANARY.encode() + b"\xff", "is not UTF-8 text"),
        (b"x" * (LARGEST + 1), f"is larger than {LARGEST} bytes"),
    ],
)
def test_a_file_that_holds_no_secret(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SecretUnavailable) as caught:
        resolve(SecretRef(file=str(file)), {})
    assert str(caught.value) == f"file {file}: {message}"
    assert caught.value.__context__ is None


def test_a_pipe_or_directory_is_no_secret(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(SecretUnavailable, match="is not a file"):
            resolve(SecretRef(file=str(path)), {})


def test_a_file_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(SecretUnavailable, match="loop: "):
        resolve(SecretRef(file=str(loop)), {})
    with pytest.raises(SecretUnavailable, match="can't be read: File name too long"):
        resolve(SecretRef(file="x" * 300), {})


def test_all_secrets_of_the_settings_are_resolved() -> None:
    secrets = resolve_all(SETTINGS, ENVIRON)
    github = {(accepted.secret.reveal(), accepted.targets) for accepted in secrets.webhook("github")}
    assert github == {
        (ENVIRON["NEW"], frozenset({"shop", "web"})),
        (ENVIRON["OLD"], frozenset({"shop", "web"})),
        (ENVIRON["INFRA"], frozenset({"infra"})),
    }
    assert [accepted.secret.reveal() for accepted in secrets.webhook("gitlab")] == [ENVIRON["GITLAB"], ENVIRON["INFRA"]]
    assert [accepted.secret.reveal() for accepted in secrets.webhook("generic")] == [ENVIRON["INFRA"]]
    assert secrets.webhook("maxBody") == secrets.webhook("svn") == ()
    assert secrets.read(ref("PASSWORD")).reveal() == ENVIRON["PASSWORD"]
    with pytest.raises(SecretUnavailable, match="environment variable CI: is no git host's secret"):
        secrets.read(ref("CI"))


def test_prometheus_tokens_are_resolved_for_runs() -> None:
    settings = Settings((target("shop"),), prometheus=(PrometheusSettings("https://prometheus.example.com", ref("METRICS")),))
    secrets = resolve_all(settings, {"METRICS": CANARY}, needs=RUNS)
    assert secrets.read(ref("METRICS")).reveal() == CANARY
    assert resolve_all(settings, {}, needs={"git", "webhooks", "tokens"}).metrics == {}, "the door asks no Prometheus"
    with pytest.raises(SecretUnavailable, match=r"prometheus\[https://prometheus.example.com\].token: .* METRICS is not set"):
        resolve_all(settings, {}, needs=RUNS)


def test_a_replay_token_is_found_by_its_value() -> None:
    secrets = resolve_all(SETTINGS, ENVIRON)
    assert secrets.token(ENVIRON["CI"].encode()) == SETTINGS.replay.tokens[0]
    assert secrets.token(ENVIRON["OPS"].encode()) == SETTINGS.replay.tokens[1]
    assert secrets.token(ENVIRON["NEW"].encode()) is None
    assert secrets.token(b"") is None


KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nCANARYone/line+of+it==\nCANARYanother/line+of+it\n-----END OPENSSH PRIVATE KEY-----\n"
WAYS = Settings(
    (
        replace(target("keyed"), repository=Repository("ssh://h/x", auth=RepositoryAuth(ssh=SshAuth(ref("KEY"), "known", ref("PHRASE"))))),
        replace(target("app"), repository=Repository("https://h/x", auth=RepositoryAuth(github_app=GitHubAppAuth("a", 1, ref("PEM"))))),
    )
)


def test_keys_and_passphrases_are_resolved() -> None:
    secrets = resolve_all(WAYS, {"KEY": KEY, "PHRASE": OTHER, "PEM": KEY.replace("CANARY", "CANARY2")}, needs={"git"})
    assert [secrets.read(ref(name)).reveal()[-2:] for name in ("KEY", "PHRASE")] == ["-\n", OTHER[-2:]]


def test_a_missing_key_is_named_by_its_place() -> None:
    with pytest.raises(SecretUnavailable) as caught:
        resolve_all(WAYS, {}, needs={"git"})
    assert str(caught.value).splitlines() == [
        "targets[keyed].repository.auth.ssh.privateKey: environment variable KEY is not set; export KEY=VALUE, where Anneal runs",
        "targets[keyed].repository.auth.ssh.passphrase: environment variable PHRASE is not set; export PHRASE=VALUE, where Anneal runs",
        "targets[app].repository.auth.githubApp.privateKey: environment variable PEM is not set; export PEM=VALUE, where Anneal runs",
    ]


def test_without_webhooks_only_git_passwords_are_needed() -> None:
    secrets = resolve_all(SETTINGS, {"PASSWORD": "short"}, needs={"git"})
    assert secrets.read(ref("PASSWORD")).reveal() == "short"
    assert (secrets.webhook("github"), secrets.token(b"x")) == ((), None)


def test_every_weak_or_missing_secret_is_reported_at_once() -> None:
    environ = {"PASSWORD": " ", "INFRA": "CANARY-short", "NEW": "", "OLD": f"   {CANARY[:10]}      ", "CI": "x" * 15, "OPS": CANARY}
    with pytest.raises(SecretUnavailable) as caught:
        resolve_all(SETTINGS, environ)
    short = "is shorter than 16 characters; make one with `openssl rand -hex 32`"
    new = 'export {}="$(openssl rand -hex 32)"; or set it to what the other side has already'
    assert str(caught.value).splitlines() == [
        "targets[shop].repository.auth.basic.password: environment variable PASSWORD is empty; export PASSWORD=VALUE, where Anneal runs",
        f"webhooks.github.secrets: environment variable NEW is empty; {new.format('NEW')}",
        f"webhooks.github.secrets: environment variable OLD {short}",
        f"targets[infra].repository.webhook.secrets: environment variable INFRA {short}",
        f"webhooks.gitlab.secrets: environment variable GITLAB is not set; {new.format('GITLAB')}",
        f"replay.tokens[ci].secret: environment variable CI {short}",
    ]
    assert "CANARY" not in "".join(traceback.format_exception(caught.value))


def test_two_tokens_of_the_same_value_cannot_be_told_apart() -> None:
    with pytest.raises(SecretUnavailable) as caught:
        resolve_all(SETTINGS, ENVIRON | {"OPS": ENVIRON["CI"]})
    assert str(caught.value) == (
        "replay.tokens[ops].secret: environment variable OPS has the same value as the token ci; make one with `openssl rand -hex 32`"
    )


def test_the_repr_of_secrets_shows_nothing() -> None:
    secrets = resolve_all(SETTINGS, ENVIRON)
    shown = f"{secrets} {secrets!r} {secrets.webhook('github')} {secrets.tokens} {secrets.git} {secrets.known}"
    assert CANARY not in shown
    with pytest.raises(TypeError):
        asdict(secrets)


@each_row("token", ["whsec_not-base64-at-all!", "whsec_c2hvcnQ=c2hvcnQ=", "whsec_c2hvcnRzaG9ydA=="])
def test_half_a_signing_token_is_refused_at_start(token: str) -> None:
    settings = Settings(targets=(), webhooks=WebhookSettings(gitlab=WebhookSecrets((ref("TOKEN"),))))
    with pytest.raises(SecretUnavailable) as caught:
        resolve_all(settings, {"TOKEN": token})
    seen = "environment variable TOKEN begins with whsec_, but no base64 follows"
    assert str(caught.value) == f"webhooks.gitlab.secrets: {seen}; copy the whole signing token, as GitLab shows it"
