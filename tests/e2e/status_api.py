"""A server with tokens of several rights, and what its `/api` and `/metrics` answer."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.one_target import PATH, STATES, Shop
from tests.e2e.serve_process import TOKEN, Serving, signed
from tests.fakes.clock import NEVER
from tests.patience import PATIENCE

READ = "a token that may only read"


OTHER = "a token for other targets"


@pytest.fixture
def serving(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    monkeypatch.setenv("READ", READ)
    monkeypatch.setenv("OTHER", OTHER)
    configuration = {
        "apiVersion": "anneal.dev/v1alpha1",
        "kind": "Config",
        "stateNamespace": STATES,
        "interval": "1h",
        "driftInterval": NEVER,
        "webhooks": {"github": {"secrets": [{"env": "HOOK"}]}},
        "replay": {
            "tokens": [
                {"name": "ops", "secret": {"env": "OPS"}, "may": ["replay", "approve", "rollback", "read", "metrics"]},
                {"name": "reader", "secret": {"env": "READ"}, "targets": [shop.name], "may": ["read"]},
                {"name": "other", "secret": {"env": "OTHER"}, "targets": ["other-*"], "may": ["read", "replay"]},
            ]
        },
        "targets": [
            {
                "name": shop.name,
                "repository": {"url": shop.target.repository.url},
                "path": PATH,
                "namespaces": [shop.name],
                "cluster": {"kubeconfig": {"file": str(shop.kubectl.kubeconfig)}},
            },
            {
                "name": "lost",
                "repository": {"url": shop.target.repository.url},
                "namespaces": ["lost"],
                "cluster": {"kubeconfig": {"file": str(tmp_path / "missing")}},
            },
        ],
    }
    config = tmp_path / "anneal.yaml"
    config.write_text(json.dumps(configuration))
    server = Serving(config, tmp_path / "log")
    yield server
    server.stop()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}


def pushed(server: Serving, shop: Shop, sha: str) -> str:
    """Deliver a push and return the id of its run."""
    status, answer = server.send("POST", "/webhooks/github", *signed(shop.target.repository.url, "refs/heads/main", sha))
    assert status == 202, answer
    return next(str(row["run"]) for row in answer["matched"] if row["target"] == shop.name)


def metrics(server: Serving) -> str:
    """Return the metrics."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    try:
        connection.request("GET", "/metrics", headers=bearer(TOKEN))
        return connection.getresponse().read().decode()
    finally:
        connection.close()
