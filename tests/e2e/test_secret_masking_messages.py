"""Secret values outside of Secrets: in what the API server says, in variables, ConfigMaps, custom resources, events and logs of pods."""

from __future__ import annotations

import io
from typing import Any

import pytest

from handler.config.settings import EvidenceSettings, Wait
from handler.model.result import Outcome
from infra.controlplane.pod_failures import LOG
from tests.e2e.documents import Document, config_map, deployment, job, secret
from tests.e2e.one_target import Shop
from tests.e2e.planted_secrets import CANARY, OTHER, assert_silent, logged, run
from tests.e2e.workload_status import fated, stand_still
from tests.patience import until

__all__ = ["logged"]
PASSWORD = {"name": "DB_PASSWORD", "value": CANARY}
CONTAINER: Document = {"name": "main", "image": "a:1"}


def with_env(document: Document, env: Any, **container: Any) -> Document:
    document["spec"]["template"]["spec"]["containers"] = [{**CONTAINER, "env": env, **container}]
    return document


def test_an_immutable_field_is_told_without_the_object_that_the_server_dumps(shop: Shop, logged: io.StringIO) -> None:
    results = []
    for value in (CANARY, OTHER):
        unfinished = with_env(job(shop.name, "work"), [{**PASSWORD, "value": value}])
        unfinished["spec"]["suspend"] = True
        shop.push(unfinished)
        results.append(run(shop, shop.job()))
    assert [result.outcome for result in results] == [Outcome.APPLIED, Outcome.FAILED]
    assert "spec.template.spec: Invalid value: ***: field is immutable" in results[1].message
    assert_silent(shop, logged, *results)


@pytest.mark.parametrize("logs", ["live", "record"])
def test_the_log_of_a_pod_leaves_no_value_anywhere(shop: Shop, logged: io.StringIO, logs: Any) -> None:
    api = fated(deployment(shop.name, "api", replicas=1), "crash-loop")
    api["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"secretRef": {"name": name}} for name in ("theirs", "db")]
    shop.kubectl.apply(secret(shop.name, "theirs", "mackerel-0815"))
    shop.push(api, secret(shop.name, "db", "swordfish-4711"))
    results = [run(shop, shop.job())]
    until(lambda: stand_still(shop, "api", reason="BackOff"))
    shop.configure(wait=Wait(120.0, 2.0), evidence=EvidenceSettings(logs))
    shop.push(*shop.documents, config_map(shop.name, "another"))
    results.append(run(shop, shop.job()))
    assert results[-1].code == "rollout-failed"
    assert ("its log ends: " in results[-1].message) is (logs == "record")
    token = LOG[2].rpartition(" ")[2]
    lines = () if logs == "record" else LOG[1:]
    assert_silent(shop, logged, *results, planted=("swordfish-4711", "mackerel-0815", token, token.split(".")[1], *lines))
