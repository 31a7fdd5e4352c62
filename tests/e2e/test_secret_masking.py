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
    "data that isn't base64": {"data": {"value": CANARY}},
    "data of the wrong type": {"data": {"value": {"deep": CANARY}}},
    "data as a text": {"data": CANARY},
    "an unknown field": {"dta": {"value": encoded(CANARY)}},
    "a registry login that isn't JSON": {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": encoded(CANARY)}},
    "a key that isn't allowed": {"data": {"a key/bad": encoded(CANARY)}},
    "a label that isn't allowed": {"metadata": {"labels": {"a": "not allowed!"}}, "data": {"value": encoded(CANARY)}},
    "text and data of the wrong kind": {"stringData": {"value": [CANARY]}},
}


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_refused_secret_is_reported_without_its_value(shop: Shop, logged: io.StringIO, mistake: str) -> None:
    body = secret(shop.name, "broken", CANARY)
    metadata = {**body["metadata"], **BROKEN[mistake].get("metadata", {})}
    broken: Document = {key: value for key, value in body.items() if key != "data"} | BROKEN[mistake] | {"metadata": metadata}
    shop.push(broken, config_map(shop.name, "a"))
    results = [run(shop, shop.job()), run(shop, shop.job("drift")), run(shop, shop.job("oneoff", dry_run=True))]
    assert {result.outcome for result in results} == {Outcome.FAILED}
    assert "Secret" in results[0].message or "broken" in results[0].message
    assert_silent(shop, logged, *results)


@pytest.mark.parametrize(
    "text",
    [
        "value: |\n  {canary}\n bad: indent",
        "value: {canary}\nvalue: {canary}",
        "value: !{canary} x",
        "value: !!{canary} x",
        "value: *{canary}",
        "value: &{canary}",
        "value: '{canary}",
        "value: [{canary}",
        "\tvalue: {canary}",
    ],
)
def test_broken_yaml_beside_a_value_is_reported_without_it(shop: Shop, logged: io.StringIO, text: str) -> None:
    canary = "canary7f3a9ce1"
    shop.declare(config_map(shop.name, "a"))
    body = text.replace("{canary}", canary)
    shop.work.write("deploy/secret.yaml", f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData:\n  {body}\n")
    shop.work.commit("Broken")
    shop.work.push()
    result = run(shop, shop.job())
    assert (result.outcome, result.who) == (Outcome.FAILED, "author"), told(result)
    assert "deploy/secret.yaml:" in result.message
    assert canary not in repr(result) + logged.getvalue()


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
