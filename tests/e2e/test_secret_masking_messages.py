"""Secret values outside of Secrets: in what the API server says, in variables, ConfigMaps, custom resources, events and logs of pods."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import pytest

from handler.config.settings import EvidenceSettings, Wait
from handler.model.result import Outcome
from handler.worker.health_watch.cluster_watch import HealthWatch
from infra.controlplane.pod_failures import LOG
from tests.e2e.documents import Document, config_map, definition, deployment, job, namespace, offer, secret
from tests.e2e.one_target import Shop
from tests.e2e.planted_secrets import CANARY, OTHER, assert_silent, logged, run
from tests.e2e.serve_process import until
from tests.e2e.workload_status import fated, stand_still

__all__ = ["logged"]
PASSWORD = {"name": "DB_PASSWORD", "value": CANARY}
CONTAINER: Document = {"name": "main", "image": "a:1"}


def with_env(document: Document, env: Any, **container: Any) -> Document:
    document["spec"]["template"]["spec"]["containers"] = [{**CONTAINER, "env": env, **container}]
    return document


def refused(place: str) -> dict[str, list[Document]]:
    web = deployment(place, "web")
    return {
        "a variable of the wrong type": [with_env(deployment(place, "web"), [{**PASSWORD, "value": [CANARY]}])],
        "variables as a mapping": [with_env(web, {"DB_PASSWORD": CANARY})],
        "a variable with two values": [
            with_env(deployment(place, "web"), [{**PASSWORD, "valueFrom": {"fieldRef": {"fieldPath": CANARY}}}, {**PASSWORD, "name": "b="}])
        ],
        "a quantity": [with_env(deployment(place, "web"), [PASSWORD], resources={"limits": {"token": CANARY}})],
        "an unknown field": [with_env(deployment(place, "web"), [{**PASSWORD, "vlaue": OTHER}], pasword=OTHER)],
        "data as a list": [config_map(place, "a", {"password": [CANARY]})],  # type: ignore[dict-item]  # that is the mistake
        "a key that isn't allowed": [config_map(place, "a", {"pass word": "1", "api-key": CANARY})],
        "an annotation that isn't text": [config_map(place, "a", annotations={"example.com/token": [CANARY]})],
    }


@pytest.mark.parametrize("mistake", refused(""))
def test_what_the_server_refuses_is_told_without_its_values(shop: Shop, logged: io.StringIO, mistake: str) -> None:
    shop.push(*refused(shop.name)[mistake], config_map(shop.name, "fine"))
    results = [run(shop, shop.job()), run(shop, shop.job("drift")), run(shop, shop.job("oneoff", dry_run=True))]
    assert {(result.outcome, result.who) for result in results} == {(Outcome.FAILED, "author")}
    assert any(name in results[0].message for name in (f"Deployment/{shop.name}/web", f"ConfigMap/{shop.name}/a"))
    assert_silent(shop, logged, *results)


def test_a_custom_resource_is_refused_without_its_values(shop: Shop, logged: io.StringIO) -> None:
    crd = definition(shop.group)
    text = {"type": "string", "maxLength": 3}
    weak = {"rule": "self == 'x'", "messageExpression": "self + ' is weak'"}
    properties = {"price": {"type": "integer"}, "apiKey": {**text, "x-kubernetes-validations": [weak]}, "token": {**text, "enum": ["a"]}}
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = properties
    tea = offer(shop.group, shop.name, "tea")
    tea["spec"] |= {"apiKey": CANARY, "token": OTHER}
    results = []
    number = {**tea, "spec": {"apiKey": 86429753186}}
    for documents in ([crd, tea], [crd], [crd, tea], [crd, number]):  # judged by git's schema, then the server's
        shop.push(namespace(shop.name), *documents)
        results.append(run(shop, shop.job()))
    assert [result.outcome for result in results] == [Outcome.FAILED, Outcome.APPLIED, Outcome.FAILED, Outcome.FAILED]
    assert "apiKey" in results[0].message
    assert "apiKey" in results[2].message
    assert "86429753186" not in results[3].message
    assert_silent(shop, logged, *results)


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


def test_events_that_repeat_a_variable_are_told_without_it(shop: Shop, logged: io.StringIO) -> None:
    settings = config_map(shop.name, "settings", {"api-key": OTHER})
    web = fated(with_env(deployment(shop.name, "web", replicas=1), [PASSWORD]), "never-ready")
    shop.push(web, settings)
    results = [run(shop, shop.job())]
    until(lambda: stand_still(shop, "web"))
    live = shop.live(web)
    assert live
    about = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": shop.name, "uid": live["metadata"]["uid"]}
    times = {"firstTimestamp": "2100-01-01T00:00:00Z", "lastTimestamp": "2100-01-01T00:00:00Z"}
    said = {"type": "Warning", "reason": "Refused", "message": f"the database refused {CANARY} and {OTHER}", "involvedObject": about}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": shop.name}, **times, **said}
    shop.kubectl.run("create", "-f", "-", given=json.dumps(event))
    shop.configure(wait=Wait(120.0, 2.0))
    shop.push(web, settings, config_map(shop.name, "another"))
    results.append(run(shop, shop.job()))
    assert results[-1].code == "rollout-failed"
    assert "Warning Refused" in results[-1].message
    assert "the database" not in results[-1].message, "of what holds a secret a reason is told, and no word"
    assert_silent(shop, logged, *results)


def test_a_watch_of_health_tells_the_reasons_alone_of_what_holds_a_secret(shop: Shop, logged: io.StringIO) -> None:
    web = fated(with_env(deployment(shop.name, "web", replicas=1), [PASSWORD]), "never-ready")
    shop.push(web, secret(shop.name, "db", "postgres://shop:swordfish-4711@db:5432/shop"), config_map(shop.name, "a", {"api-key": OTHER}))
    result = run(shop, shop.job())
    live = shop.live(web)
    assert live
    about = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": shop.name, "uid": live["metadata"]["uid"]}
    times = {"firstTimestamp": "2100-01-01T00:00:00Z", "lastTimestamp": "2100-01-01T00:00:00Z"}
    said = {"type": "Warning", "reason": "Refused", "message": f"refused {CANARY}, {OTHER} and swordfish-4711", "involvedObject": about}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": shop.name}, **times, **said}
    shop.kubectl.run("create", "-f", "-", given=json.dumps(event))
    watch = HealthWatch(replace(shop.settings, health_interval=2.0), shop.handler, lambda _: None)
    watch.start()
    try:
        until(lambda: "Warning Refused" in " ".join(shop.state().health.worst), told=lambda: str(shop.state().health))
    finally:
        watch.stop()
    assert "refused" not in " ".join(shop.state().health.worst)
    assert_silent(shop, logged, result, planted=(CANARY, OTHER, "swordfish-4711"))


def test_a_tick_that_looks_at_health_tells_no_condition_of_what_holds_a_secret(shop: Shop, logged: io.StringIO) -> None:
    crd, tea = definition(shop.group), offer(shop.group, shop.name, "tea")
    any_status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    fields = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    fields["status"] = fields["spec"] = any_status
    milk = offer(shop.group, shop.name, "milk")
    tea["spec"] |= {"token": "swordfish-4711"}
    shop.push(namespace(shop.name), crd, tea, milk)
    results = [run(shop, shop.job())]
    status = {"conditions": [{"type": "Ready", "status": "False", "reason": "Refused", "message": "the database refused swordfish-4711"}]}
    open_status = {"conditions": [{**status["conditions"][0], "message": "the database is full"}]}
    for name, said in (("tea", status), ("milk", open_status)):
        shop.kubectl.run("patch", f"offers.v1.{shop.group}", name, "-n", shop.name, "--type=merge", "-p", json.dumps({"status": said}))
    results.append(shop.handler_at(shop.kubectl.kubeconfig, looks=True).run(shop.job("tick")))
    assert results[-1].outcome is Outcome.UNCHANGED
    told = (f"Offer/{shop.name}/milk: Refused: “the database is full”", f"Offer/{shop.name}/tea: in progress")
    assert shop.state().health.worst == told
    assert_silent(shop, logged, *results, planted=("swordfish-4711",))


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
