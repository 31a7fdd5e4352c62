"""A definition that isn't served for now: record, failure and health say why, in the cluster's words."""

from __future__ import annotations

import threading

import pytest

from handler.model.errors import NotReady
from tests.e2e.documents import Document, definition, offer
from tests.e2e.one_target import Shop, told
from tests.e2e.serve_process import until

INVALID = "InvalidCABundle"


def unfounded(shop: Shop) -> Document:
    """A definition whose conversion webhook has no authority yet, as before cert-manager puts it in."""
    kind = definition(shop.group)
    client = {"url": "https://127.0.0.1:9/convert", "caBundle": "bm8gY2VydGlmaWNhdGU="}
    kind["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}
    return kind


def test_a_run_that_waits_for_a_definition_says_why_it_isnt_established(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, tea = unfounded(shop), offer(shop.group, shop.name, "tea")
    shop.push(kind, tea)
    run = threading.Thread(target=shop.run)
    run.start()

    def lines() -> str:
        stored = shop.handler.store(shop.target).read().state
        return str(stored and stored.status.unhealthy)

    until(lambda: INVALID in lines(), told=lines)
    good = definition(shop.group)
    shop.kubectl.run("patch", "crd", good["metadata"]["name"], "--type=json", "-p", '[{"op": "remove", "path": "/spec/conversion"}]')
    run.join()
    assert shop.state().status.unhealthy == ()
    monkeypatch.setattr("handler.engine.apply.apply._READY_TIMEOUT", 3.0)
    shop.kubectl.run("delete", "crd", good["metadata"]["name"])
    result = shop.run("drift")
    assert (result.code, INVALID in str(result.problems[0])) == (NotReady.code, True), told(result)
