"""Secret values never leave: whatever fails, a planted value is in no result, no record and no log line, in no spelling."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from handler.config.git_settings import BasicAuth, RepositoryAuth, SecretRef
from handler.model.result import Outcome
from infra.githost import Host
from tests.e2e.documents import Document, config_map, secret
from tests.e2e.one_target import Shop, told
from tests.e2e.planted_secrets import CANARY, OTHER, assert_silent, run


def encoded(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


BROKEN: dict[str, Document] = {
    "no-base64": {"data": {"value": CANARY}},
    "unknown-field": {"dta": {"value": encoded(CANARY)}},
    "no-json": {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": encoded(CANARY)}},
    "odd-key": {"data": {"a key/bad": encoded(CANARY)}},
    "odd-label": {"metadata": {"labels": {"a": "not allowed!"}}, "data": {"value": encoded(CANARY)}},
}


def test_refused_secrets_are_reported_without_their_values(shop: Shop, logged: io.StringIO) -> None:
    """All at once; those that are refused as they are read: `tests/unit/engine/test_reconcile_mistaken_secrets.py`."""
    broken: list[Document] = []
    for name, mistake in BROKEN.items():
        body = secret(shop.name, name, CANARY)
        metadata = {**body["metadata"], **mistake.get("metadata", {})}
        broken.append({key: value for key, value in body.items() if key != "data"} | mistake | {"metadata": metadata})
    shop.push(*broken, config_map(shop.name, "a"))
    results = [run(shop, shop.job()), run(shop, shop.job("drift")), run(shop, shop.job("oneoff", dry_run=True))]
    assert {result.outcome for result in results} == {Outcome.FAILED}
    assert [name for name in BROKEN if f"Secret/{shop.name}/{name}" not in results[0].message] == [], "all are told together"
    assert_silent(shop, logged, *results)


def test_applying_changing_drifting_and_deleting_a_secret_shows_no_value(shop: Shop, logged: io.StringIO) -> None:
    results = []
    shop.push(secret(shop.name, "s", CANARY), config_map(shop.name, "a"))
    results += [run(shop, shop.job("oneoff", dry_run=True)), run(shop, shop.job())]
    patch = json.dumps({"data": {"value": encoded(OTHER)}, "metadata": {"annotations": {"note": "edited"}}})
    shop.kubectl.run("patch", "secret", "s", "-n", shop.name, "-p", patch)
    shop.configure(drift="report")
    results.append(run(shop, shop.job("drift")))
    assert results[-1].outcome is Outcome.DRIFTED
    assert [item.path for item in shop.state().drift] == ["data.value", "metadata.annotations.note"]
    assert_silent(shop, logged, *results)
    shop.configure(drift="correct")
    results.append(run(shop, shop.job("drift")))
    shop.push(secret(shop.name, "s", OTHER), config_map(shop.name, "a"))
    results.append(run(shop, shop.job()))
    shop.push(config_map(shop.name, "a"))
    results.append(run(shop, shop.job()))
    assert [result.outcome for result in results[-3:]] == [Outcome.APPLIED] * 3
    assert_silent(shop, logged, *results)


def test_taking_over_a_secret_of_kubectl_shows_no_value(shop: Shop, logged: io.StringIO) -> None:
    """Its last-applied annotation holds the whole Secret."""
    shop.kubectl.apply(secret(shop.name, "s", CANARY))
    shop.push(secret(shop.name, "s", OTHER))
    results = [run(shop, shop.job("oneoff", dry_run=True)), run(shop, shop.job())]
    assert results[-1].outcome is Outcome.APPLIED
    assert_silent(shop, logged, *results)


def test_an_immutable_secret_is_refused_without_its_value(shop: Shop, logged: io.StringIO) -> None:
    shop.push(secret(shop.name, "s", CANARY) | {"immutable": True})
    results = [run(shop, shop.job())]
    shop.push(secret(shop.name, "s", OTHER) | {"immutable": True})
    results.append(run(shop, shop.job()))
    assert results[-1].outcome is Outcome.FAILED
    assert "immutable" in results[-1].message
    assert_silent(shop, logged, *results)


def test_a_wrong_git_password_is_reported_without_it(shop: Shop, logged: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_PASSWORD", CANARY)
    shop.push(config_map(shop.name, "a"))
    with Host(Path(shop.work.remote).parent) as locked:
        locked.accounts["ann"] = "another password"
        repository = replace(shop.target.repository, url=locked.url_of(shop.name))
        shop.configure(repository=replace(repository, auth=RepositoryAuth(BasicAuth("ann", SecretRef(env="GIT_PASSWORD")))))
        result = run(shop, shop.job())
        assert (result.outcome, result.code) == (Outcome.FAILED, "access-denied"), told(result)
        assert_silent(shop, logged, result)
