"""Secret values are on no page, in no stream and in no line of the log: declared, live, in annotations, in errors, of git's sign-in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest

from handler.render.sandbox import Sandbox
from infra.githost import Host
from tests.e2e.conftest import shops
from tests.e2e.documents import Document, config_map, deployment, secret
from tests.e2e.one_target import Shop
from tests.e2e.planted_secrets import spellings
from tests.e2e.serve_process import Serving
from tests.kubectl import Kubectl
from tests.page.page_client import PageClient
from tests.page.page_server import OPERATOR, PageServer
from tests.page.served_shops import delivered, recorded, settled
from tests.patience import until

DECLARED, CHANGED, BY_HAND, ANNOTATED, BROKEN, GIT = (f"canary/{number}f3a9c&e1 d2+55b0" for number in range(1, 7))
LOGGED = "swordfish-4711"
"""Of a Secret, and in the log of every container of the test's cluster."""
PLANTED = (DECLARED, CHANGED, BY_HAND, ANNOTATED, BROKEN, GIT, LOGGED)


@dataclass(frozen=True)
class Vault:
    """A shop full of canaries, which git's host shows to a robot alone; `texts` is all that pages, streams and log have said."""

    server: Serving
    shop: Shop
    ada: PageClient

    def pages(self) -> list[str]:
        at, state = f"/ui/targets/{self.shop.name}", self.shop.state()
        tabs = [f"{at}/{name}" for name in ("gap", "inventory", "orphans", "history", "events", "replay", "suspend", "unpin")]
        runs = [f"{at}/history?run={run.id}" for run in state.history if run.commit]
        objects = [f"{at}/gap?object={kind}/{self.shop.name}/{name}" for kind, name in (("Secret", "login"), ("Deployment", "web"))]
        logs = f"{at}/logs?object=Deployment/{self.shop.name}/web"
        return ["/", "/ui/deliveries", at, *tabs, *objects, *runs, logs, f"{at}/rollback?to={state.history[-1].commit}"]


def documents(shop: Shop, value: str, *more: Document) -> list[Document]:
    web = deployment(shop.name, "web", replicas=1)
    web["spec"]["template"]["spec"]["containers"][0]["env"] = [
        {"name": "PASSWORD", "value": DECLARED},
        {"name": "API_TOKEN", "value": value},
        {"name": "DATABASE", "valueFrom": {"secretKeyRef": {"name": "database", "key": "value"}}},
    ]
    words = [secret(shop.name, "login", value), secret(shop.name, "kept", DECLARED), secret(shop.name, "database", LOGGED)]
    return [*words, config_map(shop.name, "settings", {"password": value}), web, *more]


@pytest.fixture(scope="module")
def vault(servers: PageServer, sandbox: Sandbox, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    password: Path = tmp_path_factory.mktemp("git") / "password"
    password.write_text(GIT)
    with Host() as host, shops(host, sandbox, kubectl) as opened:
        host.accounts = {"robot": GIT}
        shop = opened()
        shop.create_namespace()
        shop.push(*documents(shop, DECLARED))
        signs_in = {"url": shop.target.repository.url, "auth": {"basic": {"username": "robot", "password": {"file": str(password)}}}}
        server = servers(shop, more={shop.name: {"repository": signs_in, "drift": "report"}})
        recorded(shop, settled(shop.head))
        yield Vault(server, shop, PageClient(server).signed_in(OPERATOR))


def assert_silent(where: dict[str, str]) -> None:
    found = {place: value for place, text in where.items() for value in PLANTED for each in spellings(value) if each in unescape(text)}
    assert not found


def shown(vault: Vault) -> dict[str, str]:
    """Return what each page answers, what both streams say, and the log."""
    pages = {path: vault.ada.get(path.replace(" ", "%20")) for path in vault.pages()}
    assert {path: answer.status for path, answer in pages.items()} == dict.fromkeys(pages, 200)
    mark = b"id: "
    topics = ("/", vault.shop.name)
    streams = {topic: vault.ada.stream(topic, lambda found: b"event: replace" in found and mark in found).decode() for topic in topics}
    return {path: answer.text for path, answer in pages.items()} | streams | {"log": vault.server.log.read_text()}


def test_a_change_of_secrets_shows_no_value(vault: Vault) -> None:
    shop = vault.shop
    last = json.dumps(secret(shop.name, "kept", ANNOTATED))
    annotated = {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": last}}}
    by_hand = {"data": {"value": secret("", "", BY_HAND)["data"]["value"], "more": secret("", "", BY_HAND)["data"]["value"]}}
    place = f"/api/v1/namespaces/{shop.name}/secrets"
    shop.kubectl.ask("PATCH", f"{place}/kept", annotated, "application/merge-patch+json")
    delivered(vault.server, shop, *documents(shop, CHANGED))
    recorded(shop, settled(shop.head))
    shop.kubectl.ask("PATCH", f"{place}/login", by_hand, "application/merge-patch+json")
    texts = shown(vault)
    assert_silent(texts)
    at = f"/ui/targets/{shop.name}"
    assert f"Secret/{shop.name}/login" in texts[f"{at}/gap"]
    assert "differs" in texts[f"{at}/gap?object=Secret/{shop.name}/login"], "there was something to hide"
    logs = texts[f"{at}/logs?object=Deployment/{shop.name}/web"]
    assert "starting" in logs, "the log was read"


def test_a_refused_secret_shows_no_value(vault: Vault) -> None:
    shop = vault.shop
    broken = secret(shop.name, "broken", BROKEN) | {"data": {"value": BROKEN}, "dta": {"value": BROKEN}}
    commit = delivered(vault.server, shop, *documents(shop, CHANGED, broken))
    recorded(shop, lambda state: state.status.phase == "failed" and state.history[0].commit == commit)
    texts = shown(vault)
    assert_silent(texts)
    assert "broken" in texts[f"/ui/targets/{shop.name}"], "the refusal is shown"


def test_a_delivery_that_holds_a_sign_in_is_shown_without(vault: Vault) -> None:
    shop = vault.shop
    ended = len(vault.server.runs(target=shop.name))
    commit = shop.push(*documents(shop, DECLARED))
    with_sign_in = shop.target.repository.url.replace("http://", f"http://robot:{GIT[:6]}@")
    assert vault.server.push(with_sign_in, "refs/heads/main", commit) in (200, 202, 400, 404)
    assert vault.server.push(shop.target.repository.url, "refs/heads/main", commit) == 202
    until(lambda: len(vault.server.runs(target=shop.name)) > ended)
    assert_silent(shown(vault))
