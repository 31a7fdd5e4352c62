"""`anneal explain-delivery`: what the door would answer, said offline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from handler.cli.group import anneal
from handler.web.app import create_app
from tests.fakes import host_webhooks
from tests.fakes.host_webhooks import KEYS, ONE_OF_EACH, PROVIDERS, PUSHES, SAMPLES, Sample
from tests.fakes.signed_webhooks import INFRA, Kept
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

CONFIG = """\
apiVersion: anneal.dev/v1alpha1
kind: Config
webhooks:
  github: {secrets: [{env: GITHUB}]}
  gitlab: {secrets: [{env: GITLAB}, {env: SIGNING}]}
  gitea: {secrets: [{env: GITEA}]}
  bitbucket: {secrets: [{env: BITBUCKET}]}
  azuredevops: {secrets: [{env: AZUREDEVOPS}]}
replay: {tokens: [{name: ci, secret: {env: NEVER_SET}}]}
targets:
  - name: shop
    repository: &shop
      url: https://git.example.com/acme/shop.git
      aliases: ["https://git.example.com/scm/acme/shop.git", "https://git.example.com/acme/store/_git/shop"]
      auth: {basic: {username: x, password: {env: NEVER_SET_EITHER}}}
      feedback: {pullRequests: true, host: gitea, token: {env: NOR_THIS}}
    namespaces: [shop]
  - {name: shop-versions, repository: *shop, revision: {semver: ">=1 <2"}, namespaces: [versions]}
  - {name: shop-paused, repository: *shop, suspend: true, namespaces: [paused]}
  - name: infra
    repository: {url: https://git.example.com/acme/infra.git, webhook: {secrets: [{env: INFRA}]}}
    namespaces: [infra]
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "anneal.yaml"
    path.write_text(CONFIG)
    return str(path)


def explain(config: str, *arguments: str, body: bytes = b"", **environ: str) -> Result:
    env = {"ANNEAL_CONFIG": None, **KEYS, **environ}
    return CliRunner(env=env).invoke(anneal, ["-c", config, "explain-delivery", *arguments], input=body)


def written(directory: Path, headers: dict[str, str]) -> str:
    path = directory / "headers.txt"
    path.write_text("".join(f"{name}: {value}\r\n" for name, value in headers.items()), encoding="latin-1", newline="")
    return str(path)


def sample_file(sample: Sample) -> str:
    return str(host_webhooks.SAMPLES_DIRECTORY / sample.provider / f"{sample.name}.json")


@each_row("sample", [sample for sample in ONE_OF_EACH if sample.provider != "generic"])
def test_explain_delivery_answers_as_the_webhook_endpoint(config: str, tmp_path: Path, sample: Sample) -> None:
    sent = host_webhooks.headers(sample.provider, sample.body, sample.event)
    door = create_app(host_webhooks.settings(), host_webhooks.secrets(), Kept(), lambda: True).test_client()
    answered = door.post(f"/webhooks/{sample.provider}", data=sample.body, headers=sent)
    result = explain(config, sample_file(sample), "--provider", sample.provider, "--headers", written(tmp_path, sent), "-o", "json")
    assert result.exit_code == 0
    said = json.loads(result.stdout)
    assert (said["status"], said["verified"]) == (answered.status_code, True)
    for rows in ("matched", "ignored"):
        assert _reasons(said[rows]) == _reasons(answered.get_json()[rows])


def _reasons(rows: list[dict[str, Any]]) -> list[tuple[str | None, str]]:
    return [(row["target"], row["reason"]) for row in rows]


def test_without_headers_the_signature_is_not_looked_at_and_the_guess_is_said(config: str) -> None:
    result = explain(config, sample_file(PUSHES["gitea"]), GITEA="")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "provider: gitea, as the shape of the payload shows",
        "signature: not looked at: --headers FILE gives the request's headers",
        "event: push of git.example.com/acme/shop by ada",
        "✓ shop: it follows refs/heads/main",
        "- shop-versions: it follows the highest tag in >=1 <2, and refs/heads/main was pushed",
        "- shop-paused: suspended in the configuration",
        "with a good signature the answer is 202: 1 to run",
    ]


