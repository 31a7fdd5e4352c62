"""Every secret in a store: a running handler takes all of them from there, follows their rotation, and shows none."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml

from infra.githost import Host
from infra.moto import Moto
from tests.e2e.conftest import QUICK
from tests.e2e.many_targets import Fleet
from tests.e2e.planted_secrets import spellings
from tests.e2e.serve_process import Serving, signed
from tests.in_process import ran
from tests.kubectl import Kubectl
from tests.patience import until

HOOK, HOOK_2, PASSWORD, PASSWORD_2 = (f"canary/{name}&e1 d2+55b0" for name in ("hook-one", "hook-two", "password-one", "password-two"))
OPS = "canary/ops&e1 d2+55b0"


class Stored:
    """A fleet of one target whose secrets and kubeconfig are in moto's stores and in a Secret."""

    def __init__(self, aws: Moto, fleet: Fleet) -> None:
        self.aws, self.fleet = aws, fleet
        self.manager, self.parameters = boto3.client("secretsmanager", **aws.client), boto3.client("ssm", **aws.client)
        self.manager.create_secret(Name="anneal/hooks", SecretString=json.dumps({"github": HOOK}))
        self.manager.create_secret(Name="anneal/cluster", SecretString=self.kubeconfig("one"))
        self.put(PASSWORD)
        data = {"ops": base64.b64encode(OPS.encode()).decode()}
        fleet.kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tokens", "namespace": fleet.name}, "data": data})
        fleet.config.write_text(json.dumps(self.configuration()))

    def kubeconfig(self, account: str) -> str:
        """Return a kubeconfig that signs in by the token of a new account which may do everything."""
        kubectl, name = self.fleet.kubectl, f"{self.fleet.name}-{account}"
        kubectl.run("create", "serviceaccount", name, "-n", self.fleet.name)
        kubectl.run("create", "clusterrolebinding", name, "--clusterrole=cluster-admin", f"--serviceaccount={self.fleet.name}:{name}")
        document: dict[str, Any] = yaml.safe_load(kubectl.kubeconfig.read_text())
        self.token = kubectl.run("create", "token", name, "-n", self.fleet.name).strip()
        document["users"][0]["user"] = {"token": self.token}
        return yaml.safe_dump(document)

    def put(self, password: str) -> None:
        self.parameters.put_parameter(Name="/anneal/git", Value=password, Type="SecureString", Overwrite=True)
        self.fleet.host.accounts = {"deployer": password}

    def configuration(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.fleet.config.read_text())
        (target,) = document["targets"]
        target["repository"]["auth"] = {"basic": {"username": "deployer", "password": {"awsParameter": "/anneal/git"}}}
        target["cluster"] = {"kubeconfig": {"awsSecretsManager": {"id": "anneal/cluster"}}}
        hook = {"id": "anneal/hooks", "key": "github"}
        hooks = [{"awsSecretsManager": hook}, {"awsSecretsManager": hook | {"stage": "AWSPREVIOUS"}}]
        token = {"name": "ops", "secret": {"kubernetesSecret": f"{self.fleet.name}/tokens/ops"}, "may": ["replay", "read"]}
        replay = {"tokens": [token]}
        return document | {"webhooks": {"github": {"secrets": hooks}}, "replay": replay, "secretsInterval": "5s"}


@pytest.fixture
def stored(aws: Moto, kubectl: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stored]:
    monkeypatch.setenv("KUBECONFIG", str(kubectl.kubeconfig))
    (tmp_path / "fleet").mkdir()
    with Host() as host:
        fleet = Fleet(f"p-{secrets.token_hex(4)}", host, kubectl, tmp_path / "fleet", 1, 4, settings=QUICK)
        yield Stored(aws, fleet)
        fleet.close()
        for account in ("one", "two"):
            kubectl.run("delete", "clusterrolebinding", f"{fleet.name}-{account}", "--ignore-not-found")


def push(server: Serving, fleet: Fleet, version: int, secret: str) -> int:
    sha = fleet.move(0, version)
    body, headers = signed(fleet.url, fleet.ref(0), sha)
    headers["X-Hub-Signature-256"] = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return server.send("POST", "/webhooks/github", body, headers)[0]


def test_a_handler_whose_secrets_are_all_in_stores_deploys_follows_rotation_and_shows_nothing(stored: Stored) -> None:
    fleet = stored.fleet
    server = fleet.serve().ready()
    fleet.converge()
    assert push(server, fleet, 1, HOOK) == 202
    fleet.converge()
    first = stored.token
    stored.manager.put_secret_value(SecretId="anneal/hooks", SecretString=json.dumps({"github": HOOK_2}))
    stored.manager.put_secret_value(SecretId="anneal/cluster", SecretString=stored.kubeconfig("two"))
    fleet.kubectl.run("delete", "serviceaccount", f"{fleet.name}-one", "-n", fleet.name)  # its token is refused soon
    stored.put(PASSWORD_2)
    until(lambda: push(server, fleet, 2, HOOK_2) == 202, server.log.read_text)
    assert push(server, fleet, 2, HOOK) == 202, "the previous version is valid, too"
    fleet.converge()
    authorized = {"Authorization": f"Bearer {OPS}"}
    assert server.send("POST", f"/replay/{fleet.target(0)}", b"", authorized)[0] == 202
    doctor = ran(["--config", str(fleet.config), "doctor"])
    server.stop()
    assert "kubeconfig of AWS secret anneal/cluster" in doctor.stdout
    outputs = server.log.read_text() + doctor.stdout + doctor.stderr
    values = (HOOK, HOOK_2, PASSWORD, PASSWORD_2, OPS, first, stored.token)
    assert [text for value in values for text in spellings(value) if text in outputs] == []
    assert len(server.lines("secrets are renewed")) >= 2
