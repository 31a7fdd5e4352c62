"""A definition that isn't served for now: record, failure and health say why, in the cluster's words."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from handler.model.errors import NotReady
from handler.model.result import Outcome, Result
from tests.e2e.conversion_webhook import converted
from tests.e2e.documents import Document, definition, offer
from tests.e2e.one_target import Shop, told
from tests.e2e.versioned_objects import offered
from tests.patience import until

INVALID = "InvalidCABundle"


def unfounded(shop: Shop) -> Document:
    """A definition whose conversion webhook has no authority yet, as before cert-manager puts it in."""
    kind = definition(shop.group)
    client = {"url": "https://127.0.0.1:9/convert", "caBundle": "bm8gY2VydGlmaWNhdGU="}
    kind["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}
    return kind


def unhealthy(shop: Shop) -> str:
    stored = shop.handler.store(shop.target).read().state
    return str(stored and stored.status.unhealthy)


def test_a_run_that_waits_for_a_definition_says_why_it_isnt_established(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, tea = unfounded(shop), offer(shop.group, shop.name, "tea")
    shop.push(kind, tea)
    run = threading.Thread(target=shop.run)
    run.start()
    until(lambda: INVALID in unhealthy(shop), lambda: unhealthy(shop))
    good = definition(shop.group)
    shop.kubectl.run("patch", "crd", good["metadata"]["name"], "--type=json", "-p", '[{"op": "remove", "path": "/spec/conversion"}]')
    run.join()
    assert shop.state().status.unhealthy == ()
    monkeypatch.setattr("handler.engine.apply.apply._READY_TIMEOUT", 20.0)
    shop.kubectl.run("delete", "crd", good["metadata"]["name"])
    result = shop.run("drift")
    assert (result.code, INVALID in str(result.problems[0])) == (NotReady.code, True), told(result)


def test_a_run_that_waits_for_a_conversion_webhook_says_so_while_it_lasts(shop: Shop, tmp_path: Path) -> None:
    busy, results = threading.Event(), list[Result]()
    with converted(shop.group, tmp_path, busy) as kind:
        shop.push(kind, offered(shop, "tea", "v1"))
        shop.applied()
        busy.set()
        shop.push(kind, offered(shop, "tea", "v1", note="hot"))
        run = threading.Thread(target=lambda: results.append(shop.run()))
        run.start()
        until(lambda: "conversion webhook for" in unhealthy(shop) or bool(results), lambda: unhealthy(shop))
        assert not results, told(results[0])
        busy.clear()
        run.join()
        assert (results[0].outcome, shop.state().status.unhealthy) == (Outcome.APPLIED, ()), told(results[0])