PLANNED = "the plan of pull request 12 is made for the targets that follow its base branch"


def test_a_pull_request_is_shown_by_the_name_that_it_waits_under(config: str) -> None:
    (sample,) = [sample for sample in SAMPLES if str(sample) == "github/pull_request-opened"]
    assert explain(config, sample_file(sample)).stdout.splitlines() == [
        "provider: github, as the shape of the payload shows",
        "signature: not looked at: --headers FILE gives the request's headers",
        "event: pull-request 12 of git.example.com/acme/shop by ada",
        f"✓ shop~12: {PLANNED}",
        "with a good signature the answer is 202: 1 to run",
    ]


def test_a_comment_shows_as_its_id_and_never_as_its_text(config: str) -> None:
    (sample,) = [sample for sample in SAMPLES if str(sample) == "gitlab/note"]
    said = json.loads(explain(config, sample_file(sample), "-o", "json").stdout)
    assert (said["event"]["kind"], said["event"]["pullRequest"], said["event"]["comment"]) == ("pull-request", 12, "50772616")
    assert said["matched"] == [{"target": "shop~12", "reason": PLANNED, "hint": ""}]
    push = json.loads(explain(config, sample_file(PUSHES["gitlab"]), "-o", "json").stdout)["event"]
    assert (push["pullRequest"], push["comment"]) == (None, "")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_shape_of_each_providers_push_is_enough(config: str, provider: str) -> None:
    said = json.loads(explain(config, "-", "-o", "json", body=PUSHES[provider].body).stdout)
    assert (said["provider"], said["guessed"], said["verified"], said["status"]) == (provider, True, False, 202)
    assert said["event"]["changes"] == [{"ref": "refs/heads/main", "after": host_webhooks.COMMIT, "deleted": False}]


def test_an_irrelevant_payload_is_fine(config: str) -> None:
    result = explain(config, "-", body=json.dumps({"repository": "https://git.example.com/acme/shpo", "ref": "refs/heads/main"}).encode())
    assert result.exit_code == 0
    assert "the nearest one is git.example.com/acme/shop" in result.stdout
    assert "the answer is 200: 0 to run" in result.stdout


def test_a_signature_that_holds_is_said_to_and_a_wrong_one_is_refused(config: str, tmp_path: Path) -> None:
    sample = PUSHES["github"]
    right = written(tmp_path, host_webhooks.headers("github", sample.body, sample.event))
    result = explain(config, sample_file(sample), "--headers", right)
    assert (result.exit_code, "signature: holds" in result.stdout, "the answer is 202" in result.stdout) == (0, True, True)
    result = explain(config, sample_file(sample), "--headers", right, GITHUB="another-secret-0123")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "none of the configured secrets (2 for github) proves it: answered 401" in result.stderr
    assert not any(secret in result.output for secret in KEYS.values())


def test_a_doubled_header_is_refused_as_the_door_does(config: str, tmp_path: Path) -> None:
    sample = PUSHES["github"]
    path = Path(written(tmp_path, host_webhooks.headers("github", sample.body, sample.event)))
    path.write_text(path.read_text() + "\n" + "".join(line for line in path.read_text().splitlines() if "Signature" in line))
    assert explain(config, sample_file(sample), "--headers", str(path)).exit_code == 1


