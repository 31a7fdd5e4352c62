"""A server whose ticks are far apart promotes a commit soon after it has soaked: by an event, and by a timer."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.render.sandbox import Sandbox
from infra.githost import Host
from tests.e2e.documents import deployment
from tests.e2e.one_target import STATES
from tests.e2e.promotion_line import PromotionLine
from tests.e2e.serve_process import Serving
from tests.fakes.clock import NEVER
from tests.kubectl import Kubectl
from tests.patience import until


@pytest.fixture
def line(host: Host, sandbox: Sandbox, kubectl: Kubectl) -> Iterator[PromotionLine]:
    made = PromotionLine(f"s-{secrets.token_hex(4)}", host, sandbox, kubectl, {"staging": (), "prod": ("staging",)}, soak=2.0)
    yield made
    made.close()


@pytest.fixture
def server(line: PromotionLine, tmp_path: Path) -> Iterator[Serving]:
    """A server that looks at nothing by itself after its start."""
    targets = [
        {
            "name": shop.name,
            "repository": {"url": shop.target.repository.url},
            "path": name,
            "namespaces": [line.space],
            "cluster": {"kubeconfig": {"file": str(line.kubectl.kubeconfig)}},
            **({"revision": {"promoted": {"from": line.name("staging"), "soak": "2s"}}} if name == "prod" else {}),
        }
        for name, shop in line.shops.items()
    ]
    settings = {"interval": "24h", "driftInterval": NEVER, "healthInterval": "2s", "stateNamespace": STATES}
    webhooks = {"github": {"secrets": [{"env": "HOOK"}]}}
    config = tmp_path / "anneal.json"
    document = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", **settings, "webhooks": webhooks, "targets": targets}
    config.write_text(json.dumps(document))
    line.push("1", deployment(line.space, "web"))
    serving = Serving(config, tmp_path / "serve.log").start().ready()
    yield serving
    serving.stop()


def test_a_push_reaches_production_once_staging_has_kept_it_healthy(line: PromotionLine, server: Serving) -> None:
    until(lambda: line.value("prod") == "1", server.log.read_text)
    second = line.push("2", deployment(line.space, "web"))
    assert server.push(line.shops["staging"].target.repository.url, "refs/heads/main", second) == 202
    until(lambda: line.value("prod") == "2", server.log.read_text)
    until(lambda: line.shops["prod"].state().commit == second, server.log.read_text)
    staging = line.shops["staging"].state()
    assert staging.soaks[0].commits[0] == second
