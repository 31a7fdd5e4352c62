"""Amazon's stores, as moto's server has them: versions, keys, regions, decryption; and a service that doesn't answer."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from handler.app.external_services import ExternalServices, fetcher
from handler.aws.clients import AwsClients
from handler.config.git_settings import AwsSecret, SecretRef, WebhookSecrets
from handler.config.remote_secrets import SecretClocks
from handler.config.secret_rotation import Rotation
from handler.config.secrets import resolve_all
from handler.config.settings import ReplaySettings, ReplayToken, Settings, WebhookSettings
from handler.model.errors import SecretUnavailable
from infra.moto import Moto

pytestmark = pytest.mark.usefixtures("waited_for")
ROOT = Path(__file__).resolve().parents[3]
OLD, NEW = "CANARY-old-secret-value", "CANARY-new-secret-value"


def ref(name: str, key: str = "", stage: str = "AWSCURRENT") -> SecretRef:
    return SecretRef(aws_secrets_manager=AwsSecret(name, key, stage))


def hooked(*refs: SecretRef) -> Settings:
    return Settings((), webhooks=WebhookSettings(WebhookSecrets(refs)))


def test_a_secret_is_rotated_with_two_versions_valid_at_once(aws: Moto, caplog: pytest.LogCaptureFixture) -> None:
    client = boto3.client("secretsmanager", **aws.client)
    client.create_secret(Name="anneal/hook", SecretString=json.dumps({"github": OLD}))
    settings = hooked(ref("anneal/hook", "github"), ref("anneal/hook", "github", "AWSPREVIOUS"))
    now = [0.0]
    rotation = Rotation(settings, os.environ, fetch=fetcher(os.environ), clocks=SecretClocks(lambda: now[0], lambda: now[0]))

    def hooks() -> list[str]:
        return [accepted.secret.reveal() for accepted in rotation.webhook("github")]

    assert hooks() == [OLD]
    client.put_secret_value(SecretId="anneal/hook", SecretString=json.dumps({"github": NEW}))
    now[0] += settings.secrets_interval
    assert hooks() == [NEW, OLD]
    client.delete_secret(SecretId="anneal/hook", ForceDeleteWithoutRecovery=True)
    now[0] += settings.secrets_interval
    assert hooks() == [NEW, OLD], "what can't be fetched keeps its value"
    assert "isn't known in this region" in str([vars(record) for record in caplog.records])
    assert "CANARY" not in str([vars(record) for record in caplog.records])


def test_parameters_are_decrypted_and_names_in_other_regions_found(aws: Moto) -> None:
    boto3.client("ssm", **aws.client).put_parameter(Name="/anneal/token", Value=f"{OLD}-parameter", Type="SecureString")
    there = boto3.client("secretsmanager", **(aws.client | {"region_name": "us-west-2"}))
    arn = there.create_secret(Name="anneal/binary", SecretBinary=f"{OLD}-binary\n".encode())["ARN"]
    tokens = ReplayToken("ci", SecretRef(aws_parameter="/anneal/token")), ReplayToken("ops", ref(arn))
    settings = Settings((), replay=ReplaySettings(tokens))
    secrets = resolve_all(settings, os.environ, fetch=fetcher(os.environ))
    assert [secret.reveal() for _, secret in secrets.tokens] == [f"{OLD}-parameter", f"{OLD}-binary"]


def test_everything_that_is_missing_is_named_at_the_start(aws: Moto) -> None:
    boto3.client("secretsmanager", **aws.client).create_secret(Name="bytes", SecretBinary=b"\xff\xfeCANARY")
    settings = hooked(ref("nowhere"), ref("nowhere", stage="AWSPREVIOUS"), SecretRef(aws_parameter="/nowhere"), ref("bytes"))
    with pytest.raises(SecretUnavailable) as caught:
        resolve_all(settings, os.environ, fetch=fetcher(os.environ))
    unknown = "isn't known in this region and account; correct its name, or set its region"
    assert str(caught.value).splitlines() == [
        f"webhooks.github.secrets: AWS secret nowhere {unknown}",
        f"webhooks.github.secrets: AWS secret nowhere, AWSPREVIOUS {unknown}",
        f"webhooks.github.secrets: AWS parameter /nowhere {unknown}",
        "webhooks.github.secrets: AWS secret bytes is not UTF-8 text",
    ]
    assert caught.value.__cause__ is None


def test_a_deleted_secret_is_said_to_be_deleted(aws: Moto) -> None:
    client = boto3.client("secretsmanager", **aws.client)
    client.create_secret(Name="deleted", SecretString=OLD)
    client.delete_secret(SecretId="deleted", RecoveryWindowInDays=7)
    for wanted in (ref("deleted"), ref("deleted", stage="AWSPREVIOUS")):
        with pytest.raises(
            SecretUnavailable, match=r"AWS secret deleted.*is marked for deletion; restore it, or name another one"
        ) as caught:
            ExternalServices(os.environ).fetch(wanted)
        assert "CANARY" not in str(caught.value)


def test_without_credentials_or_region_it_says_what_to_set(aws: Moto, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert aws.url
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(SecretUnavailable, match=r"no AWS credentials are found; give the process a role"):
        ExternalServices(os.environ).fetch(ref("a"))
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(SecretUnavailable, match="AWS secret a: no AWS region is known; set AWS_REGION"):
        ExternalServices(os.environ).fetch(ref("a"))


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_store_that_hangs_is_given_up(aws: Moto, silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert aws.url
    monkeypatch.setenv("AWS_ENDPOINT_URL", silent)
    monkeypatch.setattr("handler.aws.clients.READ", 0.1)
    with pytest.raises(SecretUnavailable, match="AWS secret a: can't be looked up: AWS doesn't answer in time") as caught:
        ExternalServices(os.environ).fetch(ref("a"))
    assert caught.value.__context__ is None


def test_a_client_is_impatient_and_tries_twice_at_most(aws: Moto) -> None:
    assert aws.url
    config = AwsClients(os.environ).client("ssm", "eu-central-1").meta.config
    assert (config.connect_timeout, config.read_timeout) == (2.0, 5.0)
    assert config.retries["total_max_attempts"] == 2


LOADED = """
import os, sys
from handler.wsgi import application
app, outbox = application(os.environ)
print(sorted({'boto3', 'botocore', 'kubernetes', 'dulwich'} & set(sys.modules)))
outbox.close()
"""


@pytest.mark.parametrize(("secret", "loaded"), [("{env: HOOK}", "[]"), ("{awsParameter: /hook}", "['botocore']")])
def test_the_web_process_loads_amazons_library_only_for_a_reference_to_it(aws: Moto, tmp_path: Path, secret: str, loaded: str) -> None:
    boto3.client("ssm", **aws.client).put_parameter(Name="/hook", Value=OLD, Type="SecureString")
    config = tmp_path / "anneal.yaml"
    target = "{name: x, repository: {url: 'https://git.example.com/x.git', auth: {basic: {username: a, password: {awsParameter: /none}}}}"
    head, hooks = "apiVersion: anneal.dev/v1alpha1\nkind: Config", f"webhooks: {{github: {{secrets: [{secret}]}}}}"
    config.write_text(f"{head}\n{hooks}\ntargets: [{target}, namespaces: [x]}}]\n")
    environ = aws.environ | {"HOOK": OLD, "ANNEAL_CONFIG": str(config), "ANNEAL_SOCKET": str(tmp_path / "socket")}
    ran = subprocess.run([sys.executable, "-c", LOADED], cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == loaded
    assert "CANARY" not in ran.stderr