def test_a_secret_of_another_repository_is_told_to_the_operator(config: str, tmp_path: Path) -> None:
    sample = PUSHES["github"]
    signed = written(tmp_path, host_webhooks.headers("github", sample.body, sample.event, KEYS["INFRA"]))
    result = explain(config, sample_file(sample), "--headers", signed)
    assert result.exit_code == 1
    assert "may not speak for shop, shop-versions, shop-paused: answered 401" in result.stderr
    document = sample.document
    document["repository"]["html_url"] = INFRA
    body = json.dumps(document).encode()
    result = explain(config, "-", "--headers", written(tmp_path, host_webhooks.headers("github", body, sample.event)), body=body)
    assert result.exit_code == 0
    assert "- infra: its repository's webhook has another secret than the one that signed this" in result.stdout


def test_a_provider_without_secrets_is_told_what_is_missing(config: str, tmp_path: Path) -> None:
    path = Path(config)
    path.write_text(path.read_text().replace(", webhook: {secrets: [{env: INFRA}]}", ""))
    sample = PUSHES["generic"]
    signed = written(tmp_path, host_webhooks.headers("generic", sample.body))
    result = explain(config, sample_file(sample), "--headers", signed)
    assert (result.exit_code, "no secret is configured for generic" in result.stderr) == (1, True)
    assert "add webhooks.generic.secrets" in result.stderr


@pytest.mark.parametrize(
    ("body", "arguments", "seen"),
    [
        (b"{", (), "not JSON"),
        (b'{"a": NaN}', (), "NaN"),
        (b'{"repository": "https://x.test/y", "ref": "main"}', (), "ref is not a full ref name"),
        (b'{"action": "opened"}', ("--provider", "github"), "give the request's headers with --headers"),
        (b" " * 5_242_881, (), "is larger than 5242880 bytes"),
    ],
)
def test_explain_delivery_of_a_refused_delivery_exits_with_1(config: str, body: bytes, arguments: tuple[str, ...], seen: str) -> None:
    result = explain(config, "-", *arguments, body=body)
    assert (result.exit_code, result.stdout) == (1, "")
    assert seen in result.stderr


@pytest.mark.parametrize("headers", [{"Content-Type": "application/x-www-form-urlencoded"}, {"Content-Encoding": "gzip"}, {}], ids=str)
def test_a_form_a_compressed_body_and_one_of_no_type_are_refused(config: str, tmp_path: Path, headers: dict[str, str]) -> None:
    sample = PUSHES["github"]
    sent = host_webhooks.headers("github", sample.body, sample.event) | headers
    if not headers:
        del sent["Content-Type"]
    door = create_app(host_webhooks.settings(), host_webhooks.secrets(), Kept(), lambda: True).test_client()
    assert door.post("/webhooks/github", data=sample.body, headers=sent).status_code == 415
    result = explain(config, sample_file(sample), "--headers", written(tmp_path, sent), "-o", "json")
    assert (result.exit_code, json.loads(result.stdout)["code"]) == (1, "wrong-media-type")


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        (("/nonexistent",), "No such file"),
        (("-", "--provider", "gogs"), "gogs"),
        (("-",), "name it with --provider github|gitlab|gitea|bitbucket|azuredevops|generic"),
        (("-", "--headers", "HEADERS"), "--headers, line 2: expected `Name: value`"),
    ],
)
def test_a_mistake_of_usage_exits_with_64(config: str, tmp_path: Path, arguments: tuple[str, ...], seen: str) -> None:
    path = tmp_path / "odd.txt"
    path.write_text("A: b\nno header\n")
    result = explain(config, *(str(path) if each == "HEADERS" else each for each in arguments), body=b"{}")
    assert (result.exit_code, result.stdout) == (64, "")
    assert seen in result.stderr


def test_credentials_in_a_payloads_url_and_what_a_terminal_obeys_are_not_printed(config: str) -> None:
    body = json.dumps(
        {"repository": "https://u:hunter22@git.example.com/acme/shop", "ref": "refs/heads/main", "actor": "\x1b[31mada"}
    ).encode()
    for form in ("text", "json"):
        result = explain(config, "-", "-o", form, body=body)
        assert result.exit_code == 0
        assert "hunter22" not in result.output
        assert "\x1b" not in result.output
